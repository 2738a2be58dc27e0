package hub

import (
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// Principal is what the engine knows about a verified access token. A nil *Principal is an
// anonymous client: it reads public updates and publishes nothing. A Principal is immutable and may
// be shared by any number of calls.
type Principal struct {
	// Issuer, Subject, ClientID, TokenID, SessionID and GrantID are the token's claims iss, sub,
	// client_id, jti, sid and grant_id. The engine uses none of them itself; they are there for
	// [Hub.CloseBy] and Options.Revoked.
	Issuer, Subject, ClientID, TokenID, SessionID, GrantID string
	// IssuedAt is the token's iat, zero when it has none. It is there for Options.Revoked, as the identifiers are.
	IssuedAt time.Time
	// ExpiresAt is the token's exp. Streams end no later (PRIV-09). The zero time never comes.
	ExpiresAt time.Time
	// Grants is what the token allows; nil allows nothing.
	Grants *rar.Grants
}

// grants returns the grants of p, nil for an anonymous client.
func (p *Principal) grants() *rar.Grants {
	if p == nil {
		return nil
	}
	return p.Grants
}
