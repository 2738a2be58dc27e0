package ashttp_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/ashttp"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/sqlstore"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	issuer   = "https://as.example"
	hubURL   = "https://hub.example/.well-known/mercure"
	callback = "https://app.example/callback"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	password = "correct horse battery"
)

// server is an authorization server with everything behind it real: the database is a SQLite file.
type server struct {
	t        testing.TB
	as       *as.Server
	echo     *echo.Echo
	store    store.Store
	accounts *account.Service
	ring     *keyring.Ring
	ann      store.Account
	logs     *logBuffer
	issuer   string
	options  as.Options
	pokes    *atomic.Int32 // how often the server said that it had revoked something
}

// logBuffer is what the server logged.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// keys keeps a key ring's entries in memory.
type keys struct {
	mu      sync.Mutex
	entries []keyring.Entry
	version int64
}

func (k *keys) LoadKeys(context.Context, string) ([]keyring.Entry, int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]keyring.Entry(nil), k.entries...), k.version, nil
}

func (k *keys) SaveKeys(_ context.Context, _ string, version int64, entries []keyring.Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version != k.version {
		return keyring.ErrConflict
	}
	k.entries, k.version = append([]keyring.Entry(nil), entries...), version+1
	return nil
}

// defaultOptions are a hub, a client of each kind, and a policy that gives people their own corner.
func defaultOptions(tb testing.TB) as.Options {
	tb.Helper()
	return as.Options{
		Issuer:    issuer,
		Resources: []as.Resource{{ID: hubURL, Name: "Example hub"}},
		Clients: []store.Client{
			{ID: "spa", Name: "Example app", AuthMethod: as.AuthNone, RedirectURIs: []string{callback}},
			{
				ID: "broker", Name: "Broker", AuthMethod: as.AuthPrivateKeyJWT, JWKS: clientKey(tb).set,
				RedirectURIs: []string{callback}, SkipConsent: true,
			},
			{ID: "cli", Name: "Command line", AuthMethod: as.AuthNone, RedirectURIs: []string{"http://127.0.0.1/cb"}, SkipConsent: true},
			{ID: "stranger", AuthMethod: as.AuthNone, RedirectURIs: []string{"https://other.example/cb"}},
		},
		Policies: []as.Policy{
			{
				ID:   "own corner",
				When: as.When{Clients: []string{"spa", "broker", "cli"}, Roles: []string{"user"}},
				Grant: []rar.Detail{
					{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "https://example.com/users/{{sub}}/*", MatchType: topic.URLPattern}}},
					{Actions: []rar.Action{rar.Subscribe, rar.Publish}, Topics: []rar.TopicMatcher{{Match: "https://example.com/chat", MatchType: topic.Exact}}},
				},
				OnMissingRequest: as.MissingGrantAll,
				OnExcess:         as.ExcessTrim,
			},
			{
				ID:       "staff",
				When:     as.When{Clients: []string{"spa"}, Roles: []string{"staff"}},
				Grant:    []rar.Detail{{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "https://example.com/staff/*", MatchType: topic.URLPattern}}}},
				OnExcess: as.ExcessTrim,
			},
		},
		Scopes: map[string][]rar.Detail{"live": {
			{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "https://example.com/users/{{sub}}/*", MatchType: topic.URLPattern}}},
		}},
	}
}

func newServer(tb testing.TB, change func(*as.Options)) *server {
	tb.Helper()
	o := defaultOptions(tb)
	if change != nil {
		change(&o)
	}
	ctx := tb.Context()
	s := &server{t: tb, logs: &logBuffer{}, issuer: o.Issuer, options: o, pokes: new(atomic.Int32)}
	db, err := sqlstore.Open(ctx, sqlstore.Options{
		Path: filepath.Join(tb.TempDir(), "private", "authz.db"), Secret: make([]byte, 32), Migrate: true,
	})
	must(tb, err)
	tb.Cleanup(func() { must(tb, db.Close()) })
	s.store = db
	s.accounts, err = account.New(account.Options{Store: db, Hash: account.HashOptions{MemoryKiB: 64, Iterations: 1}})
	must(tb, err)
	s.ann, err = s.accounts.Create(ctx, "ann", password, []string{"user"})
	must(tb, err)
	s.ring, err = keyring.Open(ctx, keyring.Options{Store: &keys{}, Issuer: o.Issuer})
	must(tb, err)
	s.start()
	tb.Cleanup(func() {
		for _, secret := range []string{password, verifier, clientSecret, "urn:ietf:params:oauth:request_uri:"} {
			if strings.Contains(s.logs.String(), secret) {
				tb.Errorf("the log contains a secret: %q", secret)
			}
		}
		for _, kind := range []*regexp.Regexp{refreshToken, accessToken} {
			if token := kind.FindString(s.logs.String()); token != "" {
				tb.Errorf("the log contains a token: %q", token)
			}
		}
	})
	return s
}

