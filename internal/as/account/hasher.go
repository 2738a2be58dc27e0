package account

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"

	"github.com/alexedwards/argon2id"
)

// Defaults of HashOptions: above the minimum of the OWASP Password Storage Cheat Sheet (19 MiB, two passes); below 100 ms of one core of
// a server, and 32 MiB, for each hash that is computed at the same time.
const (
	DefaultMemoryKiB   = 32 * 1024
	DefaultIterations  = 3
	DefaultParallelism = 1
	DefaultQueue       = 64
)

// Bounds of what a stored hash may ask for: it may come from another system, and must not be able to exhaust this one.
const (
	maxMemoryKiB  = 256 * 1024
	maxIterations = 16
	saltBytes     = 16 // RFC 9106 section 3.1
	keyBytes      = 32
	maxHashBytes  = 512
)

// Errors of a Hasher.
var (
	// ErrBusy says that too many hashes are waiting already; the caller may try again later.
	ErrBusy = errors.New("account: too many logins at once")
	// ErrHash says that a stored hash is not an argon2id hash, or asks for more memory or time than is allowed.
	ErrHash = errors.New("account: unusable password hash")
	// errHashOptions says that options are out of range.
	errHashOptions = errors.New("account: hash options out of range")
)

// HashOptions are the cost of a hash and how many are computed at once.
type HashOptions struct {
	MemoryKiB   uint32 // 0: DefaultMemoryKiB
	Iterations  uint32 // passes over the memory; 0: DefaultIterations
	Parallelism uint8  // lanes; 0: DefaultParallelism
	Concurrent  int    // hashes computed at once; 0: one for each processor
	Queue       int    // callers that may wait for their turn; 0: DefaultQueue
}

// Validate returns an error for a cost beyond what a stored hash may ask for, or a negative number.
func (o HashOptions) Validate() error {
	if o.MemoryKiB > maxMemoryKiB || o.Iterations > maxIterations || o.Concurrent < 0 || o.Queue < 0 {
		return errHashOptions
	}
	return nil
}

func (o HashOptions) withDefaults() HashOptions {
	if o.MemoryKiB == 0 {
		o.MemoryKiB = DefaultMemoryKiB
	}
	if o.Iterations == 0 {
		o.Iterations = DefaultIterations
	}
	if o.Parallelism == 0 {
		o.Parallelism = DefaultParallelism
	}
	if o.Concurrent == 0 {
		o.Concurrent = runtime.GOMAXPROCS(0)
	}
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	return o
}

// Hasher computes and compares argon2id hashes, a bounded number at once. It is safe for concurrent use.
type Hasher struct {
	params argon2id.Params
	dummy  string        // a hash that no password has
	admit  chan struct{} // one element for each caller that computes or waits; full: ErrBusy; never closed
	slots  chan struct{} // one element for each hash being computed; full: callers wait; never closed
}

// NewHasher returns a Hasher with these options.
func NewHasher(o HashOptions) (*Hasher, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	h := &Hasher{
		params: argon2id.Params{
			Memory: o.MemoryKiB, Iterations: o.Iterations, Parallelism: o.Parallelism, SaltLength: saltBytes, KeyLength: keyBytes,
		},
		admit: make(chan struct{}, o.Concurrent+o.Queue),
		slots: make(chan struct{}, o.Concurrent),
	}
	random := make([]byte, saltBytes+keyBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("dummy hash: %w", err)
	}
	h.dummy = fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", o.MemoryKiB, o.Iterations, o.Parallelism,
		base64.RawStdEncoding.EncodeToString(random[:saltBytes]), base64.RawStdEncoding.EncodeToString(random[saltBytes:]))
	return h, nil
}

// Hash returns the PHC string of a password as it is given, with a new salt. It waits for its turn; ErrBusy, or the error of ctx, when
// it does not get one.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	release, err := h.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	hash, err := argon2id.CreateHash(password, &h.params)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// Verify reports whether the hash is that of the password, and whether it was made with a cost other than the Hasher's, so that it should be
// made anew. An empty hash is compared in the same time and never matches. Errors are those of Hash, and ErrHash.
func (h *Hasher) Verify(ctx context.Context, password, hash string) (match, stale bool, err error) {
	known := hash != ""
	if !known {
		hash = h.dummy
	}
	if err := checkHash(hash); err != nil {
		return false, false, err
	}
	release, err := h.acquire(ctx)
	if err != nil {
		return false, false, err
	}
	defer release()
	match, params, err := argon2id.CheckHash(password, hash)
	if err != nil {
		return false, false, ErrHash
	}
	return match && known, *params != h.params, nil
}

// checkHash keeps a stored hash from panicking the library or exhausting memory.
func checkHash(hash string) error {
	if len(hash) > maxHashBytes {
		return ErrHash
	}
	p, _, key, err := argon2id.DecodeHash(hash)
	if err != nil { // the library's error could quote the hash
		return ErrHash
	}
	if p.Memory > maxMemoryKiB || p.Iterations == 0 || p.Iterations > maxIterations || p.Parallelism == 0 || len(key) < saltBytes {
		return ErrHash
	}
	return nil
}

func (h *Hasher) acquire(ctx context.Context) (release func(), err error) {
	select {
	case h.admit <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots; <-h.admit }, nil
	case <-ctx.Done():
		<-h.admit
		return nil, fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
}
