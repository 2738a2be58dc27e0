package segments

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
)

func TestHashID(t *testing.T) {
	key := (&header{store: storeID{1}}).key()
	for _, id := range []string{"", "urn:uuid:00000000-0000-4000-8000-000000000000", strings.Repeat("x", 1024)} {
		sum := sha256.Sum256([]byte(string(key[:]) + id))
		if got, want := hashID(key, []byte(id)), binary.LittleEndian.Uint64(sum[:8]); got != want {
			t.Errorf("hashID(%.20q) = %#x, want %#x", id, got, want)
		}
	}
	if key == (&header{store: storeID{1}, salt: [12]byte{1}}).key() || key == (&header{store: storeID{2}}).key() {
		t.Error("keys do not depend on store and salt")
	}
	id := []byte("urn:uuid:00000000-0000-4000-8000-000000000000")
	if n := testing.AllocsPerRun(100, func() { hashID(key, id) }); n != 0 {
		t.Errorf("hashID() allocates %v times", n)
	}
}

func BenchmarkHashID(b *testing.B) {
	id := []byte("urn:uuid:00000000-0000-4000-8000-000000000000")
	for b.Loop() {
		hashID(hashKey{1, 2}, id)
	}
}
