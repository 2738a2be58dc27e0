package hubhttp_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

var _ revocation.Metrics = (*obs.Metrics)(nil)

// revoker is a revocation log, and the list of it as verifier and engine are given it.
type revoker struct {
	*revocation.List

	mu      sync.Mutex
	entries []revocation.Entry
}

func (r *revoker) Since(_ context.Context, seq int64, limit int) ([]revocation.Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]revocation.Entry(nil), r.entries[seq:min(int(seq)+limit, len(r.entries))]...), nil
}

// Revoked implements token.Revocations.
func (r *revoker) Revoked(c *token.Claims) bool {
	return r.List.Revoked(revocation.Token{
		Issuer: c.Issuer, ID: c.ID, GrantID: c.GrantID, SessionID: c.SessionID, Subject: c.Subject, ClientID: c.ClientID, IssuedAt: c.IssuedAt,
	})
}

func principalToken(p *hub.Principal) revocation.Token {
	return revocation.Token{
		Issuer: p.Issuer, ID: p.TokenID, GrantID: p.GrantID, SessionID: p.SessionID, Subject: p.Subject, ClientID: p.ClientID, IssuedAt: p.IssuedAt,
	}
}

// startRevocable starts a hub that follows a revocation log.
func startRevocable(t *testing.T, change func(*settings)) (*fixture, *revoker) {
	t.Helper()
	var f *fixture
	r := &revoker{}
	list, err := revocation.New(revocation.Options{Source: r, Close: func(match func(revocation.Token) bool) int {
		return f.hub.CloseBy(func(p *hub.Principal) bool { return match(principalToken(p)) })
	}})
	must(t, err)
	r.List = list
	f = start(t, func(s *settings) {
		s.revoked = r
		s.engine.Revoked = func(p *hub.Principal) bool { return list.Revoked(principalToken(p)) }
		if change != nil {
			change(s)
		}
	})
	return f, r
}

// revoke revokes tokens of the authorization server issued until now.
func (r *revoker) revoke(t *testing.T, kind, value string) {
	t.Helper()
	r.mu.Lock()
	r.entries = append(r.entries, revocation.Entry{
		Seq: int64(len(r.entries) + 1), Issuer: authServer, Kind: kind, Value: value,
		IssuedBefore: time.Now(), Until: time.Now().Add(time.Hour),
	})
	r.mu.Unlock()
	must(t, r.Load(t.Context()))
}

func TestRevocation(t *testing.T) {
	for _, hints := range []bool{false, true} {
		f, r := startRevocable(t, func(s *settings) { s.options.DevHints = hints })
		mint := func(id, grantID, sid string) string {
			return f.mint(f.combined, func(c *token.MintClaims) {
				c.ID, c.GrantID, c.SessionID = id, grantID, sid
			}, grant(rar.Subscribe, "*"), grant(rar.Publish, "*"))
		}
		for _, c := range []struct{ name, kind, value, compact string }{
			{"a token", revocation.KindToken, "t1", mint("t1", "g1", "s1")},
			{"a grant", revocation.KindGrant, "g2", mint("t2", "g2", "s2")},
			{"a session", revocation.KindSession, "s3", mint("t3", "g3", "s3")},
			{"a client", revocation.KindClient, "test", mint("t4", "g4", "s4")},
		} {
			byHeader := f.subscribe("match=T", bearer(c.compact))
			byCookie := f.subscribe("match=T", cookie(c.compact))
			anonymous := f.subscribe("match=T", "X-None: 1")
			id := f.publish("topic", "T", "data", "before "+c.name)
			for _, s := range []*stream{byHeader, byCookie} {
				s.wantData("before " + c.name)
			}
			r.revoke(t, c.kind, c.value)
			byHeader.ended()
			byCookie.ended()
			for name, q := range map[string]request{
				"subscribe":              {method: http.MethodGet, url: f.base + "?match=T&last_event_id=" + id, headers: []string{bearer(c.compact)}},
				"subscribe with cookie":  {method: http.MethodGet, url: f.base + "?match=T", headers: []string{cookie(c.compact)}},
				"subscribe without body": {method: http.MethodHead, url: f.base + "?match=T", headers: []string{bearer(c.compact)}},
				"publish":                {method: http.MethodPost, url: f.base, body: "topic=T&data=x", headers: []string{formType, bearer(c.compact)}},
				"publish what is broken": {method: http.MethodPost, url: f.base, body: "data=x", headers: []string{formType, bearer(c.compact)}},
				"publish with cookie": {
					method: http.MethodPost, url: f.base, body: "topic=T&data=x", headers: []string{formType, cookie(c.compact), "Origin: " + pageOrigin},
				},
			} {
				f.wantRevoked(q, c.name+": "+name, hints)
			}
			f.publish("topic", "T", "data", "after "+c.name)
			anonymous.wantData("before "+c.name, "after "+c.name)
		}
	}
}

