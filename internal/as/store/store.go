package store

import (
	"context"
	"time"
)

// MinCodeRetention is how long a code stays readable after it expired or was used. A replay within this time is told apart from a
// guess, so that the grant it belongs to can be revoked (RFC 6749 section 4.1.2).
const MinCodeRetention = 30 * time.Minute

// AccountIDPrefix starts the id of every account and of no client, so that the sub claim of a person and that of a client can never be
// the same (RFC 9700 section 4.15).
const AccountIDPrefix = "u_"

// Store is the authorization server's database. All methods are safe for concurrent use, by several processes too.
// Values go in and come out as copies.
//
// Every method may return an error that wraps ErrUnavailable, or the error of a context that ended; both are left out below. A
// context that ends while a write commits leaves it open whether the write took place.
type Store interface {
	Clients
	Accounts
	Logins
	Grants
	Keys
	Journal
	Database
}

// Database is what concerns the database as a whole.
type Database interface {
	// Version is a counter that every change of clients, accounts or keys raises; a server that sees it change reloads.
	Version(ctx context.Context) (int64, error)
	// Ready returns nil while the database answers and has the schema this program knows; else ErrUnavailable or ErrSchema.
	Ready(ctx context.Context) error
	// Close waits for running operations and releases the database. Calls after it fail.
	Close() error
}

// Clients keeps the registered clients.
type Clients interface {
	// Client returns one client, or ErrNotFound.
	Client(ctx context.Context, id string) (Client, error)
	// ListClients returns all clients in order of their id.
	ListClients(ctx context.Context) ([]Client, error)
	// PutClient creates or replaces a client. Putting what is stored already changes nothing, Version included. revoke goes to the
	// revocation log in the same transaction.
	PutClient(ctx context.Context, c Client, revoke ...Revocation) error
	// DeleteClient removes a client, marks its grants revoked and appends revoke to the revocation log, together. It returns
	// ErrNotFound, with nothing done, for an unknown client.
	DeleteClient(ctx context.Context, id string, revoke ...Revocation) error
	// UseAssertion records the jti of a client's assertion (RFC 7523 section 3) until the given instant, which includes the leeway
	// that is given on the assertion's expiry. It returns ErrConsumed when this client used the jti before.
	UseAssertion(ctx context.Context, clientID, jti string, until time.Time) error
}

// Accounts keeps the people. An account is never deleted, so that its id is never reused.
type Accounts interface {
	// Account returns one account by its id, or ErrNotFound.
	Account(ctx context.Context, id string) (Account, error)
	// AccountByUsername returns the account with this canonical user name, or ErrNotFound.
	AccountByUsername(ctx context.Context, username string) (Account, error)
	// ListAccounts returns all accounts in order of their user name.
	ListAccounts(ctx context.Context) ([]Account, error)
	// CreateAccount adds an account with revision 1; ErrExists for a taken id or user name.
	CreateAccount(ctx context.Context, a Account) error
	// UpdateAccount replaces the account that has a.ID and raises its revision. It returns ErrConflict when the stored revision is
	// not a.Revision (somebody else changed the account since it was read: read it again), ErrExists for a taken user name, and
	// ErrNotFound for an unknown id. CreatedAt never changes. When a is disabled its browser sessions end. revoke goes to the
	// revocation log in the same transaction.
	UpdateAccount(ctx context.Context, a Account, revoke ...Revocation) error
}

// Logins keeps browser sessions and interactions. Expired ones are not found.
type Logins interface {
	// CreateBrowserSession adds a session; ErrExists for a known IDHash, ErrNotFound for an unknown account.
	CreateBrowserSession(ctx context.Context, s BrowserSession) error
	// BrowserSession returns one session, or ErrNotFound.
	BrowserSession(ctx context.Context, idHash string) (BrowserSession, error)
	// DeleteBrowserSession ends one session and appends revoke to the revocation log, together. An unknown session is no error:
	// ending a session twice is harmless, and revoke is appended all the same.
	DeleteBrowserSession(ctx context.Context, idHash string, revoke ...Revocation) error
	// EndBrowserSessions ends all sessions of an account, as after a change of password, appends revoke to the revocation log, and
	// returns how many sessions there were.
	EndBrowserSessions(ctx context.Context, accountID string, revoke ...Revocation) (ended int, err error)
	// CreateInteraction adds an interaction; ErrExists for a known IDHash.
	CreateInteraction(ctx context.Context, i Interaction) error
	// Interaction returns one interaction, or ErrNotFound.
	Interaction(ctx context.Context, idHash string) (Interaction, error)
	// UpdateInteraction replaces what login and consent may set: AccountID, SessionID, AuthTime, ConsentedAt and Request. The
	// binding, the issuer, the client and the times of the interaction stay. It returns ErrNotFound for one that is gone.
	UpdateInteraction(ctx context.Context, i Interaction) error
	// FinishInteraction deletes the interaction; ErrNotFound when another request finished it first.
	FinishInteraction(ctx context.Context, idHash string) error
}

