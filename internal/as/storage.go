package as

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"
	"github.com/ory/fosite/handler/pkce"
	fstorage "github.com/ory/fosite/storage"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// reuseGrace is how long after its redemption a code may come again without its grant being revoked: a client that sent
// its request twice must not lose what the first one got.
const reuseGrace = 10 * time.Second

// errNotStored says that fosite asked for a kind of record that this server does not keep.
var errNotStored = errors.New("as: not stored")

// storage shows the store to fosite. fosite writes a code and its PKCE challenge, or a used code and the tokens for it, in
// several calls; storage collects them in a unit of work that the store commits in one transaction.
type storage struct {
	server *Server
}

var (
	_ fosite.Storage                = storage{}
	_ oauth2.CoreStorage            = storage{}
	_ oauth2.TokenRevocationStorage = storage{}
	_ pkce.PKCERequestStorage       = storage{}
	_ fstorage.Transactional        = storage{}
)

// work is what one request is about to write. It belongs to that request's goroutine.
type work struct {
	// code is a code that is being made.
	code store.Code
	// redeems is the signature of a code, or refreshes the ID of a refresh token, that is being used. Neither: nothing is.
	redeems, refreshes string
	// refresh is a refresh token that is being made: for a code, or in the place of the one that is used.
	refresh *store.RefreshToken
	// idleEnd is until when a refresh token that stays may be used next.
	idleEnd time.Time
	token   store.IssuedToken
	// recorded says that the token is in the store, so that it may be handed out.
	recorded bool
}

type workKey struct{}

// withWork begins a unit of work. It travels in the context because fosite's transactions do.
func withWork(ctx context.Context) (context.Context, *work) {
	w := new(work)
	return context.WithValue(ctx, workKey{}, w), w
}

func workOf(ctx context.Context) (*work, error) {
	w, ok := ctx.Value(workKey{}).(*work)
	if !ok {
		return nil, errors.New("as: write outside a unit of work")
	}
	return w, nil
}

// BeginTX implements fosite's Transactional. The unit of work began with the request.
func (storage) BeginTX(ctx context.Context) (context.Context, error) {
	_, err := workOf(ctx)
	return ctx, err
}

