package as

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const (
	// refreshGrace is how long after its rotation a refresh token may come again and get the same successor: the answer may have
	// been lost, or two tabs asked at once.
	refreshGrace = 30 * time.Second
	// refreshPrefix starts every refresh token, for people and scanners that come across one.
	refreshPrefix = "rt_"
)

// refreshTokens makes refresh tokens: a prefix and 256 bits. The store has the hash. The one of a code is random, and that of
// a public client's refresh token is derived from it (successor).
type refreshTokens struct{}

var _ oauth2.RefreshTokenStrategy = refreshTokens{}

// GenerateRefreshToken draws the first refresh token of a grant. fosite hands it out itself.
func (refreshTokens) GenerateRefreshToken(context.Context, fosite.Requester) (token, signature string, err error) {
	token = refreshPrefix + newSecret()
	return token, hashSecret(token), nil
}

// RefreshTokenSignature is under which a refresh token is stored.
func (refreshTokens) RefreshTokenSignature(_ context.Context, token string) string {
	return hashSecret(token)
}

// ValidateRefreshToken refuses: using refresh tokens is not fosite's.
func (refreshTokens) ValidateRefreshToken(context.Context, fosite.Requester, string) error {
	return fosite.ErrInvalidTokenFormat
}

// isRefreshToken says whether a text could be a refresh token of this server.
func isRefreshToken(s string) bool {
	rest, ok := strings.CutPrefix(s, refreshPrefix)
	return ok && isSecret(rest)
}

// successor is the token that takes the place of one that is used up. Whoever presents the old one within the grace time gets
// the same, in every process of the issuer, and the store needs to keep neither.
func (s *Server) successor(token string) string {
	m := hmac.New(sha256.New, s.refreshKey[:])
	_, _ = m.Write([]byte(token)) // never fails
	return refreshPrefix + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// newRefreshToken is the record of a new refresh token.
func (s *Server) newRefreshToken(id string, r fosite.Requester, sess *session) (store.RefreshToken, error) {
	kept := *sess
	kept.CodeExpiresAt = time.Time{} // the code's, which has been used
	request, err := kept.encode()
	if err != nil {
		return store.RefreshToken{}, err
	}
	now := time.Now()
	return store.RefreshToken{
		ID:        id,
		Issuer:    s.options.Issuer,
		ClientID:  r.GetClient().GetID(),
		GrantID:   r.GetID(),
		Request:   request,
		CreatedAt: now,
		ExpiresAt: s.idleEnd(now, sess),
	}, nil
}

// idleEnd is until when a refresh token that is used or made now may be used next.
func (s *Server) idleEnd(now time.Time, sess *session) time.Time {
	end := now.Add(s.options.RefreshIdle)
	if !sess.EndsAt.IsZero() && end.After(sess.EndsAt) {
		return sess.EndsAt
	}
	return end
}

// proveRefreshToken checks a refresh token (RFC 6749 section 6) and prepares its use. The store decides in the transaction that
// uses it; what is found out here is only what needs no decision, and a repeat after the grace time, which costs the family.
func (s *Server) proveRefreshToken(ctx context.Context, client store.Client, r fosite.AccessRequester, sess *session) error {
	presented := r.GetRequestForm().Get("refresh_token")
	if presented == "" {
		return refuse(CodeInvalidRequest, "The refresh_token parameter is missing.")
	}
	stored, err := s.refreshToken(ctx, presented)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return badGrant().because(err)
	case err != nil:
		return err
	case stored.ClientID != client.ID: // whose it is must not suffer from that
		return badGrant().because(errors.New("as: refresh token of another client"))
	}
	if err := sess.hydrate(stored.Request); err != nil {
		return fmt.Errorf("decode session: %w", err)
	}
	now := time.Now()
	rotated := stored.SuccessorID != ""
	switch {
	case rotated && now.Sub(stored.UsedAt) >= refreshGrace:
		if err := s.reused(ctx, EventRefreshReused, client.ID, stored.GrantID, sess); err != nil {
			return err
		}
		return badGrant().because(errors.New("as: refresh token used before"))
	case !rotated && !now.Before(stored.ExpiresAt):
		return badGrant().because(errors.New("as: refresh token has expired"))
	}
	r.SetID(stored.GrantID)
	return s.prepareRefresh(ctx, client, presented, stored, r, sess)
}

// prepareRefresh notes the use in the unit of work. A token of a public client is replaced (RFC 9700 section 4.14.2), one of a
// client that authenticates stays, so that nothing is lost when an answer is.
func (s *Server) prepareRefresh(
	ctx context.Context, client store.Client, presented string, stored store.RefreshToken, r fosite.Requester, sess *session,
) error {
	w, err := workOf(ctx)
	if err != nil {
		return err
	}
	w.refreshes = stored.ID
	if client.AuthMethod != AuthNone && stored.SuccessorID == "" {
		sess.issuing.refreshToken = presented
		w.idleEnd = s.idleEnd(time.Now(), sess)
		return nil
	}
	sess.issuing.refreshToken = s.successor(presented)
	next, err := s.newRefreshToken(hashSecret(sess.issuing.refreshToken), r, sess)
	if err != nil {
		return err
	}
	w.refresh = &next
	return nil
}

// refreshToken reads a refresh token of this issuer; store.ErrNotFound when there is none.
func (s *Server) refreshToken(ctx context.Context, presented string) (store.RefreshToken, error) {
	if !isRefreshToken(presented) {
		return store.RefreshToken{}, store.ErrNotFound
	}
	stored, err := s.store.RefreshToken(ctx, hashSecret(presented))
	switch {
	case err != nil:
		return store.RefreshToken{}, fmt.Errorf("read refresh token: %w", err)
	case stored.Issuer != s.options.Issuer:
		return store.RefreshToken{}, store.ErrNotFound
	}
	return stored, nil
}
