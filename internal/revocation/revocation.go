package revocation

import (
	"context"
	"errors"
	"time"
)

// Errors of this package, wrapped with what was going on.
var (
	// ErrSource says that a source answered what no log can hold: entries out of order, or none that was asked for.
	ErrSource = errors.New("revocation: the source is not a log")
	// ErrTooMany says that a source has more entries in force, extensions of others included, than Options.MaxEntries.
	ErrTooMany = errors.New("revocation: too many entries in force")
)

// Kinds of entries: the claim of a token that an entry's value is compared with.
const (
	KindToken   = "jti"
	KindGrant   = "grant"
	KindSession = "sid"
	KindSubject = "sub"
	KindClient  = "client"
)

// Entry is one entry of a revocation log.
type Entry struct {
	// Seq is the entry's place in its log, 1 or more. Later entries have greater ones; there may be gaps.
	Seq int64
	// Issuer is the issuer whose tokens are revoked.
	Issuer string
	// Kind says what Value names. Entries of a kind that is none of the constants revoke nothing.
	Kind, Value string
	// IssuedBefore is the time up to which a token must have been issued to be revoked.
	IssuedBefore time.Time
	// Until is when the last token has expired that the entry can mean.
	Until time.Time
}

// equal tells whether e and o are the same entry.
func (e *Entry) equal(o *Entry) bool {
	return e.Seq == o.Seq && e.Issuer == o.Issuer && e.Kind == o.Kind && e.Value == o.Value &&
		e.IssuedBefore.Equal(o.IssuedBefore) && e.Until.Equal(o.Until)
}

// Token is what the list needs to know about a token: the claims iss, jti, grant_id, sid, sub, client_id and iat. Claims that
// the token lacks are empty.
type Token struct {
	Issuer, ID, GrantID, SessionID, Subject, ClientID string
	IssuedAt                                          time.Time
}

// Source is a revocation log that can be read.
type Source interface {
	// Since returns the first entries with a greater sequence number than seq, in order: limit at the most, and two or more where
	// there are as many. It returns none when there are none. Entries whose Until has passed may be missing.
	Since(ctx context.Context, seq int64, limit int) ([]Entry, error)
}

// Metrics counts, for each log by its name (Options.Name). Its methods must be safe for concurrent use and must not block.
type Metrics interface {
	// RevocationsKnown tells the number of entries in force. Several for the same value are one.
	RevocationsKnown(source string, entries int)
	// RevocationsApplied tells the sequence number through which the log has been applied.
	RevocationsApplied(source string, seq int64)
	// RevocationsRead tells when the log was last read to its end.
	RevocationsRead(source string, at time.Time)
	// StreamsRevoked counts streams that were closed because their token was revoked.
	StreamsRevoked(source string, n int)
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) RevocationsKnown(string, int)      {}
func (noMetrics) RevocationsApplied(string, int64)  {}
func (noMetrics) RevocationsRead(string, time.Time) {}
func (noMetrics) StreamsRevoked(string, int)        {}
