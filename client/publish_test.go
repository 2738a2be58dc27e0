package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/client"
)

// serve answers requests with a handler until the test ends.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/hub"
}

// failure gives the *Error that every failed request is.
func failure(t *testing.T, err error) *client.Error {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		t.Fatalf("the error is %v, want an *Error", err)
	}
	return e
}

func TestPublish_sendsAForm(t *testing.T) {
	for name, c := range map[string]struct {
		update client.Update
		want   string
	}{
		"PUB-05 a topic alone":               {client.Update{Topics: []string{"t"}}, "data=&topic=t"},
		"PUB-08 alternates keep their order": {client.Update{Topics: []string{"b", "a", "c"}}, "data=&topic=b&topic=a&topic=c"},
		"PUB-17 private is on":               {client.Update{Topics: []string{"t"}, Private: true}, "data=&private=on&topic=t"},
		"everything": {
			client.Update{Topics: []string{"t"}, Data: "a b\n&=+;%é", ID: "urn:x:1", Type: "sold", Retry: 1500 * time.Millisecond},
			"data=a+b%0A%26%3D%2B%3B%25%C3%A9&id=urn%3Ax%3A1&retry=1500&topic=t&type=sold",
		},
		"PUB-28 retry is rounded up": {client.Update{Topics: []string{"t"}, Retry: time.Microsecond}, "data=&retry=1&topic=t"},
	} {
		t.Run(name, func(t *testing.T) {
			var header http.Header
			var body, method, query string
			hub := serve(t, func(w http.ResponseWriter, r *http.Request) {
				raw, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				header, body, method, query = r.Header, string(raw), r.Method, r.URL.RawQuery
				_, _ = io.WriteString(w, "urn:uuid:1")
			})
			id, err := mustNew(t, client.Options{HubURL: hub + "?tenant=1", Token: always("secret")}).Publish(t.Context(), c.update)
			if err != nil || id != "urn:uuid:1" {
				t.Fatalf("Publish = %q, %v", id, err)
			}
			if method != http.MethodPost || body != c.want || query != "tenant=1" {
				t.Errorf("%s %q, query %q; want %q", method, body, query, c.want)
			}
			if got := header.Get("Content-Type"); got != "application/x-www-form-urlencoded" {
				t.Errorf("PUB-03: content type %q", got)
			}
			if diff := cmp.Diff([]string{"Bearer secret"}, header["Authorization"]); diff != "" {
				t.Errorf("AUTH-19 (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublish_refusesWhatIsNoUpdate(t *testing.T) {
	c := mustNew(t, client.Options{HubURL: "http://127.0.0.1:1/"})
	for _, u := range []client.Update{{}, {Topics: []string{"t"}, Retry: -1}} {
		if id, err := c.Publish(t.Context(), u); err == nil || id != "" || !strings.HasPrefix(err.Error(), "client: ") {
			t.Errorf("Publish(%+v) = %q, %v", u, id, err)
		}
	}
}

func TestPublish_statuses(t *testing.T) {
	for _, c := range []struct {
		status               int
		retryable, uncertain bool
	}{
		{http.StatusCreated, false, false},
		{http.StatusNoContent, false, false},
		{http.StatusFound, false, false},
		{http.StatusTemporaryRedirect, false, false},
		{http.StatusBadRequest, false, false},
		{http.StatusUnauthorized, false, false},
		{http.StatusForbidden, false, false},
		{http.StatusNotFound, false, false},
		{http.StatusRequestTimeout, true, false},
		{http.StatusRequestEntityTooLarge, false, false},
		{http.StatusTooEarly, true, false},
		{http.StatusTooManyRequests, true, false},
		{http.StatusInternalServerError, false, true},
		{http.StatusNotImplemented, false, false},
		{http.StatusBadGateway, false, true},
		{http.StatusServiceUnavailable, true, false},
		{http.StatusGatewayTimeout, false, true},
	} {
		var requests atomic.Int32
		hub := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Location", "/elsewhere?secret=1")
			w.WriteHeader(c.status)
		})
		id, err := mustNew(t, client.Options{HubURL: hub, Token: always("secret")}).Publish(t.Context(), client.Update{Topics: []string{"t"}})
		e := failure(t, err)
		if id != "" || e.Op != "publish" || e.Status != c.status || e.Retryable() != c.retryable || e.Uncertain != c.uncertain {
			t.Errorf("status %d: Publish = %q, %+v (retryable %t)", c.status, id, e, e.Retryable())
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("status %d: %d requests: a redirect was followed or a refusal repeated", c.status, n)
		}
		if strings.Contains(e.Error(), "secret") {
			t.Errorf("status %d: the error shows a secret: %v", c.status, e)
		}
	}
}

func TestPublish_readsTheProblem(t *testing.T) {
	const long = "9999999999999999999"
	for name, c := range map[string]struct {
		status               int
		kind, body, retry    string
		challenges           []string
		want                 client.Error
		text                 string
		problem, permanently bool
	}{
		"problem": {
			status: 400, kind: "application/problem+json; charset=utf-8", problem: true,
			body: `{"title":"Bad Request","detail":"A topic is too long.","hint":"cut it","request_id":"r1"}` + "\n",
			want: client.Error{Title: "Bad Request", Detail: "A topic is too long.", Hint: "cut it", RequestID: "r1"},
			text: "publish: 400 Bad Request: A topic is too long (request r1)",
		},
		"a title that says more": {status: 404, kind: "application/problem+json", body: `{"title":"Lost"}`, problem: true, want: client.Error{Title: "Lost"}, text: "publish: 404 Not Found: Lost"},
		"no problem at all":      {status: 404, kind: "text/html", body: `{"title":"Lost"}`, text: "publish: 404 Not Found"},
		"broken":                 {status: 400, kind: "application/problem+json", body: `{"title":`, text: "publish: 400 Bad Request"},
		"another shape":          {status: 400, kind: "application/json", body: `{"title":1}`, text: "publish: 400 Bad Request"},
		"control characters": {
			status: 400, kind: "application/json", body: `{"detail":"a\u001b[31m\nb\u009b"}`, problem: true,
			want: client.Error{Detail: "a [31m b "}, text: "publish: 400 Bad Request: a [31m b ",
		},
		"endless": {status: 400, kind: "application/problem+json", body: `{"title":"` + strings.Repeat("x", 1<<20) + `"}`, text: "publish: 400 Bad Request"},
		"challenge": {
			status: 403, challenges: []string{`Bearer realm="x", error="insufficient_scope", error_description="no"`},
			want: client.Error{Code: "insufficient_scope"}, text: "publish: 403 Forbidden: insufficient_scope",
		},
		"challenge without quotes, second field": {
			status: 401, challenges: []string{`Basic realm="no_error=here"`, `Bearer error=invalid_token`}, want: client.Error{Code: "invalid_token"},
			text: "publish: 401 Unauthorized: invalid_token",
		},
		"bare challenge":       {status: 401, challenges: []string{`Bearer resource_metadata="https://h/?x_error=a"`}, text: "publish: 401 Unauthorized"},
		"retry after seconds":  {status: 503, retry: "7", want: client.Error{RetryAfter: 7 * time.Second}, text: "publish: 503 Service Unavailable"},
		"retry after nonsense": {status: 503, retry: "-7", text: "publish: 503 Service Unavailable"},
		"retry after ages":     {status: 503, retry: long, want: client.Error{RetryAfter: 15 * time.Minute}, text: "publish: 503 Service Unavailable"},
		"retry after the past": {status: 503, retry: "Mon, 02 Jan 2006 15:04:05 GMT", text: "publish: 503 Service Unavailable"},
		"unknown status":       {status: 599, want: client.Error{Uncertain: true}, text: "publish: 599"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				h := w.Header()
				h.Set("Content-Type", c.kind)
				h["Www-Authenticate"] = c.challenges
				if c.retry != "" {
					h.Set("Retry-After", c.retry)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := mustNew(t, client.Options{HubURL: hub}).Publish(t.Context(), client.Update{Topics: []string{"t"}})
			e := failure(t, err)
			if e.Error() != c.text {
				t.Errorf("text %q, want %q", e, c.text)
			}
			if want := strings.TrimSpace(c.body); c.problem && string(e.Problem) != want || !c.problem && e.Problem != nil {
				t.Errorf("problem %s", e.Problem)
			}
			got := client.Error{
				Code: e.Code, Title: e.Title, Detail: e.Detail, Hint: e.Hint, RequestID: e.RequestID, RetryAfter: e.RetryAfter, Uncertain: e.Uncertain,
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(client.Error{})); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublish_retryAfterADate(t *testing.T) {
	hub := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	_, err := mustNew(t, client.Options{HubURL: hub}).Publish(t.Context(), client.Update{Topics: []string{"t"}})
	if e := failure(t, err); e.RetryAfter < 59*time.Minute || e.RetryAfter > time.Hour {
		t.Errorf("RetryAfter = %v, want about an hour", e.RetryAfter)
	}
}

func TestPublish_answersThatAreNoID(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"PUB-32 a page instead": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<h1>It works!</h1>")
		},
		"nothing":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/plain") },
		"lines":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a\nb") },
		"too much": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) },
		"cut short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "20")
			_, _ = io.WriteString(w, "urn:uuid:1")
		},
	} {
		id, err := mustNew(t, client.Options{HubURL: serve(t, h)}).Publish(t.Context(), client.Update{Topics: []string{"t"}})
		if e := failure(t, err); id != "" || e.Status != http.StatusOK || !e.Uncertain || e.Retryable() {
			t.Errorf("%s: Publish = %q, %+v", name, id, e)
		}
	}
}

// rawServer hands each connection to a function, as servers do that are none.
func rawServer(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				talk(conn)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); open.Wait() })
	return "http://" + l.Addr().String() + "/hub"
}