// refreshToken and accessToken find tokens in a text.
var (
	refreshToken = regexp.MustCompile(`rt_[A-Za-z0-9_-]{43}`)
	accessToken  = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.`)
)

// reload makes a server with other options on the same store, as a program does when its configuration changed.
func (s *server) reload(change func(*as.Options)) *server {
	s.t.Helper()
	o := s.options
	o.Clients, o.Policies, o.Resources = slices.Clone(o.Clients), slices.Clone(o.Policies), slices.Clone(o.Resources)
	change(&o)
	next := *s
	next.options = o
	next.start()
	return &next
}

// start makes the server of the options and its edge.
func (s *server) start() {
	s.t.Helper()
	logger := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	s.as, err = as.New(s.t.Context(), s.options, as.Dependencies{
		Store: s.store, Accounts: s.accounts, Keys: s.ring, Secret: sha256.Sum256([]byte(s.t.Name())),
		Revoked: func() { s.pokes.Add(1) }, Logger: logger,
	})
	must(s.t, err)
	s.edge(ashttp.Options{})
}

// edge serves the server anew.
func (s *server) edge(o ashttp.Options) {
	s.t.Helper()
	logger := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	s.echo, err = httpserver.NewEcho(httpserver.EchoOptions{Logger: logger})
	must(s.t, err)
	must(s.t, ashttp.Register(s.echo, o, ashttp.Dependencies{Server: s.as, Logger: logger}))
}

// sibling is another issuer on the same store, with a secret and keys of its own, as the faces of one program are.
func (s *server) sibling(id string) *server {
	s.t.Helper()
	o := s.options
	o.Issuer = id
	ring, err := keyring.Open(s.t.Context(), keyring.Options{Store: &keys{}, Issuer: id})
	must(s.t, err)
	server, err := as.New(s.t.Context(), o, as.Dependencies{
		Store: s.store, Accounts: s.accounts, Keys: ring, Secret: sha256.Sum256([]byte(s.t.Name())),
	})
	must(s.t, err)
	e := echo.New()
	must(s.t, ashttp.Register(e, ashttp.Options{}, ashttp.Dependencies{Server: server}))
	c := *s
	c.as, c.echo, c.ring, c.issuer, c.options = server, e, ring, id, o
	return &c
}

// RoundTrip serves a request in memory, so that tests need no network and can run in virtual time.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme+"://"+r.URL.Host != originOf(s.issuer) {
		return nil, errors.New("the test went to " + r.URL.Host)
	}
	sent := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), r.Body)
	sent.Header = r.Header.Clone()
	sent.Host = r.URL.Host
	w := httptest.NewRecorder()
	s.echo.ServeHTTP(w, sent)
	response := w.Result()
	response.Request = r
	return response, nil
}

func originOf(u string) string {
	parsed, err := url.Parse(u)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// verify accepts an access token as the hub does.
func (s *server) verify(compact string) *token.Claims {
	s.t.Helper()
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	must(s.t, err)
	v, err := token.NewVerifier(token.Options{
		Resource: hubURL, Compiler: compiler,
		Issuers: []token.Issuer{{ID: s.issuer, Keys: s.ring, AuthorizationServer: true}},
	})
	must(s.t, err)
	claims, err := v.Verify(context.Background(), compact, rar.Subscribe)
	must(s.t, err)
	return claims
}

// browser is a person's browser: it keeps cookies and goes where pages send it, but not to other sites.
type browser struct {
	t      testing.TB
	s      *server
	client *http.Client
}

func (s *server) newBrowser() *browser {
	jar, err := cookiejar.New(nil)
	must(s.t, err)
	return &browser{t: s.t, s: s, client: &http.Client{
		Transport:     s,
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// reply is a response with its body.
type reply struct {
	*http.Response

	body string
}

func (b *browser) do(r *http.Request) reply {
	b.t.Helper()
	response, err := b.client.Do(r)
	must(b.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(b.t, err)
	return reply{Response: response, body: string(body)}
}

func (b *browser) get(target string) reply {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, absolute(b.s.issuer, target), http.NoBody)
	must(b.t, err)
	return b.do(r)
}

func (b *browser) post(target string, form url.Values) reply {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, absolute(b.s.issuer, target), strings.NewReader(form.Encode()))
	must(b.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", originOf(b.s.issuer))
	return b.do(r)
}

func absolute(base, target string) string {
	if strings.HasPrefix(target, "/") {
		return originOf(base) + target
	}
	return target
}

var refresh = regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]+)">`)

