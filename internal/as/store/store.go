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
	// Backup writes a copy of the database to a new file that only its owner can use, and makes it durable before it returns. The
	// copy holds all that was acknowledged before Backup began, opens with the same secret, and takes nothing from those who read or
	// write meanwhile. It returns an error that wraps fs.ErrExist, with nothing changed, when path exists.
	Backup(ctx context.Context, path string) error
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
	// PutClient creates or replaces a client. Putting what is stored already changes nothing, Version included. When the change
	// disables the client, all that was issued to it is revoked with it, as DeleteClient does.
	PutClient(ctx context.Context, c Client) error
	// DeleteClient removes a client, revokes its grants and appends an entry for it to the revocation log for every issuer that has
	// keys, together. It returns ErrNotFound, with nothing done, for an unknown client.
	DeleteClient(ctx context.Context, id string, at time.Time) error
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
	// ErrNotFound for an unknown id. CreatedAt never changes. When the change disables the account, it is signed out everywhere with
	// it, as EndBrowserSessions does.
	UpdateAccount(ctx context.Context, a Account) error
}

// Logins keeps browser sessions and what leads to them. Expired ones are not found.
type Logins interface {
	Requests
	// CreateBrowserSession adds a session; ErrExists for a known IDHash, ErrNotFound for an unknown account, ErrRevoked for a disabled
	// one and for a SessionID that EndSession or EndBrowserSessions ended.
	CreateBrowserSession(ctx context.Context, s BrowserSession) error
	// BrowserSession returns one session, or ErrNotFound.
	BrowserSession(ctx context.Context, idHash string) (BrowserSession, error)
	// DeleteBrowserSession forgets one session in one browser. What was issued in it stays in force, and a session of the same
	// SessionID may follow. An unknown session is no error.
	DeleteBrowserSession(ctx context.Context, idHash string) error
	// EndSession ends the login session with this sid, in all browsers: it deletes its browser sessions, revokes its grants and
	// appends one entry for it to the revocation log, together. Nothing is issued in it any more. Ending a session twice is harmless
	// and appends nothing; one that was never seen is ended too. It returns whether the session ended now, not before.
	EndSession(ctx context.Context, issuer, sessionID string, at time.Time) (ended bool, err error)
	// EndBrowserSessions signs an account out everywhere, as after a change of password: it deletes its browser sessions, revokes its
	// grants and appends an entry for it to the revocation log for every issuer that has keys, together. Nothing is issued in those
	// sessions any more. It returns how many browser sessions there were.
	EndBrowserSessions(ctx context.Context, accountID string) (ended int, err error)
}

// Requests keeps authorization requests until they are answered: pushed ones, and interactions, which are requests on their way
// through login and consent. Expired ones are not found.
type Requests interface {
	// CreateInteraction adds an interaction; ErrExists for a known IDHash.
	CreateInteraction(ctx context.Context, i Interaction) error
	// Interaction returns one interaction, or ErrNotFound.
	Interaction(ctx context.Context, idHash string) (Interaction, error)
	// UpdateInteraction replaces what login and consent may set: AccountID, SessionID, AuthTime, ConsentedAt and Request. The
	// binding, the issuer, the client, the pushed request and the times of the interaction stay. It returns ErrNotFound for one that
	// is gone.
	UpdateInteraction(ctx context.Context, i Interaction) error
	// FinishInteraction deletes the interaction, and the pushed request it came from. It returns ErrNotFound when another request
	// finished it first, and ErrConsumed when the pushed request was used up by another interaction or by UsePushedRequest. A pushed
	// request that expired meanwhile does not matter: it was used in time when the interaction began.
	FinishInteraction(ctx context.Context, idHash string) error
	// CreatePushedRequest adds a pushed request; ErrExists for a known IDHash.
	CreatePushedRequest(ctx context.Context, p PushedRequest) error
	// PushedRequest returns one pushed request that is not used up, or ErrNotFound.
	PushedRequest(ctx context.Context, idHash string) (PushedRequest, error)
	// BindPushedRequest ties a pushed request to the browser with this binding. It returns ErrConsumed when it is tied to another,
	// and ErrNotFound for one that is unknown, used up or expired.
	BindPushedRequest(ctx context.Context, idHash, bindingHash string) error
	// UsePushedRequest uses up a pushed request that needs no interaction; ErrConsumed when that had been done before, or there is
	// none.
	UsePushedRequest(ctx context.Context, idHash string) error
}

