package obs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// LogFormat names how log lines are written.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// ErrLogFormat and ErrLogLevel are returned for unknown names.
var (
	ErrLogFormat = errors.New("obs: log format is neither text nor json")
	ErrLogLevel  = errors.New("obs: log level is none of debug, info, warn, error")
)

// Redacted stands in log lines where a secret would be.
const Redacted = "[redacted]"

// LogOptions configures NewLogger.
type LogOptions struct {
	// Writer receives one line per record, in one Write. It is required.
	Writer io.Writer
	// Format is text or json; empty means text.
	Format LogFormat
	// Level is the lowest level that is written. A *slog.LevelVar can be changed while running; nil means info.
	Level slog.Leveler
	// Source adds file and line of the call.
	Source bool
}

// NewLogger returns a logger that writes to o.Writer and replaces the value of every attribute whose key names a secret.
func NewLogger(o LogOptions) (*slog.Logger, error) {
	ho := &slog.HandlerOptions{AddSource: o.Source, Level: o.Level, ReplaceAttr: Redact}
	switch o.Format {
	case LogText, "":
		return slog.New(slog.NewTextHandler(o.Writer, ho)), nil
	case LogJSON:
		return slog.New(slog.NewJSONHandler(o.Writer, ho)), nil
	default:
		return nil, fmt.Errorf("%w: %q", ErrLogFormat, string(o.Format))
	}
}

// ParseLevel reads debug, info, warn or error, in any case.
func ParseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	default:
		return 0, fmt.Errorf("%w: %q", ErrLogLevel, s)
	}
}

// Redact is a slog ReplaceAttr function: it hides the value of attributes whose key names a secret. It is the second line of
// defence; the first is not to log secrets.
func Redact(_ []string, a slog.Attr) slog.Attr {
	if IsSecretKey(a.Key) {
		return slog.String(a.Key, Redacted)
	}
	return a
}

// IsSecretKey reports whether a log or configuration key names a value that must not be shown: a key ending in one of the
// words for secrets, unless a suffix says that it is about one (a path, an id, a count).
func IsSecretKey(key string) bool {
	key = strings.ToLower(key)
	for _, word := range [...]string{
		"token", "secret", "password", "passwd", "passphrase", "cookie", "authorization", "assertion", "code_verifier",
		"code", "credential", "private_key", "dsn", "otp",
	} {
		if key == word || strings.HasSuffix(key, "_"+word) {
			return !isHarmlessCode(key)
		}
	}
	return false
}

// isHarmlessCode knows the keys that end in "code" without being an authorization code.
func isHarmlessCode(key string) bool {
	return key == "status_code" || key == "error_code" || key == "exit_code"
}