// wantRevoked fails unless the answer is that to any invalid token, and the log says why.
func (f *fixture) wantRevoked(q request, name string, hints bool) {
	f.tb.Helper()
	resp := f.do(q)
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token", resource_metadata="`+metadataURL+`"` {
		f.tb.Fatalf("%s = %d %q, want 401 invalid_token", name, resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
	}
	if resp.Header.Get("Mercure-Last-Event-ID") != "" || strings.Contains(resp.Header.Get("Content-Type"), "event-stream") {
		f.tb.Errorf("%s looks like a stream: %v", name, resp.Header)
	}
	id := resp.Header.Get("X-Request-Id")
	if q.method != http.MethodHead {
		p := resp.problem(f.tb)
		if hints != (p.Check == "revocation") || hints != (p.Hint != "") || !hints && (p.Detail != "" || strings.Contains(resp.body, "revo")) {
			f.tb.Errorf("%s: problem = %+v, with hints: %v", name, p, hints)
		}
	}
	line := lineWith(f.log.String(), id, "request refused")
	if !strings.Contains(line, "check=revocation") || !strings.Contains(line, "level=INFO") || !strings.Contains(line, "reason=invalid_token") {
		f.tb.Errorf("%s: log line = %q", name, line)
	}
}

// TestRevocation_betweenVerificationAndUse has the engine refuse what the verifier has just accepted.
func TestRevocation_betweenVerificationAndUse(t *testing.T) {
	f := start(t, func(s *settings) { s.engine.Revoked = func(*hub.Principal) bool { return true } })
	for name, q := range map[string]request{
		"subscribe": {method: http.MethodGet, url: f.base + "?match=T", headers: []string{bearer(f.subscribeToken("*"))}},
		"resume":    {method: http.MethodGet, url: f.base + "?match=T&last_event_id=earliest", headers: []string{bearer(f.subscribeToken("*"))}},
		"publish":   {method: http.MethodPost, url: f.base, body: "topic=T&data=x", headers: []string{formType, bearer(f.publishToken("*"))}},
	} {
		f.wantRevoked(q, name, false)
	}
	anonymous := f.subscribe("match=T", "X-None: 1") // the limits have their places back, and nobody else is refused
	if anonymous.resp.StatusCode != http.StatusOK {
		t.Errorf("GET = %d", anonymous.resp.StatusCode)
	}
	f.eventually("refused streams to be counted out", func() bool { return f.gauge("cinnabar_hub_subscribers") == 1 })
}

// TestQuiesce shows what clients are told while a hub gives its history away and streams still live.
func TestQuiesce(t *testing.T) {
	f := start(t, func(s *settings) { s.withTLS = true })
	live := f.subscribe("match=T")
	id := f.publish("topic", "T", "data", "acknowledged")
	must(t, f.hub.Quiesce(t.Context()))
	live.wantData("acknowledged")
	for _, client := range []*http.Client{f.client, f.h2} {
		base := f.base
		if client == f.h2 {
			base = f.tls
		}
		for name, q := range map[string]request{
			"publish":   {method: http.MethodPost, body: "topic=T&data=x", headers: []string{formType, bearer(f.publishToken("*"))}},
			"subscribe": {method: http.MethodGet, headers: []string{bearer(f.subscribeToken("*"))}},
			"resume":    {method: http.MethodGet, headers: []string{bearer(f.subscribeToken("*")), "Last-Event-ID: " + id}},
		} {
			q.url, q.client = base, client
			if q.method == http.MethodGet {
				q.url += "?match=T"
			}
			resp := f.do(q)
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
				t.Errorf("%s = %d, Retry-After %q, want 503 and 1", name, resp.StatusCode, resp.Header.Get("Retry-After"))
			}
			if client == f.client && !resp.Close {
				t.Errorf("%s: the connection is kept: the next request would come here again", name)
			}
			if line := lineWith(f.log.String(), resp.problem(t).RequestID, "request refused"); !strings.Contains(line, "level=INFO") || !strings.Contains(line, "reason=draining") {
				t.Errorf("%s: log line = %q", name, line)
			}
		}
	}
	if resp := f.post("topic=T", formType, bearer("a.b.c")); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("an invalid token = %d, want 401 as ever", resp.StatusCode)
	}
	must(t, f.hub.Drain(t.Context()))
	live.ended()
}