// Commit is where every token is recorded, together with the use of what it is issued for. Of concurrent redemptions of a code
// all but one fail here.
func (s storage) Commit(ctx context.Context) error {
	w, err := workOf(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	switch {
	case w.token.ID == "" || w.recorded:
		return errors.New("as: no token to record")
	case w.redeems != "":
		err = s.server.store.RedeemCode(ctx, w.redeems, now, w.token, w.refresh)
	case w.refreshes != "" && w.refresh != nil:
		err = s.server.store.RotateRefreshToken(ctx, w.refreshes, now, refreshGrace, *w.refresh, w.token)
	case w.refreshes != "":
		err = s.server.store.UseRefreshToken(ctx, w.refreshes, now, w.idleEnd, w.token)
	default:
		err = s.server.store.RecordToken(ctx, w.token)
	}
	if err != nil {
		return fmt.Errorf("record token: %w", err)
	}
	w.recorded = true
	return nil
}

// Rollback has nothing to undo: nothing is written before Commit.
func (storage) Rollback(context.Context) error { return nil }

// GetClient implements fosite.ClientManager.
func (s storage) GetClient(ctx context.Context, id string) (fosite.Client, error) {
	c, err := s.server.client(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.server.fositeClient(c), nil
}

// ClientAssertionJWTValid is never asked: clients are authenticated before fosite sees the request.
func (storage) ClientAssertionJWTValid(context.Context, string) error { return errNotStored }

// SetClientAssertionJWT is never called, see ClientAssertionJWTValid.
func (storage) SetClientAssertionJWT(context.Context, string, time.Time) error { return errNotStored }

// codeRecord is the stored form of the request behind a code.
type codeRecord struct {
	RequestedAt time.Time       `json:"requested_at"`
	RedirectURI string          `json:"redirect_uri,omitempty"` // empty when the request had none
	Session     json.RawMessage `json:"session"`
}

// pkceRecord is the stored form of a PKCE challenge.
type pkceRecord struct {
	Challenge string `json:"code_challenge"`
	Method    string `json:"code_challenge_method"`
}

// CreateAuthorizeCodeSession notes a new code in the unit of work.
func (s storage) CreateAuthorizeCodeSession(ctx context.Context, signature string, r fosite.Requester) error {
	w, err := workOf(ctx)
	if err != nil {
		return err
	}
	sess, err := sessionOf(r)
	if err != nil {
		return err
	}
	stored, err := sess.encode()
	if err != nil {
		return err
	}
	request, err := json.Marshal(codeRecord{
		RequestedAt: r.GetRequestedAt(),
		RedirectURI: r.GetRequestForm().Get("redirect_uri"),
		Session:     stored,
	})
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	w.code = store.Code{
		Signature: signature,
		Issuer:    s.server.options.Issuer,
		ClientID:  r.GetClient().GetID(),
		GrantID:   r.GetID(),
		Request:   request,
		CreatedAt: time.Now(),
		ExpiresAt: sess.CodeExpiresAt,
	}
	return nil
}

// GetAuthorizeCodeSession returns the request behind a code and hydrates the session that was passed: fosite judges the
// code's expiry by that one. A used code comes with ErrInvalidatedAuthorizeCode, after its grant was revoked if the
// first use is too long ago to have been the same request.
func (s storage) GetAuthorizeCodeSession(ctx context.Context, signature string, passed fosite.Session) (fosite.Requester, error) {
	code, err := s.code(ctx, signature)
	if err != nil {
		return nil, err
	}
	var record codeRecord
	if err := json.Unmarshal(code.Request, &record); err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	sess, ok := passed.(*session)
	if !ok {
		return nil, fmt.Errorf("as: session is a %T", passed)
	}
	if err := sess.hydrate(record.Session); err != nil {
		return nil, fmt.Errorf("decode session: %w", err)
	}
	r, err := s.requester(ctx, code, sess)
	if err != nil {
		return nil, err
	}
	r.RequestedAt = record.RequestedAt
	if record.RedirectURI != "" {
		r.Form.Set("redirect_uri", record.RedirectURI)
	}
	r.RequestedAudience = fosite.Arguments{sess.Resource}
	r.GrantedAudience = fosite.Arguments{sess.Resource}
	if code.UsedAt.IsZero() {
		return r, nil
	}
	if time.Since(code.UsedAt) > reuseGrace {
		if err := s.server.reused(ctx, EventCodeReused, code.ClientID, code.GrantID, sess); err != nil {
			return nil, err
		}
	}
	return r, fosite.ErrInvalidatedAuthorizeCode
}

// InvalidateAuthorizeCodeSession notes the use of a code in the unit of work.
func (storage) InvalidateAuthorizeCodeSession(ctx context.Context, signature string) error {
	w, err := workOf(ctx)
	if err != nil {
		return err
	}
	w.redeems = signature
	return nil
}

// CreatePKCERequestSession adds the challenge to the code of the unit of work.
func (storage) CreatePKCERequestSession(ctx context.Context, signature string, r fosite.Requester) error {
	w, err := workOf(ctx)
	if err != nil {
		return err
	}
	if w.code.Signature != signature {
		return errors.New("as: challenge of another code")
	}
	form := r.GetRequestForm()
	w.code.PKCE, err = json.Marshal(pkceRecord{
		Challenge: form.Get("code_challenge"), Method: form.Get("code_challenge_method"),
	})
	if err != nil {
		return fmt.Errorf("encode challenge: %w", err)
	}
	return nil
}

// GetPKCERequestSession returns the challenge of a code. It does not touch the session.
func (s storage) GetPKCERequestSession(ctx context.Context, signature string, passed fosite.Session) (fosite.Requester, error) {
	code, err := s.code(ctx, signature)
	if err != nil {
		return nil, err
	}
	var record pkceRecord
	if err := json.Unmarshal(code.PKCE, &record); err != nil {
		return nil, fmt.Errorf("decode challenge: %w", err)
	}
	r, err := s.requester(ctx, code, passed)
	if err != nil {
		return nil, err
	}
	r.Form.Set("code_challenge", record.Challenge)
	r.Form.Set("code_challenge_method", record.Method)
	return r, nil
}

// DeletePKCERequestSession keeps the challenge: fosite deletes it before it compares, which would let a request with a wrong
// verifier spoil the code. It goes when the code goes.
func (storage) DeletePKCERequestSession(context.Context, string) error { return nil }

// CreateAccessTokenSession notes the trace of a token in the unit of work; signature is its jti.
func (s storage) CreateAccessTokenSession(ctx context.Context, signature string, r fosite.Requester) error {
	w, err := workOf(ctx)
	if err != nil {
		return err
	}
	sess, err := sessionOf(r)
	if err != nil {
		return err
	}
	w.token = store.IssuedToken{
		ID:        signature,
		Issuer:    s.server.options.Issuer,
		SessionID: sess.SessionID,
		Subject:   sess.Subject,
		ClientID:  r.GetClient().GetID(),
		IssuedAt:  sess.issuing.issuedAt,
		ExpiresAt: sess.issuing.expiresAt,
	}
	if sess.granted() {
		w.token.GrantID = r.GetID()
	}
	return nil
}

// GetAccessTokenSession is not needed: access tokens carry their session themselves.
func (storage) GetAccessTokenSession(context.Context, string, fosite.Session) (fosite.Requester, error) {
	return nil, fosite.ErrNotFound
}

// DeleteAccessTokenSession has nothing to delete.
func (storage) DeleteAccessTokenSession(context.Context, string) error { return nil }

// CreateRefreshTokenSession notes the first refresh token of a grant in the unit of work. fosite calls it for the code of a client
// that may use refresh tokens.
func (s storage) CreateRefreshTokenSession(ctx context.Context, signature, _ string, r fosite.Requester) error {
	w, err := workOf(ctx)
	if err != nil {
		return err
	}
	sess, err := sessionOf(r)
	if err != nil {
		return err
	}
	first, err := s.server.newRefreshToken(signature, r, sess)
	if err != nil {
		return err
	}
	w.refresh = &first
	return nil
}

// GetRefreshTokenSession is not called: using refresh tokens is not fosite's (grants.go).
func (storage) GetRefreshTokenSession(context.Context, string, fosite.Session) (fosite.Requester, error) {
	return nil, fosite.ErrNotFound
}

// DeleteRefreshTokenSession is not called, see GetRefreshTokenSession.
func (storage) DeleteRefreshTokenSession(context.Context, string) error { return nil }

// RotateRefreshToken is not called, see GetRefreshTokenSession.
func (storage) RotateRefreshToken(context.Context, string, string) error { return errNotStored }

// RevokeRefreshToken is called by fosite for every code that comes again. GetAuthorizeCodeSession, which knows when it was
// used first, has done what is to be done.
func (storage) RevokeRefreshToken(context.Context, string) error { return nil }

// RevokeAccessToken has nothing left to do, see RevokeRefreshToken.
func (storage) RevokeAccessToken(context.Context, string) error { return nil }

// code reads a code of this issuer, as fosite.ErrNotFound when there is none.
func (s storage) code(ctx context.Context, signature string) (store.Code, error) {
	code, err := s.server.store.Code(ctx, signature)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Code{}, fosite.ErrNotFound
	case err != nil:
		return store.Code{}, fmt.Errorf("read code: %w", err)
	case code.Issuer != s.server.options.Issuer:
		return store.Code{}, fosite.ErrNotFound
	}
	return code, nil
}

// requester rebuilds the request behind a code; every call returns a fresh one, as two requests may redeem at once.
func (s storage) requester(ctx context.Context, code store.Code, sess fosite.Session) (*fosite.Request, error) {
	c, err := s.server.client(ctx, code.ClientID)
	if errors.Is(err, ErrClient) {
		return nil, fosite.ErrNotFound // deleted or disabled since
	}
	if err != nil {
		return nil, err
	}
	r := fosite.NewRequest()
	r.ID = code.GrantID
	r.Client = s.server.fositeClient(c)
	r.Form = url.Values{}
	r.Session = sess
	return r, nil
}

func sessionOf(r fosite.Requester) (*session, error) {
	sess, ok := r.GetSession().(*session)
	if !ok {
		return nil, fmt.Errorf("as: session is a %T", r.GetSession())
	}
	return sess, nil
}
