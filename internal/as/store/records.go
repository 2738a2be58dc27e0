package store

import (
	"encoding/json"
	"time"
)

// Client is a registered OAuth client (RFC 6749 section 2).
type Client struct {
	ID           string
	Name         string
	AuthMethod   string          // "none", "private_key_jwt", "client_secret_basic" or "client_secret_post"
	SecretHash   []byte          // of the client secret, sealed at rest; nil without one
	JWKS         json.RawMessage // public keys of private_key_jwt clients; nil without them
	RedirectURIs []string
	GrantTypes   []string
	Origins      []string  // browser origins that may call the endpoints for clients: token, par and revoke
	SkipConsent  bool      // first party: consent is audited, not asked
	Static       bool      // from configuration: replaced at each start, not editable by command
	Broker       bool      // the session broker of a hub: may follow the revocation log, and ends login sessions
	Disabled     bool      // refused everywhere, kept for its history
	CreatedAt    time.Time // zero when put: the time of the first put
}

// Account is a person who can sign in.
type Account struct {
	ID           string // "u_" and random; never reused; the sub claim
	Username     string // canonical spelling (account.NormalizeUsername), unique
	PasswordHash string // PHC string; empty: no password sign-in
	Roles        []string
	Attributes   map[string]string
	Demo         bool // may be signed in by one click, in development mode only
	Disabled     bool // may not sign in, and nothing is issued for it
	CreatedAt    time.Time
	Revision     int64 // raised by the store with each update; UpdateAccount compares it
}

// BrowserSession is a login session of the authorization server in one browser.
type BrowserSession struct {
	IDHash    string // SHA-256 of the identifier in the cookie, base64url
	SessionID string // the sid claim of tokens issued in this session
	AccountID string // an existing account
	Issuer    string
	AuthTime  time.Time
	ExpiresAt time.Time // required
}

// Interaction is an authorization request on its way through login and consent.
type Interaction struct {
	IDHash      string // SHA-256 of the identifier in the URL
	BindingHash string // SHA-256 of the browser's binding secret
	Issuer      string
	ClientID    string
	PushedHash  string          // IDHash of the pushed request it came from; empty: it came through the browser
	Request     json.RawMessage // validated parameters, owned by package as
	AccountID   string          // set by login
	SessionID   string
	AuthTime    time.Time
	ConsentedAt time.Time
	CreatedAt   time.Time
	ExpiresAt   time.Time // required
}

// PushedRequest is an authorization request that a client pushed (RFC 9126), by the hash of its request URI.
type PushedRequest struct {
	IDHash      string // SHA-256 of the request URI, base64url
	Issuer      string
	ClientID    string
	Request     json.RawMessage // validated parameters, owned by package as
	BindingHash string          // of the browser that used it first; empty: none has
	CreatedAt   time.Time
	ExpiresAt   time.Time // required
}

// Code is an authorization code, by its signature, with the request it stands for.
type Code struct {
	Signature string
	Issuer    string
	ClientID  string
	GrantID   string
	Request   json.RawMessage // serialised fosite requester, owned by package as
	PKCE      json.RawMessage // serialised PKCE requester; nil without one
	CreatedAt time.Time
	ExpiresAt time.Time // required; RedeemCode refuses the code from this instant on
	UsedAt    time.Time // zero: unused
}

// Grant is what one account (or client) allowed one client at one resource.
type Grant struct {
	ID        string
	Issuer    string
	ClientID  string
	AccountID string // empty for client_credentials
	SessionID string
	Resource  string
	Details   json.RawMessage // canonical authorization details: the ceiling of every token of the grant
	CreatedAt time.Time
	ExpiresAt time.Time // zero: until it is revoked
	RevokedAt time.Time // zero: in force
}

// IssuedToken is the trace of an access token: never the token itself.
type IssuedToken struct {
	ID        string // jti
	Issuer    string
	GrantID   string // empty for a token without a grant; otherwise an existing grant that is not revoked
	SessionID string
	Subject   string
	ClientID  string
	IssuedAt  time.Time
	ExpiresAt time.Time // required
	RevokedAt time.Time // zero: not revoked by itself (its grant, session, subject or client may be); set by RevokeToken
}

// RefreshToken is a refresh token (RFC 6749 section 1.5), by its hash: never the token itself.
type RefreshToken struct {
	ID          string // SHA-256 of the token, base64url
	Issuer      string
	ClientID    string
	GrantID     string          // the family: an existing grant
	Request     json.RawMessage // what its tokens carry, owned by package as
	CreatedAt   time.Time
	ExpiresAt   time.Time // required: the end of its idle time; it is refused from this instant on
	UsedAt      time.Time // when it was rotated; zero: it is still the one to use
	SuccessorID string    // the token that took its place; set together with UsedAt
}

// GrantFilter selects grants; an empty field selects all.
type GrantFilter struct {
	AccountID string
	ClientID  string
	SessionID string
}

// Key is a signing key at rest; the store seals Private with its secret file.
type Key struct {
	ID          string
	Issuer      string
	Algorithm   string
	Actions     uint8 // rar.ActionSet
	State       string
	Private     []byte // JWK JSON in memory, sealed at rest
	CreatedAt   time.Time
	ActivatesAt time.Time
	RetiresAt   time.Time
	ExpiresAt   time.Time
}

// RevocationKind names what a revocation entry revokes.
type RevocationKind string

// The kinds of revocation.
const (
	RevokeToken   RevocationKind = "jti"
	RevokeGrant   RevocationKind = "grant"
	RevokeSession RevocationKind = "sid"
	RevokeSubject RevocationKind = "sub"
	RevokeClient  RevocationKind = "client"
)

// Valid reports whether k is one of the kinds above.
func (k RevocationKind) Valid() bool {
	switch k {
	case RevokeToken, RevokeGrant, RevokeSession, RevokeSubject, RevokeClient:
		return true
	default:
		return false
	}
}

// Revocation is one entry of the ordered revocation log.
type Revocation struct {
	Seq          int64 // assigned by the store, strictly increasing, never reused
	Issuer       string
	Kind         RevocationKind
	Value        string
	IssuedBefore time.Time // only tokens issued at or before this instant are revoked
	Until        time.Time // after this instant every such token has expired
}

// AuditRecord is a security event, without secrets.
type AuditRecord struct {
	At      time.Time
	Event   string // from the fixed list in package as
	Actor   string // account id, client id or operating system user
	Subject string
	Client  string
	Issuer  string
	Details map[string]string
}