// readRequest reads a request's header and as much of its body as comes with it.
func readRequest(conn net.Conn) { _, _ = conn.Read(make([]byte, 64<<10)) }

func TestPublish_tellsTheAmbiguousFromTheSafe(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String() + "/hub"
	_ = closed.Close()
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	for name, c := range map[string]struct {
		hub                  string
		timeout              time.Duration
		uncertain, retryable bool
	}{
		"nobody listens":          {hub: nobody, retryable: true},
		"no such host":            {hub: "http://hub.invalid/hub", timeout: time.Second, retryable: true},
		"an unknown certificate":  {hub: tlsServer.URL},
		"it hangs up after":       {hub: rawServer(t, readRequest), uncertain: true},
		"it hangs up in the head": {hub: rawServer(t, func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Ty") }), uncertain: true},
		"it answers nonsense":     {hub: rawServer(t, func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "hello\r\n\r\n") }), uncertain: true},
		"it never answers": {hub: rawServer(t, func(c net.Conn) {
			readRequest(c)
			_, _ = c.Read(make([]byte, 1)) // until the client gives up
		}), timeout: time.Second, uncertain: true},
		"an endless header": {hub: rawServer(t, func(c net.Conn) {
			readRequest(c)
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(c, "X-More: "+strings.Repeat("x", 1000)+"\r\n")
			}
		}), uncertain: true},
		"a slow header": {hub: rawServer(t, func(c net.Conn) {
			readRequest(c)
			var err error
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for _, b := range []byte("HTTP/1.1 200 OK\r\nX-More: " + strings.Repeat("x", 1000)) {
				if err == nil {
					<-tick.C
					_, err = c.Write([]byte{b})
				}
			}
		}), timeout: time.Second, uncertain: true},
		"a slow answer": {hub: rawServer(t, func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nurn")
			_, _ = c.Read(make([]byte, 1))
		}), timeout: time.Second, uncertain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := mustNew(t, client.Options{HubURL: c.hub, Timeout: c.timeout})
			_, err := hub.Publish(t.Context(), client.Update{Topics: []string{"secret-topic"}})
			e := failure(t, err)
			if e.Uncertain != c.uncertain || e.Retryable() != c.retryable || e.Err == nil {
				t.Errorf("Publish = %+v (retryable %t), want uncertain %t, retryable %t", e, e.Retryable(), c.uncertain, c.retryable)
			}
			if strings.Contains(e.Error(), "secret-topic") {
				t.Errorf("the error shows the topic: %v", e)
			}
		})
	}
}

