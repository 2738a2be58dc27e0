package ashttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// troubledStore fails, or finds that somebody was faster, when it is told to.
type troubledStore struct {
	store.Store

	err error
}

func (s *troubledStore) trouble() error {
	if s.err != nil {
		return fmt.Errorf("store: %w", s.err)
	}
	return nil
}

func (s *troubledStore) CreateGrant(ctx context.Context, g store.Grant, c *store.Code) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Store.CreateGrant(ctx, g, c)
}

func (s *troubledStore) CreatePushedRequest(ctx context.Context, p store.PushedRequest) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Store.CreatePushedRequest(ctx, p)
}

func (s *troubledStore) RecordToken(ctx context.Context, t store.IssuedToken) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Store.RecordToken(ctx, t)
}

func (s *troubledStore) UseRefreshToken(ctx context.Context, id string, at, end time.Time, t store.IssuedToken) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Store.UseRefreshToken(ctx, id, at, end, t)
}

func (s *troubledStore) RotateRefreshToken(
	ctx context.Context, id string, at time.Time, grace time.Duration, next store.RefreshToken, t store.IssuedToken,
) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Store.RotateRefreshToken(ctx, id, at, grace, next, t)
}

func (s *troubledStore) RevokeGrant(ctx context.Context, id string, at time.Time) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Store.RevokeGrant(ctx, id, at)
}

func (s *troubledStore) RevocationsSince(ctx context.Context, seq int64, limit int) ([]store.Revocation, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	return s.Store.RevocationsSince(ctx, seq, limit)
}

// inTrouble is a server whose store can be told to fail.
func inTrouble(t *testing.T) (*server, *troubledStore) {
	t.Helper()
	s := tokenServer(t)
	troubled := &troubledStore{Store: s.store}
	s.store = troubled
	s.start()
	return s, troubled
}

func TestTrouble_aBusyStoreIsNoAnswerForGood(t *testing.T) {
	s, trouble := inTrouble(t)
	web, app := s.login("web"), s.login("app")
	trouble.err = store.ErrUnavailable
	for name, ask := range map[string]func() tokenReply{
		"client credentials":    func() tokenReply { return s.clientCredentials("backend") },
		"refresh, confidential": func() tokenReply { return s.refresh("web", web.Refresh) },
		"refresh, public":       func() tokenReply { return s.refresh("app", app.Refresh) },
		"push":                  func() tokenReply { return s.push("web").tokenReply },
		"revoke":                func() tokenReply { return s.revoke("web", web.Refresh) },
		"the log":               func() tokenReply { return s.answer(s.send("/revocations", url.Values{}, credentials("hub"))) },
	} {
		t.Run(name, func(t *testing.T) {
			r := ask()
			if r.status != http.StatusServiceUnavailable || r.Error != "temporarily_unavailable" || r.header.Get("Retry-After") == "" || r.AccessToken != "" {
				t.Errorf("got %+v", r)
			}
		})
	}
	trouble.err = nil
	if !s.works("web", web.Refresh) || !s.works("app", app.Refresh) || len(s.log()) != 0 {
		t.Error("something was used up")
	}
}

func TestTrouble_aFailureIsTheServersAndSaysNothing(t *testing.T) {
	s, trouble := inTrouble(t)
	trouble.err = context.DeadlineExceeded
	r := s.clientCredentials("backend")
	if r.status != http.StatusInternalServerError || r.Error != "server_error" || strings.Contains(r.Description, "store") || r.AccessToken != "" {
		t.Errorf("got %+v", r)
	}
	if !strings.Contains(s.logs.String(), "level=ERROR") || !strings.Contains(s.logs.String(), "record token") {
		t.Error("the log does not say why")
	}
}

