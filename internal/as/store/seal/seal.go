package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// SecretBytes is the size of the secret that keys are derived from.
const SecretBytes = 32

const (
	version1    = 0x01
	labelPrefix = "cinnabar/seal/v1/"
	derivePfx   = "cinnabar/derive/v1/"
	keyBytes    = 32
)

// Errors of this package.
var (
	// ErrSecretSize says that the secret does not have SecretBytes bytes.
	ErrSecretSize = errors.New("seal: the secret must have 32 bytes")
	// ErrFormat says that the bytes are no sealed value, or one of a later version.
	ErrFormat = errors.New("seal: not a sealed value")
	// ErrOpen says that a value was sealed with another secret, for another purpose or record, or was changed since.
	ErrOpen = errors.New("seal: cannot be opened with this secret")
)

// Sealer seals and opens values of one purpose.
type Sealer struct {
	aead    cipher.AEAD
	purpose string
}

// New returns the Sealer of a purpose, such as "signing-key". It keeps no reference to secret.
func New(secret []byte, purpose string) (*Sealer, error) {
	key, err := derive(secret, labelPrefix+purpose)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal mode: %w", err)
	}
	return &Sealer{aead: aead, purpose: purpose}, nil
}

// Derive returns 32 bytes for a purpose that is not sealing, such as the key of an HMAC. They tell nothing about the secret or about
// the keys of other purposes.
func Derive(secret []byte, purpose string) ([32]byte, error) {
	var out [32]byte
	key, err := derive(secret, derivePfx+purpose)
	if err != nil {
		return out, err
	}
	copy(out[:], key)
	return out, nil
}

// Seal encrypts plain and binds it to the parts of the record's identifier. It does not change plain.
func (s *Sealer) Seal(plain []byte, id ...string) []byte {
	out := make([]byte, 1, 1+len(plain)+s.aead.Overhead())
	out[0] = version1
	return s.aead.Seal(out, nil, plain, s.associated(id)) //nolint:gosec // no nonce: the AEAD makes a random one
}

// Open returns the plain bytes of a sealed value, which belong to the caller; ErrFormat or ErrOpen otherwise.
func (s *Sealer) Open(sealed []byte, id ...string) ([]byte, error) {
	if len(sealed) < 1+s.aead.Overhead() || sealed[0] != version1 {
		return nil, ErrFormat
	}
	plain, err := s.aead.Open(nil, nil, sealed[1:], s.associated(id))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// associated encodes purpose and identifier without ambiguity: each part is preceded by its length.
func (s *Sealer) associated(id []string) []byte {
	out := appendPart(nil, s.purpose)
	for _, part := range id {
		out = appendPart(out, part)
	}
	return out
}

func appendPart(dst []byte, part string) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(part)))
	return append(dst, part...)
}

func derive(secret []byte, label string) ([]byte, error) {
	if len(secret) != SecretBytes {
		return nil, ErrSecretSize
	}
	key, err := hkdf.Key(sha256.New, secret, nil, label, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return key, nil
}