// A request whose body could not be written in full cannot have been taken for a publication.
func TestPublish_aBodyThatBreaksOffIsSafe(t *testing.T) {
	hub := rawServer(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 512))
		_ = c.(*net.TCPConn).SetLinger(0) // a reset: what is still to come cannot be written
	})
	_, err := mustNew(t, client.Options{HubURL: hub}).Publish(t.Context(), client.Update{Topics: []string{"t"}, Data: strings.Repeat("x", 32<<20)})
	if e := failure(t, err); e.Uncertain || !e.Retryable() {
		t.Errorf("Publish = %+v", e)
	}
}

func TestPublish_endsWithItsContext(t *testing.T) {
	hub := rawServer(t, func(c net.Conn) { readRequest(c); _, _ = c.Read(make([]byte, 1)) })
	reason := errors.New("somebody else was faster")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
	defer timer.Stop()
	_, err := mustNew(t, client.Options{HubURL: hub}).Publish(ctx, client.Update{Topics: []string{"t"}})
	if e := failure(t, err); !errors.Is(e, reason) {
		t.Errorf("Publish = %+v, want the context's cause", e)
	}
	canceled, stop := context.WithCancel(t.Context())
	stop()
	for _, source := range []func(context.Context) (string, error){nil, always("t"), func(ctx context.Context) (string, error) { return "", ctx.Err() }} {
		_, err = mustNew(t, client.Options{HubURL: hub, Token: source}).Publish(canceled, client.Update{Topics: []string{"t"}})
		if e := failure(t, err); !errors.Is(e, context.Canceled) || e.Uncertain || e.Retryable() {
			t.Errorf("Publish = %+v, want a cancellation that sent nothing", e)
		}
	}
}

