package seal_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/as/store/seal"
)

func mustNew(tb testing.TB, secret []byte, purpose string) *seal.Sealer {
	tb.Helper()
	s, err := seal.New(secret, purpose)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func secret(fill byte) []byte { return bytes.Repeat([]byte{fill}, seal.SecretBytes) }

func TestSealer_opensWhatItSealed(t *testing.T) {
	s := mustNew(t, secret(1), "test")
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		id := rapid.SliceOf(rapid.String()).Draw(t, "id")
		sealed := s.Seal(plain, id...)
		if len(plain) > 8 && bytes.Contains(sealed, plain) {
			t.Fatal("the sealed value holds the plain one")
		}
		if bytes.Equal(sealed, s.Seal(plain, id...)) {
			t.Fatal("sealing twice gave the same value")
		}
		opened, err := s.Open(sealed, id...)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(opened, plain) {
			t.Fatalf("Open = %x, want %x", opened, plain)
		}
	})
}

func TestSealer_opensNothingElse(t *testing.T) {
	s := mustNew(t, secret(1), "test")
	sealed := s.Seal([]byte("private"), "issuer", "key")
	for name, open := range map[string]func() ([]byte, error){
		"another secret":      func() ([]byte, error) { return mustNew(t, secret(2), "test").Open(sealed, "issuer", "key") },
		"another purpose":     func() ([]byte, error) { return mustNew(t, secret(1), "tes").Open(sealed, "issuer", "key") },
		"another record":      func() ([]byte, error) { return s.Open(sealed, "issuer", "kez") },
		"parts moved":         func() ([]byte, error) { return s.Open(sealed, "issue", "rkey") },
		"parts joined":        func() ([]byte, error) { return s.Open(sealed, "issuerkey") },
		"no record":           func() ([]byte, error) { return s.Open(sealed) },
		"one part more":       func() ([]byte, error) { return s.Open(sealed, "issuer", "key", "") },
		"one byte more":       func() ([]byte, error) { return s.Open(append(bytes.Clone(sealed), 0), "issuer", "key") },
		"one byte less":       func() ([]byte, error) { return s.Open(sealed[:len(sealed)-1], "issuer", "key") },
		"purpose as identity": func() ([]byte, error) { return s.Open(sealed, "test", "issuer", "key") },
	} {
		if plain, err := open(); !errors.Is(err, seal.ErrOpen) || plain != nil {
			t.Errorf("%s: Open = %x, %v, want seal.ErrOpen", name, plain, err)
		}
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 0x10
		if _, err := s.Open(changed, "issuer", "key"); err == nil {
			t.Errorf("Open succeeded with byte %d changed", i)
		}
	}
}

func TestSecretSize(t *testing.T) {
	for _, size := range []int{0, 16, 31, 33, 64} {
		if _, err := seal.New(make([]byte, size), "test"); !errors.Is(err, seal.ErrSecretSize) {
			t.Errorf("New with %d bytes = %v, want seal.ErrSecretSize", size, err)
		}
		if _, err := seal.Derive(make([]byte, size), "test"); !errors.Is(err, seal.ErrSecretSize) {
			t.Errorf("Derive with %d bytes = %v, want seal.ErrSecretSize", size, err)
		}
	}
}

// TestVersion1 opens what was sealed once and for all: the format must not change under stores that exist.
func TestVersion1(t *testing.T) {
	sealed, err := hex.DecodeString("01ec9ba28bb2d8240eb4ae6bcf7eb78f6ab3180ccb6adf704bde37e06d20692d24910bfe")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := mustNew(t, secret(1), "test").Open(sealed, "issuer", "key")
	if err != nil || string(plain) != "private" {
		t.Errorf("Open = %q, %v, want %q", plain, err, "private")
	}
	key, err := seal.Derive(secret(1), "test")
	if err != nil {
		t.Fatal(err)
	}
	const want = "eece042a1838477922673699618bc4c9125e3d9f57b94346ad5b1cfd4cd3bc39"
	if got := hex.EncodeToString(key[:]); got != want {
		t.Errorf("Derive = %s, want %s", got, want)
	}
	other, err := seal.Derive(secret(1), "test2")
	if err != nil || other == key {
		t.Errorf("two purposes have the same key (%v)", err)
	}
}

func FuzzOpen(f *testing.F) {
	s := mustNew(f, secret(1), "test")
	sealed := s.Seal([]byte("private"), "key")
	f.Add(sealed, "key")
	f.Add([]byte{}, "")
	f.Add(sealed[:13], "key")
	f.Fuzz(func(t *testing.T, data []byte, id string) {
		plain, err := s.Open(data, id)
		if err == nil && string(plain) != "private" {
			t.Fatalf("Open gave %q for a value that was not sealed", plain)
		}
	})
}
