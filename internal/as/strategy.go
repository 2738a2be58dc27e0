package as

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// accessTokens makes the access tokens of the grants (RFC 9068).
type accessTokens struct {
	server *Server
}

var _ oauth2.AccessTokenStrategy = accessTokens{}

// GenerateAccessToken signs a token for the session's effective details with a key that serves exactly their actions. What
// it returns as signature is the jti: the signature part of a JWS has more than one spelling.
func (a accessTokens) GenerateAccessToken(ctx context.Context, r fosite.Requester) (compact, signature string, err error) {
	sess, err := sessionOf(r)
	if err != nil {
		return "", "", err
	}
	if len(sess.issuing.details) == 0 { // whatever the grant: detailsHandler alone fills this in
		return "", "", errors.New("as: no details to issue a token for")
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return "", "", fmt.Errorf("draw jti: %w", err)
	}
	sess.issuing.tokenID = id.String()
	sess.issuing.issuedAt = time.Now().UTC().Truncate(time.Second)
	claims := token.MintClaims{
		Issuer:    a.server.options.Issuer,
		Subject:   sess.Subject,
		Audience:  sess.Resource,
		ClientID:  r.GetClient().GetID(),
		ID:        sess.issuing.tokenID,
		IssuedAt:  sess.issuing.issuedAt,
		ExpiresAt: sess.issuing.expiresAt,
		SessionID: sess.SessionID,
		Username:  sess.Username,
	}
	if sess.granted() {
		claims.GrantID = r.GetID()
	}
	if compact, err = a.server.sign(ctx, sess.issuing.details, claims); err != nil {
		return "", "", err
	}
	return compact, sess.issuing.tokenID, nil
}

// AccessTokenSignature has no answer: no access token is ever handed back to fosite.
func (accessTokens) AccessTokenSignature(context.Context, string) string { return "" }

// ValidateAccessToken refuses: tokens are verified by package token alone.
func (accessTokens) ValidateAccessToken(context.Context, fosite.Requester, string) error {
	return fosite.ErrInvalidTokenFormat
}

// sign mints a token with the key family of the actions in details.
func (s *Server) sign(ctx context.Context, details []rar.Detail, claims token.MintClaims) (string, error) {
	return signWith(ctx, s.keys, details, claims)
}

// lifetime returns how long the next access token lives: between 90 % and 100 % of ttl, in whole seconds.
func lifetime(ttl time.Duration) time.Duration {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	spread := ttl / 10
	if spread < time.Second {
		return ttl.Truncate(time.Second)
	}
	less := time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(spread))
	return (ttl - less).Truncate(time.Second)
}