func TestPublish_triesAnotherTokenOnce(t *testing.T) {
	for name, c := range map[string]struct {
		tokens   []string // "!" is a failure of the source
		good     string
		requests int
		asked    int
		text     string
	}{
		"accepted":               {tokens: []string{"a"}, good: "a", requests: 1, asked: 1},
		"the second is good":     {tokens: []string{"a", "b"}, good: "b", requests: 2, asked: 2},
		"the same again":         {tokens: []string{"a", "a"}, good: "b", requests: 1, asked: 2, text: "401 Unauthorized"},
		"the second is bad too":  {tokens: []string{"a", "b", "c"}, good: "c", requests: 2, asked: 2, text: "401 Unauthorized"},
		"no token, then one":     {tokens: []string{"", "b"}, good: "b", requests: 2, asked: 2},
		"the source fails":       {tokens: []string{"!"}, asked: 1, text: "publish: get a token: out of order"},
		"it fails the next time": {tokens: []string{"a", "!"}, good: "b", requests: 1, asked: 2, text: "publish: get a token: out of order"},
		"two words":              {tokens: []string{"a b"}, asked: 1, text: "not one word"},
		"a line":                 {tokens: []string{"a\r\nX-Injected:1"}, asked: 1, text: "not one word"},
	} {
		t.Run(name, func(t *testing.T) {
			requests, asked := 0, 0
			hub := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests++
				if r.Header.Get("Authorization") != "Bearer "+c.good {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				if err := r.ParseForm(); err != nil || r.PostForm.Get("topic") != "t" {
					t.Errorf("the repetition sends %v, %v", r.PostForm, err)
				}
				_, _ = io.WriteString(w, "id")
			})
			source := func(context.Context) (string, error) {
				token := c.tokens[asked]
				asked++
				if token == "!" {
					return "", errors.New("out of order")
				}
				return token, nil
			}
			id, err := mustNew(t, client.Options{HubURL: hub, Token: source}).Publish(t.Context(), client.Update{Topics: []string{"t"}})
			if c.text == "" && (err != nil || id != "id") || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("Publish = %q, %v; want %q", id, err, c.text)
			}
			if err != nil && (failure(t, err).Uncertain || failure(t, err).Retryable()) {
				t.Errorf("Publish = %+v, want a final error", failure(t, err))
			}
			if requests != c.requests || asked != c.asked {
				t.Errorf("%d requests and %d tokens, want %d and %d", requests, asked, c.requests, c.asked)
			}
		})
	}
}

