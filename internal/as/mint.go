package as

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// CommandClientID is the client_id of tokens that are minted by command.
	CommandClientID = "authz-cli"
	// MaxOfflineTTL is the longest life of a token that is minted by command.
	MaxOfflineTTL = 24 * time.Hour
)

// ErrMint is returned, wrapped, for an offline request that cannot be granted to anybody.
var ErrMint = errors.New("as: cannot mint")

// OfflineRequest asks for a token without any client, sign-in or policy: who can open the store with its secret could
// as well take the keys.
type OfflineRequest struct {
	// Issuer and Resource become iss and aud.
	Issuer   string
	Resource Resource
	// Subject becomes sub.
	Subject string
	Details []rar.Detail
	// TTL is the token's life; 0 means DefaultAccessTokenTTL, and more than MaxOfflineTTL is refused.
	TTL time.Duration
	// Actor is who gave the command, for the audit trail: the user of the operating system.
	Actor string
}

// MintOffline issues an access token directly, records its trace so that it can be revoked like any other, and
// writes an audit record with its jti. It works beside a running server. Errors wrap ErrMint when the
// request is at fault.
func MintOffline(ctx context.Context, st store.Store, keys *keyring.Ring, r OfflineRequest) (string, error) {
	if r.TTL == 0 {
		r.TTL = DefaultAccessTokenTTL
	}
	if r.Resource.HubURL == "" {
		r.Resource.HubURL = r.Resource.ID
	}
	switch {
	case r.Subject == "":
		return "", fmt.Errorf("%w: a subject is needed", ErrMint)
	case r.TTL < time.Second || r.TTL > MaxOfflineTTL:
		return "", fmt.Errorf("%w: the lifetime must be between one second and %v", ErrMint, MaxOfflineTTL)
	}
	compiler, err := topic.NewCompiler(r.Resource.HubURL, topic.Limits{})
	if err != nil {
		return "", fmt.Errorf("%w: hub URL: %w", ErrMint, err)
	}
	if _, err := rar.Compile(r.Details, compiler); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMint, err)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return "", fmt.Errorf("draw jti: %w", err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	claims := token.MintClaims{
		Issuer: r.Issuer, Subject: r.Subject, Audience: r.Resource.ID, ClientID: CommandClientID,
		ID: id.String(), IssuedAt: now, ExpiresAt: now.Add(r.TTL),
	}
	compact, err := signWith(ctx, keys, r.Details, claims)
	if err != nil {
		return "", err
	}
	if err := st.RecordToken(ctx, store.IssuedToken{
		ID: claims.ID, Issuer: claims.Issuer, Subject: claims.Subject, ClientID: claims.ClientID,
		IssuedAt: claims.IssuedAt, ExpiresAt: claims.ExpiresAt,
	}); err != nil {
		return "", fmt.Errorf("record token: %w", err)
	}
	if err := st.Audit(ctx, store.AuditRecord{
		At: time.Now(), Event: EventTokenMinted, Actor: r.Actor, Subject: r.Subject, Client: CommandClientID, Issuer: r.Issuer,
		Details: map[string]string{"jti": claims.ID, "resource": r.Resource.ID, "ttl": r.TTL.String()},
	}); err != nil {
		return "", fmt.Errorf("write audit record: %w", err)
	}
	return compact, nil
}

// signWith mints a token with the key family that equals the actions of the details.
func signWith(ctx context.Context, keys *keyring.Ring, details []rar.Detail, claims token.MintClaims) (string, error) {
	var actions rar.ActionSet
	for _, d := range details {
		actions |= d.ActionSet()
	}
	if actions == 0 {
		return "", fmt.Errorf("%w: the details name no known action", ErrMint)
	}
	key, err := keys.Signing(ctx, actions)
	if err != nil {
		return "", fmt.Errorf("find signing key: %w", err)
	}
	claims.AuthorizationDetails = rar.Encode(details)
	compact, err := token.Mint(key, claims)
	if err != nil {
		return "", fmt.Errorf("mint token: %w", err)
	}
	return compact, nil
}
