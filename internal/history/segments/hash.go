package segments

import (
	"crypto/sha256"
	"encoding/binary"
)

// hashKey is the secret under which the ids of one segment are hashed.
type hashKey [sha256.Size]byte

// key returns the segment's hash key. It follows from the salt, which is random and stands in the segment's file alone, so it
// is as secret as the updates are, and no file has to hold it.
func (h *header) key() hashKey {
	b := make([]byte, 0, 64)
	b = append(b, "cinnabar segments: hashes of ids"...)
	b = append(b, h.store[:]...)
	b = append(b, h.salt[:]...)
	return sha256.Sum256(b)
}

// hashID returns the first eight bytes of the SHA-256 of the key and the id: nobody who lacks the key can choose ids that
// collide, and other than that of hash/maphash it means the same in another process.
func hashID(k hashKey, id []byte) uint64 {
	const usual = 128 // keeps those of most ids off the heap
	b := append(append(make([]byte, 0, usual), k[:]...), id...)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}
