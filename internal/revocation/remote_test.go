package revocation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/clientassertion"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
)

var _ revocation.Authenticator = (*clientassertion.Asserter)(nil)

// client is an Authenticator that counts its proofs.
type client struct {
	mu     sync.Mutex
	proofs int
	err    error
}

func (c *client) Authenticate(form url.Values, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proofs++
	form.Set("client_id", "hub")
	form.Set("client_assertion", fmt.Sprintf("proof-%d-%d", c.proofs, now.Unix()))
	return c.err
}

// remote returns a Remote for the issuer at a test server's address.
func remote(tb testing.TB, server *httptest.Server, path string) *revocation.Remote {
	tb.Helper()
	r, err := revocation.NewRemote(revocation.RemoteOptions{
		Issuer: server.URL + path, Client: &client{}, HTTPClient: server.Client(), Now: start,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// serve starts a server, with TLS, that answers everything with h.
func serve(tb testing.TB, h http.HandlerFunc) *httptest.Server {
	tb.Helper()
	server := httptest.NewTLSServer(h)
	tb.Cleanup(server.Close)
	return server
}

// answer answers with a JSON document.
func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func TestRemote_Since(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var form url.Values
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		got, form = r, r.PostForm
		answer(`{"revocations":[
			{"seq":7,"kind":"jti","value":"t1","issued_before":946684800.25,"until":946688400,"issuer":"https://evil.example","new":[1]},
			{"seq":9,"kind":"sub","value":"u1","issued_before":946684800,"until":946688400.5}
		],"last":12,"new":{}}`)(w, r)
	})
	r := remote(t, server, "/auth")
	entries, err := r.Since(t.Context(), 6, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/auth/revocations" || got.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Errorf("asked with %s %s, %s", got.Method, got.URL, got.Header.Get("Content-Type"))
	}
	want := url.Values{"since": {"6"}, "limit": {"500"}, "client_id": {"hub"}, "client_assertion": {"proof-1-" + strconv.FormatInt(start().Unix(), 10)}}
	if form.Encode() != want.Encode() {
		t.Errorf("form = %v, want %v", form, want)
	}
	at := start()
	wantEntries := []revocation.Entry{
		{
			Seq: 7, Issuer: server.URL + "/auth", Kind: revocation.KindToken, Value: "t1",
			IssuedBefore: at.Add(250 * time.Millisecond), Until: at.Add(time.Hour + time.Second),
		},
		{
			Seq: 9, Issuer: server.URL + "/auth", Kind: revocation.KindSubject, Value: "u1",
			IssuedBefore: at, Until: at.Add(time.Hour + 1500*time.Millisecond),
		},
	}
	same := func(a, b revocation.Entry) bool {
		return a.Seq == b.Seq && a.Issuer == b.Issuer && a.Kind == b.Kind && a.Value == b.Value &&
			a.IssuedBefore.Equal(b.IssuedBefore) && a.Until.Equal(b.Until)
	}
	if !slices.EqualFunc(entries, wantEntries, same) {
		t.Errorf("entries = %+v, want %+v", entries, wantEntries)
	}
	if _, err := r.Since(t.Context(), 9, 3); err != nil || form.Get("limit") != "3" || !strings.HasPrefix(form.Get("client_assertion"), "proof-2-") {
		t.Errorf("the next question = %v, %v: want limit 3 and a proof of its own", form, err)
	}
}

// TestRemote_BadServer asks servers that answer in every way they should not.
func TestRemote_BadServer(t *testing.T) {
	t.Parallel()
	plain := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const good = `{"revocations":[{"seq":1,"kind":"jti","value":"t1","issued_before":946684800,"until":946688400}],"last":1}`
	many := `{"revocations":[` + strings.TrimSuffix(strings.Repeat(`{"seq":1},`, 501), ",") + `]}`
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		source  bool   // ErrSource
		text    string // in the error
	}{
		"an error":                  {plain(500, "application/json", good), false, "/revocations answered 500"},
		"an OAuth error":            {plain(401, "application/json", `{"error":"invalid_client","error_description":"secret text"}`), false, "answered 401 invalid_client"},
		"an error code made up":     {plain(400, "application/json", `{"error":"evil\ntext"}`), false, "answered 400"},
		"no content":                {plain(204, "", ""), false, "answered 204"},
		"created":                   {plain(201, "application/json", good), false, "answered 201"},
		"a page":                    {plain(200, "text/html", good), true, "is not JSON"},
		"no content type":           {plain(200, "", good), true, "is not JSON"},
		"half a document":           {answer(good[:40]), true, ""},
		"two documents":             {answer(good + good), true, ""},
		"an array":                  {answer("[]"), true, ""},
		"null":                      {answer("null"), true, "has no revocations"},
		"another document":          {answer(`{"keys":[]}`), true, "has no revocations"},
		"entries that are null":     {answer(`{"revocations":null}`), true, "has no revocations"},
		"entries of another type":   {answer(`{"revocations":{"seq":1}}`), true, ""},
		"a number that is a string": {answer(`{"revocations":[{"seq":"1"}]}`), true, ""},
		"a number out of range":     {answer(`{"revocations":[{"seq":9223372036854775808}]}`), true, ""},
		"a fraction":                {answer(`{"revocations":[{"seq":1.5}]}`), true, ""},
		"a time without end":        {answer(`{"revocations":[{"seq":1,"until":1e999}]}`), true, ""},
		"more than was asked for":   {answer(many), true, "501 entries, 500 were asked for"},
		"too much":                  {answer(`{"revocations":[],"x":"` + strings.Repeat("a", 3<<20) + `"}`), true, "exceeds"},
		"less than it promised": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			answer(good)(w, r)
		}, false, "read answer"},
		"nothing at all": {hangUp, false, "EOF"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, false, "answered 307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if asked++; r.URL.Path != "/revocations" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				c.handler(w, r)
			})
			entries, err := remote(t, server, "").Since(t.Context(), 0, 1000)
			if err == nil || entries != nil || errors.Is(err, revocation.ErrSource) != c.source || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("Since = %v, %v; want an error with %q, about the source: %v", entries, err, c.text, c.source)
			}
			if strings.Contains(err.Error(), "secret text") || strings.Contains(err.Error(), "proof") || strings.Contains(err.Error(), "evil") {
				t.Errorf("the error says too much: %v", err)
			}
			if asked != 1 {
				t.Errorf("asked %d times, want once", asked)
			}
		})
	}
}

