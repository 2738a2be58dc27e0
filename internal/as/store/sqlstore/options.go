package sqlstore

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store/seal"
)

// Defaults of Options.
const (
	DefaultBusyTimeout    = 10 * time.Second
	DefaultAuditRetention = 400 * 24 * time.Hour
)

// Errors of Options.Validate.
var (
	errNoPath = errors.New("sqlstore: no path")
	errSecret = errors.New("sqlstore: the secret must have 32 bytes")
)

// Options says which database to open, and how.
type Options struct {
	// Path is the SQLite file. With Migrate set, a missing file and missing folders are made; without, a missing file is an error
	// that wraps fs.ErrNotExist.
	Path string
	// Secret has 32 bytes and seals private keys. It is not kept.
	Secret []byte
	// SecretFile is where Secret came from; it is only used to name it in errors.
	SecretFile string
	// Migrate creates the schema or brings it up to date. A server sets it, a command does not.
	Migrate bool
	// BusyTimeout is how long a write waits for other writers. 0: DefaultBusyTimeout.
	BusyTimeout time.Duration
	// AuditRetention is how long Sweep keeps audit records. 0: DefaultAuditRetention; negative: for ever.
	AuditRetention time.Duration
	// Logger reports migrations. nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock that decides what has expired. nil: time.Now.
	Now func() time.Time
}

// Validate returns an error for a missing path or a secret of the wrong size.
func (o Options) Validate() error {
	if o.Path == "" {
		return errNoPath
	}
	if len(o.Secret) != seal.SecretBytes {
		return errSecret
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = DefaultBusyTimeout
	}
	if o.AuditRetention == 0 {
		o.AuditRetention = DefaultAuditRetention
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
