package as

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// Revoke takes back a refresh token or an access token of the client (RFC 7009). A refresh token takes its grant with it, with all
// tokens of it, whether or not it was used before; an access token goes alone. A token of a session broker, of either kind, ends the
// login session it was issued in, in every application: a broker revokes when somebody signs out, and that is what it means. A
// token that is not known here is no error. Every error is an *OAuthError.
func (s *Server) Revoke(ctx context.Context, r ClientRequest) error {
	client, p, err := s.readClientRequest(ctx, r)
	if err == nil {
		err = s.revoke(ctx, client, p)
	}
	if err != nil {
		return s.clientError(ctx, PathRevoke, client.ID, err)
	}
	return nil
}

// revoke tells the kinds of tokens apart by their form; token_type_hint is not needed (section 2.1).
func (s *Server) revoke(ctx context.Context, client store.Client, p params) error {
	presented := p.get("token")
	switch {
	case presented == "":
		return refuse(CodeInvalidRequest, "The token parameter is missing.")
	case isRefreshToken(presented):
		return s.revokeRefreshToken(ctx, client, presented)
	default:
		return s.revokeAccessToken(ctx, client, presented)
	}
}

// foreignToken refuses what was issued to another client (section 2.1).
func foreignToken() *OAuthError {
	return refuse(CodeInvalidGrant, "The token was issued to another client.")
}

func (s *Server) revokeRefreshToken(ctx context.Context, client store.Client, presented string) error {
	stored, err := s.refreshToken(ctx, presented)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case stored.ClientID != client.ID:
		return foreignToken()
	}
	grant, err := s.store.Grant(ctx, stored.GrantID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read grant: %w", err)
	}
	if client.Broker && grant.SessionID != "" {
		return s.endSessionFor(ctx, client, grant.SessionID, grant.AccountID)
	}
	return s.revokeGrant(ctx, grant.ID, store.AuditRecord{
		Event: EventGrantRevoked, Actor: client.ID, Subject: grant.AccountID, Client: client.ID,
	})
}

// reused revokes the grant of a code or refresh token that came again long after its use: somebody else may have used it first
// (RFC 6749 section 4.1.2, RFC 9700 section 4.14.2).
func (s *Server) reused(ctx context.Context, event, clientID, grantID string, sess *session) error {
	return s.revokeGrant(ctx, grantID, store.AuditRecord{
		Event: event, Actor: clientID, Subject: sess.Subject, Client: clientID,
	})
}

// revokeGrant revokes a grant and records it, once: who has an old token can come with it as often as they like.
func (s *Server) revokeGrant(ctx context.Context, id string, record store.AuditRecord) error {
	grant, err := s.store.Grant(ctx, id)
	if errors.Is(err, store.ErrNotFound) || (err == nil && !grant.RevokedAt.IsZero()) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read grant: %w", err)
	}
	if err := s.store.RevokeGrant(ctx, id, time.Now()); err != nil {
		return fmt.Errorf("revoke grant: %w", err)
	}
	s.revoked()
	record.Details = map[string]string{"grant_id": id}
	s.audit(ctx, record)
	return nil
}

// endSessionFor ends a login session on behalf of a broker. Its end is asked for again even when the grant was revoked before.
func (s *Server) endSessionFor(ctx context.Context, client store.Client, sessionID, accountID string) error {
	return s.endSession(ctx, sessionID, store.AuditRecord{Actor: client.ID, Subject: accountID, Client: client.ID})
}

// endSession ends a login session, in every browser and application, and records it, once.
func (s *Server) endSession(ctx context.Context, sessionID string, record store.AuditRecord) error {
	ended, err := s.store.EndSession(ctx, s.options.Issuer, sessionID, time.Now())
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	if !ended {
		return nil
	}
	s.revoked()
	record.Event = EventSessionEnded
	record.Details = map[string]string{"sid": sessionID}
	s.audit(ctx, record)
	return nil
}

func (s *Server) revokeAccessToken(ctx context.Context, client store.Client, presented string) error {
	id, err := s.ownTokenID(ctx, presented)
	if err != nil || id == "" {
		return err
	}
	issued, err := s.store.IssuedToken(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read token: %w", err)
	case issued.Issuer != s.options.Issuer:
		return nil
	case issued.ClientID != client.ID:
		return foreignToken()
	case client.Broker && issued.SessionID != "":
		return s.endSessionFor(ctx, client, issued.SessionID, issued.Subject)
	case !issued.RevokedAt.IsZero():
		return nil
	}
	if err := s.store.RevokeToken(ctx, id, time.Now()); err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("revoke token: %w", err)
	}
	s.revoked()
	s.audit(ctx, store.AuditRecord{
		Event: EventTokenRevoked, Actor: client.ID, Subject: issued.Subject, Client: client.ID, Details: map[string]string{"jti": id},
	})
	return nil
}

// ownTokenID returns the jti of an access token that this server signed, "" for anything else. A jti is no secret, so whoever
// wants to revoke must show the token. What the token allows, and where, does not matter here.
func (s *Server) ownTokenID(ctx context.Context, compact string) (string, error) {
	if len(compact) > token.DefaultMaxBytes || strings.Count(compact, ".") != 2 {
		return "", nil
	}
	message, err := jws.ParseString(compact)
	if err != nil || len(message.Signatures()) != 1 {
		return "", nil //nolint:nilerr // not a token of this server
	}
	header := message.Signatures()[0].ProtectedHeaders()
	keys, err := s.keys.Keys(ctx, header.KeyID())
	if err != nil {
		return "", fmt.Errorf("read keys: %w", err)
	}
	for _, k := range keys {
		if k.ID != header.KeyID() || k.Algorithm != header.Algorithm().String() {
			continue
		}
		payload, err := jws.Verify([]byte(compact), jws.WithKey(header.Algorithm(), k.Material))
		if err != nil {
			continue
		}
		var claims struct {
			ID string `json:"jti"`
		}
		if err := json.Unmarshal(payload, &claims); err != nil {
			return "", fmt.Errorf("decode own token: %w", err)
		}
		return claims.ID, nil
	}
	return "", nil
}