func hangUp(w http.ResponseWriter, _ *http.Request) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return // HTTP/2
	}
	if conn, _, err := hijacker.Hijack(); err == nil {
		_ = conn.Close()
	}
}

func TestRemote_RetryAfter(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "soon": 0, "Wed, 21 Oct 2015 07:28:00 GMT": 0, "3": 3 * time.Second, "999999999999": time.Hour,
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", field)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := remote(t, server, "").Since(t.Context(), 0, 1)
		later, ok := errors.AsType[*revocation.LaterError](err)
		if err == nil || ok != (want > 0) || ok && later.After != want {
			t.Errorf("Retry-After %q: %v, want %v", field, err, want)
		}
	}
}

// TestRemote_SlowServer shows that a server that keeps its answer back, or sends it in drops, is left after a while.
func TestRemote_SlowServer(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drops": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				<-time.After(5 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := remote(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // a server sees that its client is gone once it has read
				handler(w, r)
			}), "")
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := r.Since(ctx, 0, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Since = %v, want %v", err, context.DeadlineExceeded)
			}
		})
	}
}

func TestRemote_ClientFails(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked without authentication") })
	broken := errors.New("no key")
	r, err := revocation.NewRemote(revocation.RemoteOptions{Issuer: server.URL, Client: &client{err: broken}, HTTPClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Since(t.Context(), 0, 1); !errors.Is(err, broken) {
		t.Errorf("Since = %v, want %v", err, broken)
	}
}

func TestNewRemote(t *testing.T) {
	t.Parallel()
	for issuer, ok := range map[string]bool{
		"https://auth.example.com":      true,
		"https://auth.example.com/a/":   true,
		"https://10.0.0.1:8443":         true, // the operator names it
		"http://localhost:9000":         true,
		"http://127.0.0.1:9000/auth":    true,
		"http://[::1]:9000":             true,
		"http://auth.example.com":       false,
		"http://10.0.0.1":               false,
		"http://localhost.example.com":  false,
		"ftp://localhost":               false,
		"https://u:p@auth.example.com":  false,
		"https://auth.example.com/?a":   false,
		"https://auth.example.com?":     false,
		"https://auth.example.com#":     false,
		"//auth.example.com":            false,
		"auth.example.com":              false,
		"":                              false,
		"https://auth.example.com/\x7f": false,
	} {
		if _, err := revocation.NewRemote(revocation.RemoteOptions{Issuer: issuer, Client: &client{}}); (err == nil) != ok {
			t.Errorf("NewRemote(%q) = %v, want ok: %v", issuer, err, ok)
		}
	}
	if _, err := revocation.NewRemote(revocation.RemoteOptions{Issuer: "https://auth.example.com"}); err == nil {
		t.Error("NewRemote without a client = nil error")
	}
}

// TestRemote_PlainHTTPStaysOnThisMachine uses the transport of its own.
func TestRemote_PlainHTTPStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answer(`{"revocations":[],"last":0}`))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		r, err := revocation.NewRemote(revocation.RemoteOptions{Issuer: "http://" + net.JoinHostPort(host, port), Client: &client{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Since(t.Context(), 0, 1); err != nil {
			t.Errorf("Since from %s = %v", host, err)
		}
	}
}

// TestRemote_Followed follows a long list over HTTP, from the first entry to the last, through an outage.
func TestRemote_Followed(t *testing.T) {
	t.Parallel()
	log := &journal{}
	for i := range 1201 {
		log.add(strconv.Itoa(i))
	}
	down := false
	var mu sync.Mutex
	pages := 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		pages++
		if down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		since, _ := strconv.ParseInt(r.FormValue("since"), 10, 64)
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		entries, _ := log.Since(r.Context(), since, limit)
		out := []map[string]any{}
		for _, e := range entries {
			out = append(out, map[string]any{
				"seq": e.Seq, "kind": e.Kind, "value": e.Value,
				"issued_before": float64(e.IssuedBefore.UnixMilli()) / 1000, "until": float64(e.Until.UnixMilli()) / 1000,
			})
		}
		body, _ := json.Marshal(map[string]any{"revocations": out, "last": since})
		answer(string(body))(w, r)
	})
	e := newEnv(t, func(o *revocation.Options) { o.Source = remote(t, server, "") })
	e.load(t)
	token := tokenWith("1200")
	token.Issuer = server.URL
	if !e.Revoked(token) || e.counts.get().known != 1201 {
		t.Errorf("%d entries are known, want 1201", e.counts.get().known)
	}
	if pages != 4 { // three with entries, one without
		t.Errorf("read in %d pages, want 4", pages)
	}
	down = true
	if err := e.Load(t.Context()); err == nil || !e.Revoked(token) {
		t.Errorf("Load = %v, revoked %v, want an error and the list unchanged", err, e.Revoked(token))
	}
	down = false
	log.add("late")
	e.load(t)
	token.ID = "late"
	if !e.Revoked(token) {
		t.Error("what was revoked during the outage is not known after it")
	}
}

// FuzzRemote shows that no answer makes an entry that is not a revocation of the issuer, or a time that cannot be.
func FuzzRemote(f *testing.F) {
	for _, seed := range []string{
		`{"revocations":[],"last":0}`,
		`{"revocations":[{"seq":1,"kind":"jti","value":"t1","issued_before":946684800.5,"until":946688400}],"last":1}`,
		`{"revocations":[{"seq":-1,"issued_before":-1,"until":1e300}]}`,
		`{"revocations":[{"seq":1e3}]}`, `{"revocations":[null]}`, `null`, ``, `{"revocations":`, "\xff",
	} {
		f.Add(seed)
	}
	body := ""
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	})
	r, err := revocation.NewRemote(revocation.RemoteOptions{Issuer: issuer, Client: &client{}, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		body = text
		entries, err := r.Since(t.Context(), 0, math.MaxInt)
		if err != nil {
			return
		}
		if len(entries) > 500 {
			t.Errorf("%d entries", len(entries))
		}
		for _, e := range entries {
			if e.Issuer != issuer || e.Until.Year() > 10000 || e.IssuedBefore.Year() < 1970 || e.Until.Year() < 1970 {
				t.Errorf("entry = %+v", e)
			}
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
