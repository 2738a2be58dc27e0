package token

import (
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// Claims is what a token says. Those that Verify returns are proved, shared between callers and read only.
type Claims struct {
	// Issuer is iss, the identifier of a trusted issuer.
	Issuer string
	// Subject is sub; empty when the token has none (TOK-20).
	Subject string
	// ClientID is client_id (RFC 9068 section 2.2); empty when the token has none.
	ClientID string
	// ID is jti; empty when the token has none.
	ID string
	// SessionID is sid, the login session at the authorization server.
	SessionID string
	// GrantID is grant_id, the grant at the authorization server that the token was issued under.
	GrantID string
	// Username is preferred_username.
	Username string
	// Audience is aud, a single string being a list of one.
	Audience []string
	// IssuedAt is iat, zero when the token has none.
	IssuedAt time.Time
	// ExpiresAt is exp.
	ExpiresAt time.Time
	// NotBefore is nbf, zero when the token has none.
	NotBefore time.Time
	// Details are the Mercure authorization details.
	Details []rar.Detail
	// Grants are the details compiled; nil grants nothing.
	Grants *rar.Grants
	// FromAuthorizationServer tells tokens of an authorization server from self-issued ones.
	FromAuthorizationServer bool
	// KeyID is the kid of the key that verified the signature; empty when the key has none.
	KeyID string
}

// expired says whether the token must not be used at now. There is no leeway: a stream closes by exp, so leeway would
// only make clients reconnect in a loop.
func (c *Claims) expired(now time.Time) bool { return !now.Before(c.ExpiresAt) }

// early says whether t is further ahead of now than clocks may differ.
func early(t, now time.Time) bool { return t.After(now.Add(Leeway)) }
