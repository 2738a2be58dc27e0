package refhub_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/refhub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const detailType = "https://mercure.rocks/authorization-detail"

// site is a running hub with the key of its one issuer.
type site struct {
	tb     testing.TB
	hub    *refhub.Hub
	url    string
	server *httptest.Server
	key    jose.Key
}

func newSite(tb testing.TB, o refhub.Options) *site {
	tb.Helper()
	key, err := jose.Generate("HS256")
	if err != nil {
		tb.Fatal(err)
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	o.URL = server.URL + "/.well-known/mercure"
	k := refhub.Key{Alg: "HS256", Verify: key.Secret()}
	o.Issuers = []refhub.Issuer{{ID: "https://issuer.example", Publish: []refhub.Key{k}, Subscribe: []refhub.Key{k}}}
	if o.AuthorizationServer != nil {
		o.AuthorizationServer.Issuer = server.URL + "/as"
	}
	hub, err := refhub.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	handler = hub
	tb.Cleanup(func() {
		hub.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return &site{tb: tb, hub: hub, url: o.URL, server: server, key: key}
}

// token grants an action on topics; exp is in so many seconds.
func (s *site) token(action string, exp float64, topics ...string) string {
	s.tb.Helper()
	matchers := []jose.Object{}
	for _, topic := range topics {
		matchers = append(matchers, jose.Object{"match": topic})
	}
	compact, err := jose.Token{
		Header: jose.Object{"typ": "at+jwt"},
		Claims: jose.Object{
			"iss": "https://issuer.example", "aud": s.url, "exp": float64(time.Now().UnixMilli())/1e3 + exp,
			"authorization_details": []jose.Object{{"type": detailType, "actions": []string{action}, "topics": matchers}},
		},
	}.Compact(s.key)
	if err != nil {
		s.tb.Fatal(err)
	}
	return compact
}

func (s *site) do(method, at, token, body string, fields ...string) *http.Response {
	s.tb.Helper()
	r, err := http.NewRequestWithContext(s.tb.Context(), method, at, strings.NewReader(body))
	if err != nil {
		s.tb.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := s.server.Client().Do(r)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// post publishes and gives status and body.
func (s *site) post(token, form string) (int, string) {
	s.tb.Helper()
	resp := s.do(http.MethodPost, s.url, token, form)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.tb.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// events reads events, each as its lines, from a stream.
type events struct {
	tb testing.TB
	r  *bufio.Reader
	*http.Response
}

func (s *site) listen(token, query string, fields ...string) *events {
	s.tb.Helper()
	resp := s.do(http.MethodGet, s.url+"?"+query, token, "", fields...)
	if resp.StatusCode != http.StatusOK {
		s.tb.Fatalf("subscribing answered %d", resp.StatusCode)
	}
	return &events{s.tb, bufio.NewReader(resp.Body), resp}
}

func (e *events) next() []string {
	e.tb.Helper()
	var lines []string
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			e.tb.Fatalf("the stream ended: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && len(lines) > 0:
			return lines
		case line == "", strings.HasPrefix(line, ":"), strings.HasPrefix(line, "retry: 2000"):
		default:
			lines = append(lines, line)
		}
	}
}

func want[T any](tb testing.TB, what string, got, wanted T) {
	tb.Helper()
	if d := cmp.Diff(wanted, got); d != "" {
		tb.Errorf("%s (-wanted +got):\n%s", what, d)
	}
}

func TestPublishAndSubscribe(t *testing.T) {
	s := newSite(t, refhub.Options{Anonymous: true})
	stream := s.listen("", "match=a&match_urlpattern=https://e.example/:x")
	publish := s.token("publish", 60, "*")
	status, id := s.post(publish, "topic=a&data=1%0D%0A2&type=t&retry=7&id=x")
	want(t, "PUB-30 status", status, 200)
	want(t, "PUB-31 id", id, "x")
	want(t, "event", stream.next(), []string{"event: t", "id: x", "retry: 7", "data: 1", "data: 2"})
	_, _ = s.post(publish, "topic=a&private&data=secret")
	_, id = s.post(publish, "topic=b&topic=https://e.example/1")
	want(t, "PRIV-01 the private update is withheld", stream.next(), []string{"id: " + id, "data: "})
	for form, status := range map[string]int{
		"data=x": 400, "topic=%FF": 400, "topic=a%E2%80%8B": 400, "topic=*": 400, "topic=a&type=mercure": 400, "topic=a&id=%23": 400,
		"topic=a&retry=1.5": 400, "topic=..%2F.well-known%2F%256Dercure%2Fx": 400, "topic=%2F.well-known%2Fmercurex": 200,
		"topic=" + strings.Repeat("a", 9000): 413, strings.Repeat("topic=a&", 1001): 413, "topic=a&data=" + strings.Repeat("a", 5<<20): 413,
	} {
		got, _ := s.post(publish, form)
		want(t, form[:min(40, len(form))], got, status)
	}
}

func TestReplay(t *testing.T) {
	s := newSite(t, refhub.Options{Anonymous: true, Query: true})
	publish := s.token("publish", 60, "*")
	for _, form := range []string{"topic=a&id=1", "topic=a&id=2", "topic=a&id=1", "topic=a&id=3&private", "topic=b&id=4"} {
		if status, _ := s.post(publish, form); status != 200 {
			t.Fatal(status)
		}
	}
	ids := func(e *events, n int) []string {
		var ids []string
		for range n {
			ids = append(ids, strings.TrimPrefix(e.next()[0], "id: "))
		}
		return ids
	}
	_, _ = s.post(publish, "topic=a&id=5")
	e := s.listen("", "match=a&last_event_id=1")
	want(t, "REC-12 the earliest counts", ids(e, 3), []string{"2", "1", "5"})
	want(t, "REC-15 field", e.Header.Get("Mercure-Last-Event-ID"), "1")
	e = s.listen(s.token("subscribe", 60, "a"), "match=a&last_event_id=1", "Last-Event-ID", "2")
	want(t, "REC-06 the field wins", ids(e, 3), []string{"1", "3", "5"})
	e = s.listen("", "match=b&last_event_id=nothing")
	want(t, "REC-17 unknown", e.Header.Get("Mercure-Last-Event-ID"), "earliest")
	want(t, "REC-08 matchers", ids(e, 1), []string{"4"})
	resp := s.do("QUERY", s.url+"?match=b&last_event_id=4", "", "match=a&last_event_id=1")
	e = &events{t, bufio.NewReader(resp.Body), resp}
	want(t, "SUB-09 the query component wins", e.Header.Get("Mercure-Last-Event-ID"), "4")
	want(t, "SUB-06 union", ids(e, 1), []string{"5"})
	want(t, "REC-18 no cursor", s.listen("", "match=a").Header.Values("Mercure-Last-Event-ID"), nil)
}

func TestTokens(t *testing.T) {
	s := newSite(t, refhub.Options{CookieName: "c", AuthorizationServer: &refhub.AuthorizationServer{ClientID: "id", ClientSecret: "secret"}})
	answer := func(token string, fields ...string) [2]string {
		resp := s.do(http.MethodPost, s.url, token, "topic=a", fields...)
		return [2]string{resp.Status[:3], resp.Header.Get("WWW-Authenticate")}
	}
	metadata := `resource_metadata="` + s.server.URL + `/.well-known/oauth-protected-resource/.well-known/mercure"`
	want(t, "ERR-01 none", answer(""), [2]string{"401", "Bearer " + metadata})
	want(t, "ERR-04 invalid", answer("a.b.c"), [2]string{"401", `Bearer error="invalid_token", ` + metadata})
	want(t, "TOK-14 expired", answer(s.token("publish", -1, "*")), [2]string{"401", `Bearer error="invalid_token", ` + metadata})
	want(t, "ERR-06 insufficient", answer(s.token("publish", 60, "b")), [2]string{"403", `Bearer error="insufficient_scope", ` + metadata})
	want(t, "AUTH-21 malformed", answer("a b"), [2]string{"400", `Bearer error="invalid_request", ` + metadata})
	want(t, "right", answer(s.token("publish", 60, "a")), [2]string{"200", ""})
	cookie := "c=" + s.token("publish", 60, "a")
	want(t, "SEC-07 no origin", answer("", "Cookie", cookie)[0], "403")
	want(t, "SEC-06 own origin", answer("", "Cookie", cookie, "Origin", s.server.URL)[0], "200")

	details := `[{"type":"` + detailType + `","actions":["publish"],"topics":[{"match":"a"}]}]`
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {s.url}, "authorization_details": {details}}
	resp := s.do(http.MethodPost, s.server.URL+"/as/token", "", form.Encode(), "Authorization", jose.Basic("id", "secret"))
	var got struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	want(t, "TOK-27 a token of the authorization server", answer(got.AccessToken)[0], "200")
}

func TestStreamsEndBeforeTheirToken(t *testing.T) {
	s := newSite(t, refhub.Options{})
	expires := time.Now().Add(time.Second)
	e := s.listen(s.token("subscribe", 1, "*"), "match=a")
	if _, err := io.ReadAll(e.r); err != nil {
		t.Error(err)
	}
	if late := time.Since(expires); late > 500*time.Millisecond {
		t.Errorf("PRIV-09: the stream ended %v after its token", late)
	}
}

func TestActiveSubscriptions(t *testing.T) {
	s := newSite(t, refhub.Options{Subscriptions: true})
	all := s.token("subscribe", 60, "*")
	watcher := s.listen(all, "match_urlpattern=/.well-known/mercure/subscriptions/:kind/:match/:subscriber")
	own := watcher.next()
	want(t, "ACT-21 type", own[0], "event: mercure")
	reader := s.listen(all, "match=a%2520b")
	var doc map[string]any
	data := func(lines []string) string { return strings.TrimPrefix(lines[2], "data: ") }
	start := data(watcher.next())
	if err := json.Unmarshal([]byte(start), &doc); err != nil {
		t.Fatal(err)
	}
	id, _ := doc["id"].(string)
	if !strings.HasPrefix(id, "/.well-known/mercure/subscriptions/exact/a%2520b/urn%3Auuid%3A") {
		t.Errorf("ACT-06 id %q", id)
	}
	want(t, "ACT-31 no token", s.do(http.MethodGet, s.server.URL+id, "", "").StatusCode, 401)
	want(t, "ACT-31 no grant", s.do(http.MethodGet, s.server.URL+id, s.token("subscribe", 60, "x"), "").StatusCode, 403)
	resp := s.do(http.MethodGet, s.server.URL+id, s.token("subscribe", 60, id), "")
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "ACT-33 document", string(body), start)
	if link := resp.Header.Get("Link"); !strings.Contains(link, `rel="mercure"; last-event-id="urn:uuid:`) {
		t.Errorf("ACT-41 link %q", link)
	}
	_ = reader.Body.Close()
	want(t, "ACT-03 end", data(watcher.next()), strings.Replace(start, `"active":true`, `"active":false`, 1))
	want(t, "ACT-34 ended", s.do(http.MethodGet, s.server.URL+id, all, "").StatusCode, 404)
}

func TestCloseEndsStalledStreams(t *testing.T) {
	s := newSite(t, refhub.Options{Anonymous: true})
	s.listen("", "match=a") // is never read
	live := s.listen("", "match=b")
	publish := s.token("publish", 60, "*")
	for range 40 {
		_, _ = s.post(publish, "topic=a&data="+strings.Repeat("x", 500<<10))
	}
	_, id := s.post(publish, "topic=b")
	want(t, "STRESS-03 others go on", live.next()[0], "id: "+id)
	done := make(chan struct{})
	go func() { defer close(done); s.hub.Close() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("Close waits for a reader that does not read")
	}
	want(t, "a closed hub opens no streams", s.do(http.MethodGet, s.url+"?match=a", "", "").StatusCode, 503)
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]refhub.Options{
		"no URL":        {},
		"unknown fault": {URL: "https://hub.example/x", Fault: "nothing-like-this"},
		"bad key":       {URL: "https://hub.example/x", Issuers: []refhub.Issuer{{ID: "i", Publish: []refhub.Key{{Alg: "none"}}}}},
		"bad server":    {URL: "https://hub.example/x", AuthorizationServer: &refhub.AuthorizationServer{}},
	} {
		if _, err := refhub.New(o); !errors.Is(err, refhub.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