// Grants keeps grants, codes and the traces of tokens.
type Grants interface {
	// CreateGrant stores a grant together with the code that will redeem it; code may be nil, else its GrantID must be g.ID
	// (ErrInvalid). It returns ErrExists for a known id or signature, with nothing stored.
	CreateGrant(ctx context.Context, g Grant, code *Code) error
	// Grant returns one grant, expired and revoked ones too, or ErrNotFound.
	Grant(ctx context.Context, id string) (Grant, error)
	// ListGrants returns the grants of an account, "" all of them, newest first, expired and revoked ones too while they are kept.
	ListGrants(ctx context.Context, accountID string) ([]Grant, error)
	// Code returns one code, used ones with UsedAt set and expired ones too for at least MinCodeRetention, or ErrNotFound. Whether
	// it may be redeemed is decided by RedeemCode.
	Code(ctx context.Context, signature string) (Code, error)
	// RedeemCode marks the code used at the given instant and records the token, together. Of any number of concurrent calls exactly
	// one succeeds and the others get ErrConsumed. The code of a revoked grant gives ErrConsumed and ErrRevoked; an unknown code, and
	// one that had expired at that instant, ErrNotFound; a token id that was issued before, ErrExists.
	RedeemCode(ctx context.Context, signature string, at time.Time, t IssuedToken) error
	// RecordToken records a token before it is handed out. It returns ErrRevoked when its grant is revoked, ErrNotFound when it
	// names a grant that is not there, ErrExists for a known id.
	RecordToken(ctx context.Context, t IssuedToken) error
	// RevokeGrant marks the grant revoked and appends an entry that covers all its tokens to the revocation log, together. Revoking
	// twice is harmless and appends nothing; ErrNotFound for an unknown grant.
	RevokeGrant(ctx context.Context, id string, at time.Time) error
}

// Keys keeps the signing keys of an issuer, all replaced together.
type Keys interface {
	// LoadKeys returns the keys of an issuer in order of their id, and the version to give to SaveKeys; version 0 and no keys for
	// an issuer that never had any.
	LoadKeys(ctx context.Context, issuer string) (keys []Key, version int64, err error)
	// SaveKeys replaces all keys of an issuer. It returns ErrConflict, with nothing changed, unless version is what LoadKeys
	// returned last, and ErrInvalid for a key of another issuer.
	SaveKeys(ctx context.Context, issuer string, version int64, keys []Key) error
}

// Journal keeps revocations and the audit trail, and forgets what has expired.
type Journal interface {
	// Revoke appends to the revocation log and returns the entry's sequence number; r.Seq is not read.
	Revoke(ctx context.Context, r Revocation) (seq int64, err error)
	// RevocationsSince returns at most limit entries after seq, in order. Entries whose Until has long passed may be missing: they
	// no longer revoke anything.
	RevocationsSince(ctx context.Context, seq int64, limit int) ([]Revocation, error)
	// Audit appends to the audit trail.
	Audit(ctx context.Context, r AuditRecord) error
	// ListAudit returns at most limit records, newest first.
	ListAudit(ctx context.Context, limit int) ([]AuditRecord, error)
	// Sweep deletes at most limit records that have been expired at now for longer than they are kept, and returns how many it
	// deleted; a caller goes on while that equals limit. It holds the database for one small batch at a time.
	Sweep(ctx context.Context, now time.Time, limit int) (deleted int, err error)
}