// follow goes on from a reply, through redirects and pages that move on, to a page that waits for somebody or to another site.
func (b *browser) follow(r reply) reply {
	b.t.Helper()
	for range 10 {
		var next string
		switch {
		case r.StatusCode == http.StatusSeeOther:
			next = r.Header.Get("Location")
			if !strings.HasPrefix(next, "/") && !strings.HasPrefix(next, originOf(b.s.issuer)+"/") {
				return r
			}
		case r.StatusCode == http.StatusOK && refresh.MatchString(r.body):
			next = html.UnescapeString(refresh.FindStringSubmatch(r.body)[1])
		default:
			return r
		}
		r = b.get(next)
	}
	b.t.Fatal("went round in circles")
	return reply{}
}

// open starts an authorization request and follows it to the first page, or back.
func (b *browser) open(q url.Values) reply {
	b.t.Helper()
	return b.follow(b.get(issuer + "/authorize?" + q.Encode()))
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// formOf returns the hidden fields of a page's first form.
func formOf(page string) url.Values {
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// signIn fills in the sign-in page.
func (b *browser) signIn(page reply, username, password string) reply {
	b.t.Helper()
	form := formOf(page.body)
	form.Set("username", username)
	form.Set("password", password)
	form.Set("method", "password")
	return b.follow(b.post("/login", form))
}

// answer fills in the consent page.
func (b *browser) answer(page reply, answer string) reply {
	b.t.Helper()
	form := formOf(page.body)
	form.Set("answer", answer)
	return b.follow(b.post("/consent", form))
}

// request is an authorization request of the public client.
func request(change ...func(url.Values)) url.Values {
	q := url.Values{
		"response_type":         {"code"},
		"client_id":             {"spa"},
		"redirect_uri":          {callback},
		"state":                 {"af0ifjsldkj"},
		"code_challenge":        {challenge(verifier)},
		"code_challenge_method": {"S256"},
		"resource":              {hubURL},
	}
	for _, c := range change {
		c(q)
	}
	return q
}

func set(name, value string) func(url.Values) { return func(q url.Values) { q.Set(name, value) } }
func del(name string) func(url.Values)        { return func(q url.Values) { q.Del(name) } }
func add(name, value string) func(url.Values) { return func(q url.Values) { q.Add(name, value) } }

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// sent returns what a redirect to the client says.
func (r reply) sent(tb testing.TB, to string) url.Values {
	tb.Helper()
	location := r.Header.Get("Location")
	if r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(location, to) {
		tb.Fatalf("no redirect to %s: %d %s\n%s", to, r.StatusCode, location, r.body)
	}
	u, err := url.Parse(location)
	must(tb, err)
	return u.Query()
}

// code signs ann in, lets her agree and returns the code.
func (s *server) code(q url.Values) string {
	s.t.Helper()
	b := s.newBrowser()
	r := b.signIn(b.open(q), "ann", password)
	if r.StatusCode == http.StatusOK {
		r = b.answer(r, "allow")
	}
	code := r.sent(s.t, "").Get("code")
	if code == "" {
		s.t.Fatalf("no code: %s\n%s", r.Header.Get("Location"), s.logs)
	}
	return code
}

// exchange is a token request of the public client.
func exchange(code string, change ...func(url.Values)) url.Values {
	form := url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {callback},
		"client_id":     {"spa"},
		"code_verifier": {verifier},
	}
	for _, c := range change {
		c(form)
	}
	return form
}

// tokenReply is an answer of the token endpoint.
type tokenReply struct {
	status      int
	header      http.Header
	AccessToken string          `json:"access_token"`
	TokenType   string          `json:"token_type"`
	ExpiresIn   int             `json:"expires_in"`
	Refresh     string          `json:"refresh_token"`
	Scope       *string         `json:"scope"`
	Details     json.RawMessage `json:"authorization_details"`
	Error       string          `json:"error"`
	Description string          `json:"error_description"`
}

// send posts a form to an endpoint for clients.
func (s *server) send(path string, form url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.echo.ServeHTTP(w, r)
	return w
}

func (s *server) token(form url.Values, change ...func(*http.Request)) tokenReply {
	s.t.Helper()
	return s.answer(s.send("/token", form, change...))
}

// answer reads an answer of an endpoint for clients.
func (s *server) answer(w *httptest.ResponseRecorder) tokenReply {
	s.t.Helper()
	answer := tokenReply{status: w.Code, header: w.Header()}
	if w.Body.Len() == 0 && w.Code == http.StatusOK {
		return answer
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		s.t.Errorf("answer %d is no JSON: %s", w.Code, w.Body)
	}
	return answer
}

// events lists the audit trail, oldest first.
func (s *server) events() []string {
	s.t.Helper()
	records, err := s.store.ListAudit(context.Background(), 1000)
	must(s.t, err)
	var events []string
	for _, r := range slices.Backward(records) {
		events = append(events, r.Event)
	}
	return events
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

var requestID = regexp.MustCompile(`<code class="wrap">[0-9a-f]+</code>`)

// withoutRequestID takes out of a page what differs each time.
func withoutRequestID(page string) string {
	return requestID.ReplaceAllString(page, `<code class="wrap">0</code>`)
}