// Grants keeps grants and their codes.
type Grants interface {
	Tokens
	// CreateGrant stores a grant together with the code that will redeem it; code may be nil, else its GrantID must be g.ID
	// (ErrInvalid). It returns ErrExists for a known id or signature, and ErrRevoked when the client was deleted or is disabled, the
	// account is disabled or the session has ended, with nothing stored.
	CreateGrant(ctx context.Context, g Grant, code *Code) error
	// Grant returns one grant, expired and revoked ones too, or ErrNotFound.
	Grant(ctx context.Context, id string) (Grant, error)
	// ListGrants returns the grants that the filter selects, newest first, expired and revoked ones too while they are kept.
	ListGrants(ctx context.Context, f GrantFilter) ([]Grant, error)
	// RevokeGrant marks the grant revoked and appends an entry that covers all its tokens to the revocation log, together. Revoking
	// twice is harmless and appends nothing; ErrNotFound for an unknown grant.
	RevokeGrant(ctx context.Context, id string, at time.Time) error
	// Code returns one code, used ones with UsedAt set and expired ones too for at least MinCodeRetention, or ErrNotFound. Whether
	// it may be redeemed is decided by RedeemCode.
	Code(ctx context.Context, signature string) (Code, error)
	// RedeemCode marks the code used at the given instant, records the token and stores the refresh token, if there is one, together.
	// Of any number of concurrent calls exactly one succeeds and the others get ErrConsumed. The code of a revoked grant gives
	// ErrConsumed and ErrRevoked; an unknown code, and one that had expired at that instant, ErrNotFound; a token id that was issued
	// before, ErrExists; tokens of another grant than the code, ErrInvalid.
	RedeemCode(ctx context.Context, signature string, at time.Time, t IssuedToken, refresh *RefreshToken) error
}

// Tokens keeps the traces of access tokens, and refresh tokens.
type Tokens interface {
	// RecordToken records a token before it is handed out. It returns ErrRevoked when its grant is revoked or, for a token without a
	// grant, its client was deleted or is disabled; ErrNotFound when it names a grant that is not there, ErrExists for a known id.
	RecordToken(ctx context.Context, t IssuedToken) error
	// IssuedToken returns the trace of one token, expired ones too while they are kept, or ErrNotFound.
	IssuedToken(ctx context.Context, id string) (IssuedToken, error)
	// RevokeToken marks one access token revoked and appends an entry for it to the revocation log, together. Revoking twice is
	// harmless and appends nothing; ErrNotFound for an unknown token.
	RevokeToken(ctx context.Context, id string, at time.Time) error
	// RefreshToken returns one refresh token, used ones and expired ones too while they are kept, or ErrNotFound. Whether it may be
	// used is decided by UseRefreshToken and RotateRefreshToken.
	RefreshToken(ctx context.Context, id string) (RefreshToken, error)
	// UseRefreshToken records a token under a refresh token that stays the same, and moves the end of its idle time to expiresAt,
	// together. Concurrent calls all succeed. It returns ErrRevoked when the grant is revoked, ErrConsumed when the refresh token was
	// rotated, ErrNotFound for one that is unknown or had expired at that instant, ErrInvalid for a token of another grant.
	UseRefreshToken(ctx context.Context, id string, at, expiresAt time.Time, t IssuedToken) error
	// RotateRefreshToken records a token and puts successor in the place of the refresh token, together. When that was done before
	// with a successor of the same ID and less than grace ago, the token is recorded and the stored successor stays as it is.
	// Otherwise a rotated one gives ErrConsumed. The other errors are those of UseRefreshToken; successor and token must be of the
	// same grant as the refresh token (ErrInvalid).
	RotateRefreshToken(ctx context.Context, id string, at time.Time, grace time.Duration, successor RefreshToken, t IssuedToken) error
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