// A source of tokens can have trouble that passes, as the hub can: with the network, or because its server is busy.
func TestPublish_tokenOutage(t *testing.T) {
	network := &url.Error{Op: "Post", URL: "https://as.example.com/token", Err: errors.New("connection refused")}
	for _, c := range []struct {
		err       error
		retryable bool
	}{
		{network, true},
		{&client.Error{Op: "token", Err: network}, true},
		{fmt.Errorf("ask: %w", &client.Error{Op: "token", Status: http.StatusServiceUnavailable, RetryAfter: time.Minute}), true},
		{&client.Error{Op: "token", Status: http.StatusBadRequest, Err: errors.New("invalid_client")}, false},
		{errors.New("invalid_client"), false},
	} {
		source := func(context.Context) (string, error) { return "", c.err }
		_, err := mustNew(t, client.Options{HubURL: "https://hub.example.com/", Token: source}).Publish(t.Context(), client.Update{Topics: []string{"t"}})
		e := failure(t, err)
		if e.Retryable() != c.retryable || e.Uncertain || e.Op != "publish" || !errors.Is(e, c.err) {
			t.Errorf("Publish = %+v, want retryable %t", e, c.retryable)
		}
		if inner, ok := errors.AsType[*client.Error](c.err); ok && e.RetryAfter != inner.RetryAfter {
			t.Errorf("Publish = %+v, want to wait for %v", e, inner.RetryAfter)
		}
	}
}

// An error is one line, whatever it was made of: it goes into logs.
func TestPublish_errorIsOneLine(t *testing.T) {
	source := func(context.Context) (string, error) { return "", errors.New("503\nResponse: \x1b[31m<html>\r\n") }
	_, err := mustNew(t, client.Options{HubURL: "https://hub.example.com/", Token: source}).Publish(t.Context(), client.Update{Topics: []string{"t"}})
	if want := "publish: get a token: 503 Response:  [31m<html>  "; failure(t, err).Error() != want {
		t.Errorf("Publish = %q, want %q", err, want)
	}
}

func TestPublish_timeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 2 * time.Second: 2 * time.Second, -1: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			silent := roundTripper(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			c := mustNew(t, client.Options{HubURL: "https://hub.example.com/", HTTPClient: &http.Client{Transport: silent}, Timeout: timeout})
			start := time.Now()
			_, err := c.Publish(ctx, client.Update{Topics: []string{"t"}})
			if e := failure(t, err); !errors.Is(e, context.DeadlineExceeded) || !e.Uncertain {
				t.Errorf("Timeout %v: Publish = %+v", timeout, e)
			}
			if waited := time.Since(start); waited != want {
				t.Errorf("Timeout %v: waited %v, want %v", timeout, waited, want)
			}
		})
	}
}

func TestPublish_speaksHTTP2(t *testing.T) {
	var protocol string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol = r.Proto
		_, _ = io.WriteString(w, "id")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c := mustNew(t, client.Options{HubURL: s.URL, TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}})
	if _, err := c.Publish(t.Context(), client.Update{Topics: []string{"t"}}); err != nil || protocol != "HTTP/2.0" {
		t.Errorf("SUB-11: Publish = %v over %s", err, protocol)
	}
}

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := client.NewID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("NewID = %q, which is no random UUID or came before", id)
		}
		seen[id] = true
	}
}
