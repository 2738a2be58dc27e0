package mercure

import (
	"crypto/rand"
	"encoding/hex"
)

// NewEventID returns a new event id: a random UUID (RFC 9562 section 5.4) as a
// URN, which is an IRI and discloses nothing (PUB-23, REC-20).
func NewEventID() string {
	const prefix = "urn:uuid:"
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails: crypto/rand aborts the program instead
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	b := make([]byte, 0, len(prefix)+36)
	b = append(b, prefix...)
	for i, c := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, []byte{c})
	}
	return string(b)
}