// TestTrouble_somebodyWasFaster has the session end, the account disabled or the client deleted right before the grant is stored.
func TestTrouble_somebodyWasFaster(t *testing.T) {
	s, trouble := inTrouble(t)
	b := s.newBrowser()
	s.loginIn(b, "web")
	trouble.err = store.ErrRevoked
	if q := b.open(request(set("client_id", "web"))).sent(t, callback); q.Get("error") != "access_denied" || q.Has("code") {
		t.Errorf("answer: %v", q)
	}
	trouble.err = nil
	web := s.login("web")
	trouble.err = store.ErrConsumed // the token was rotated meanwhile
	if r := s.refresh("web", web.Refresh); r.Error != "invalid_grant" {
		t.Errorf("got %+v", r)
	}
	trouble.err = nil
	if !s.works("web", web.Refresh) || slices.Contains(s.events(), as.EventRefreshReused) {
		t.Error("a lost race costs the family")
	}
}

// racingStore ends a session right before it is continued.
type racingStore struct {
	store.Store

	ended bool
}

func (s *racingStore) CreateBrowserSession(ctx context.Context, b store.BrowserSession) error {
	if !s.ended {
		s.ended = true
		if _, err := s.EndSession(ctx, b.Issuer, b.SessionID, time.Now()); err != nil {
			return err
		}
	}
	return s.Store.CreateBrowserSession(ctx, b)
}

func TestTrouble_aSessionEndsWhileSomebodySignsInAgain(t *testing.T) {
	s := tokenServer(t)
	b := s.newBrowser()
	before := s.loginIn(b, "web")
	s.store = &racingStore{Store: s.store}
	s.start()
	page := b.open(request(set("client_id", "web"), set("prompt", "login")))
	code := b.signIn(page, "ann", password).sent(t, callback).Get("code")
	r := s.token(exchange(code, identity("web")), credentials("web"))
	if r.status != http.StatusOK || s.verify(r.AccessToken).SessionID == s.verify(before.AccessToken).SessionID || s.works("web", before.Refresh) {
		t.Errorf("got %+v", r)
	}
}

// changingStore has somebody change the password while it is compared: right before the session is stored.
type changingStore struct {
	store.Store

	change func()
}

func (s *changingStore) CreateBrowserSession(ctx context.Context, b store.BrowserSession) error {
	if s.change != nil {
		s.change()
	}
	return s.Store.CreateBrowserSession(ctx, b)
}

func TestTrouble_thePasswordChangesWhileSomebodySignsInWithIt(t *testing.T) {
	s := tokenServer(t)
	changing := &changingStore{Store: s.store}
	s.store = changing
	s.start()
	changing.change = func() {
		changing.change = nil
		must(t, s.accounts.SetPassword(t.Context(), s.ann.ID, "another horse battery"))
	}
	b := s.newBrowser()
	page := b.signIn(b.open(request(set("client_id", "web"))), "ann", password)
	if page.StatusCode != http.StatusServiceUnavailable || page.Header.Get("Retry-After") == "" {
		t.Errorf("signed in with the old password: %d", page.StatusCode)
	}
	if r := b.open(request(set("client_id", "web"))); r.Request.URL.Path != "/login" {
		t.Errorf("the browser is signed in: %s", r.Request.URL)
	}
	if r := b.signIn(b.open(request(set("client_id", "web"))), "ann", "another horse battery"); r.sent(t, callback).Get("code") == "" {
		t.Errorf("with the new one: %d", r.StatusCode)
	}
}

// TestTrouble_theClientChangesWhileSomebodySignsIn takes a redirect URI away from a client, as one does when it fell into wrong hands.
func TestTrouble_theClientChangesWhileSomebodySignsIn(t *testing.T) {
	for _, answer := range []string{"allow", "deny"} {
		t.Run(answer, func(t *testing.T) {
			s := tokenServer(t)
			b := s.newBrowser()
			page := b.signIn(b.open(request(set("client_id", "app"))), "ann", password)
			s.options.Clients = slices.Clone(s.options.Clients)
			for i := range s.options.Clients {
				s.options.Clients[i].RedirectURIs = []string{"https://new.example/callback"}
			}
			s.start()
			page = b.answer(page, answer)
			if page.StatusCode != http.StatusBadRequest || page.Header.Get("Location") != "" || strings.Contains(page.body, callback) {
				t.Errorf("got %d, sent to %q", page.StatusCode, page.Header.Get("Location"))
			}
		})
	}
}
