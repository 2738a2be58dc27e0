package httpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

func newEcho(t *testing.T, o httpserver.EchoOptions) *echo.Echo {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := httpserver.NewEcho(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func serve(e http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestNewEcho_needsALogger(t *testing.T) {
	if _, err := httpserver.NewEcho(httpserver.EchoOptions{}); !errors.Is(err, httpserver.ErrNoLogger) {
		t.Errorf("NewEcho without logger = %v, want %v", err, httpserver.ErrNoLogger)
	}
}

func TestNewEcho_answersErrorsWithProblems(t *testing.T) {
	var log bytes.Buffer
	e := newEcho(t, httpserver.EchoOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), AccessLog: true})
	e.GET("/problem", func(echo.Context) error {
		return &httpserver.Problem{Status: 409, Title: "Taken", Detail: "Somebody was faster.", Hint: "Try again."}
	})
	e.GET("/wrapped", func(echo.Context) error {
		return fmt.Errorf("handle: %w", &httpserver.Problem{Status: 418})
	})
	e.GET("/echo", func(echo.Context) error { return echo.NewHTTPError(http.StatusTeapot, "inner text") })
	e.GET("/internal", func(echo.Context) error { return errors.New("dsn=postgres://secret") })
	e.GET("/large", func(echo.Context) error { return &http.MaxBytesError{Limit: 1} })
	e.GET("/panic", func(echo.Context) error { panic("whoops") })
	e.GET("/begun", func(c echo.Context) error {
		if err := c.String(http.StatusOK, "begun"); err != nil {
			return err
		}
		return errors.New("too late")
	})
	for _, tc := range []struct {
		method, target string
		want           httpserver.Problem
	}{
		{"GET", "/problem", httpserver.Problem{Status: 409, Title: "Taken", Detail: "Somebody was faster.", Hint: "Try again."}},
		{"GET", "/wrapped", httpserver.Problem{Status: 418, Title: "I'm a teapot"}},
		{"GET", "/echo", httpserver.Problem{Status: 418, Title: "I'm a teapot"}},
		{"GET", "/internal", httpserver.Problem{Status: 500, Title: "Internal Server Error"}},
		{"GET", "/large", httpserver.Problem{Status: 413, Title: "Content Too Large"}},
		{"GET", "/panic", httpserver.Problem{Status: 500, Title: "Internal Server Error"}},
		{"GET", "/nowhere", httpserver.Problem{Status: 404, Title: "Not Found"}},
		{"DELETE", "/echo", httpserver.Problem{Status: 405, Title: "Method Not Allowed"}},
	} {
		t.Run(tc.method+" "+tc.target, func(t *testing.T) {
			w := serve(e, httptest.NewRequest(tc.method, tc.target, nil))
			if got := w.Header().Get("Content-Type"); got != httpserver.ProblemMediaType {
				t.Errorf("Content-Type = %q, want %q", got, httpserver.ProblemMediaType)
			}
			var got httpserver.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			tc.want.RequestID = w.Header().Get("X-Request-Id")
			if diff := cmp.Diff(tc.want, got); diff != "" || w.Code != tc.want.Status || got.RequestID == "" {
				t.Errorf("status %d, problem differs (-want +got):\n%s", w.Code, diff)
			}
			if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
	if w := serve(e, httptest.NewRequest(http.MethodGet, "/begun", nil)); w.Code != http.StatusOK || w.Body.String() != "begun" {
		t.Errorf("begun response = %d %q, want it left alone", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "whoops") || !strings.Contains(log.String(), "handler panicked") {
		t.Errorf("log = %q, want the panic in it", log.String())
	}
}

func TestNewEcho_abortsWhenAHandlerWantsThat(t *testing.T) {
	e := newEcho(t, httpserver.EchoOptions{})
	e.GET("/", func(echo.Context) error { panic(http.ErrAbortHandler) })
	defer func() {
		r := recover()
		if err, ok := r.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v, want http.ErrAbortHandler", r)
		}
	}()
	serve(e, httptest.NewRequest(http.MethodGet, "/", nil))
}

func TestNewEcho_headRequestsGetNoBody(t *testing.T) {
	e := newEcho(t, httpserver.EchoOptions{})
	e.HEAD("/", func(echo.Context) error { return &httpserver.Problem{Status: 403} })
	w := serve(e, httptest.NewRequest(http.MethodHead, "/", nil))
	if w.Code != http.StatusForbidden || w.Body.Len() != 0 || w.Header().Get("Content-Type") != httpserver.ProblemMediaType {
		t.Errorf("HEAD = %d %q %v", w.Code, w.Body, w.Header())
	}
}

func TestRequestID(t *testing.T) {
	e := newEcho(t, httpserver.EchoOptions{})
	var seen string
	e.GET("/", func(c echo.Context) error {
		seen = httpserver.RequestID(c)
		return c.NoContent(http.StatusNoContent)
	})
	for _, tc := range []struct {
		name, sent string
		kept       bool
	}{
		{"takes over a short token", "Root=1-67891233.abc_D", false},
		{"takes over a short plain token", "1-67891233.abc_D", true},
		{"ignores an empty one", "", false},
		{"ignores line breaks", "a\nlevel=ERROR", false},
		{"ignores spaces", "a b", false},
		{"ignores non-ASCII", "é", false},
		{"takes over 64 bytes", strings.Repeat("a", 64), true},
		{"ignores 65 bytes", strings.Repeat("a", 65), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-Request-Id", tc.sent)
			got := serve(e, r).Header().Get("X-Request-Id")
			if got != seen || got == "" {
				t.Errorf("response says %q, handler saw %q", got, seen)
			}
			if kept := got == tc.sent; kept != tc.kept {
				t.Errorf("id = %q for %q, kept = %v, want %v", got, tc.sent, kept, tc.kept)
			}
		})
	}
	first, second := serve(e, httptest.NewRequest(http.MethodGet, "/", nil)), serve(e, httptest.NewRequest(http.MethodGet, "/", nil))
	if a, b := first.Header().Get("X-Request-Id"), second.Header().Get("X-Request-Id"); a == b {
		t.Errorf("two requests have the id %q", a)
	}
}

func TestAccessLog(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		t.Run(level.String(), func(t *testing.T) {
			var log bytes.Buffer
			e := newEcho(t, httpserver.EchoOptions{
				Logger:    slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})),
				AccessLog: true,
				ClientIP:  httpserver.ClientIP(nil),
			})
			e.GET("/hub/:topic", func(c echo.Context) error { return c.String(http.StatusOK, "12345") })
			r := httptest.NewRequest(http.MethodGet, "/hub/private-topic?match=secret-query", nil)
			serve(e, r)
			line := log.String()
			for _, want := range []string{"method=GET", "route=/hub/:topic", "status=200", "bytes=5", "client_address=192.0.2.1", "request_id="} {
				if !strings.Contains(line, want) {
					t.Errorf("log = %q, want %q in it", line, want)
				}
			}
			if strings.Contains(line, "secret-query") {
				t.Errorf("log = %q, want no query in it", line)
			}
			if strings.Contains(line, "private-topic") != (level == slog.LevelDebug) {
				t.Errorf("log = %q at %v; the path belongs to debug alone", line, level)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	e := newEcho(t, httpserver.EchoOptions{HSTS: 24 * time.Hour})
	e.GET("/json", func(c echo.Context) error { return c.JSON(http.StatusOK, 1) })
	e.GET("/page", func(c echo.Context) error {
		httpserver.SetPageHeaders(c.Response().Header(), httpserver.PagePolicy{
			Scripts: true, Forms: true, Connect: []string{"https://other.example"},
		})
		return c.HTML(http.StatusOK, "<p>")
	})
	json := serve(e, httptest.NewRequest(http.MethodGet, "/json", nil)).Header()
	for name, want := range map[string]string{
		"X-Content-Type-Options":    "nosniff",
		"Referrer-Policy":           "no-referrer",
		"Content-Security-Policy":   "default-src 'none'; frame-ancestors 'none'",
		"Strict-Transport-Security": "max-age=86400",
	} {
		if got := json.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	page := serve(e, httptest.NewRequest(http.MethodGet, "/page", nil)).Header()
	csp := page.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "connect-src 'self' https://other.example", "form-action 'self'",
		"frame-ancestors 'none'", "base-uri 'none'",
	} {
		if !strings.Contains(csp, want) {
			t.Errorf("CSP = %q, want %q in it", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || len(page.Values("Content-Security-Policy")) != 1 {
		t.Errorf("CSP = %q", page.Values("Content-Security-Policy"))
	}
	if got := page.Get("Referrer-Policy"); got != "same-origin" {
		t.Errorf("Referrer-Policy = %q, want same-origin", got)
	}
	plain := serve(newEcho(t, httpserver.EchoOptions{}), httptest.NewRequest(http.MethodGet, "/", nil))
	if got := plain.Header().Get("Strict-Transport-Security"); got != "" {
		t.Errorf("Strict-Transport-Security = %q by default, want none", got)
	}
}

func TestHostGate(t *testing.T) {
	e := newEcho(t, httpserver.EchoOptions{Hosts: []string{"localhost", "127.0.0.1", "::1"}})
	e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	for host, want := range map[string]int{
		"localhost":              204,
		"LocalHost:8443":         204,
		"127.0.0.1:1":            204,
		"[::1]:8443":             204,
		"[::1]":                  204,
		"evil.example":           421,
		"evil.example:8443":      421,
		"localhost.evil.example": 421,
		"localhost.":             421,
		"":                       421,
		"127.0.0.2":              421,
		"localhost@evil.example": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		if w := serve(e, r); w.Code != want {
			t.Errorf("Host %q = %d, want %d", host, w.Code, want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/nowhere", nil)
	r.Host = "evil.example"
	if w := serve(e, r); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("foreign host on an unknown path = %d, want 421", w.Code)
	}
}

func TestClientIP(t *testing.T) {
	proxies := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:192.168.0.0/112"), netip.MustParsePrefix("fd00::/8"),
	}
	for _, tc := range []struct {
		name, peer string
		forwarded  []string
		trusted    []netip.Prefix
		want       string
	}{
		{"peer", "203.0.113.7:4711", nil, nil, "203.0.113.7"},
		{"header is ignored without trusted proxies", "10.0.0.1:1", []string{"203.0.113.7"}, nil, "10.0.0.1"},
		{"header is ignored from an untrusted peer", "198.51.100.1:1", []string{"203.0.113.7"}, proxies, "198.51.100.1"},
		{"one proxy", "10.0.0.1:1", []string{"203.0.113.7"}, proxies, "203.0.113.7"},
		{"only the part after the last untrusted hop counts", "10.0.0.1:1", []string{"1.1.1.1, 203.0.113.7, 10.9.9.9"}, proxies, "203.0.113.7"},
		{"several fields are one list", "10.0.0.1:1", []string{"1.1.1.1", "203.0.113.7,10.2.2.2"}, proxies, "203.0.113.7"},
		{"all trusted: the farthest", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, proxies, "10.0.0.3"},
		{"garbage ends the walk", "10.0.0.1:1", []string{"203.0.113.7, unknown, 10.0.0.2"}, proxies, "10.0.0.2"},
		{"empty field", "10.0.0.1:1", []string{""}, proxies, "10.0.0.1"},
		{"entry with port", "10.0.0.1:1", []string{"203.0.113.7:55"}, proxies, "203.0.113.7"},
		{"bracketed IPv6 entry", "[fd00::1]:1", []string{"[2001:db8::7]:55"}, proxies, "2001:db8::7"},
		{"zone is dropped", "[fe80::1%eth0]:1", nil, proxies, "fe80::1"},
		{"mapped peer is the IPv4 one", "[::ffff:203.0.113.7]:1", nil, nil, "203.0.113.7"},
		{"mapped prefix trusts the IPv4 peer", "192.168.3.4:1", []string{"203.0.113.7"}, proxies, "203.0.113.7"},
		{"unix socket", "@", nil, proxies, "invalid IP"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = tc.peer
			r.Header["X-Forwarded-For"] = tc.forwarded
			if got := httpserver.ClientIP(tc.trusted)(r).String(); got != tc.want {
				t.Errorf("ClientIP = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestClientIP_boundsTheWalk(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "203.0.113.7"+strings.Repeat(",10.0.0.2", 1000))
	if got := httpserver.ClientIP([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})(r); got.String() != "10.0.0.2" {
		t.Errorf("ClientIP = %s, want the walk to end before 1,000 hops", got)
	}
}

func TestBodyTimeout(t *testing.T) {
	e := newEcho(t, httpserver.EchoOptions{BodyTimeout: 50 * time.Millisecond})
	result := make(chan error, 1) // one request, so the handler never blocks
	e.POST("/", func(c echo.Context) error {
		var b [10]byte
		for {
			if _, err := c.Request().Body.Read(b[:]); err != nil {
				result <- err
				return c.NoContent(http.StatusRequestTimeout)
			}
		}
	})
	s := start(t, httpserver.ServerOptions{Handler: e})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-result:
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("reading a stalled body = %v, want a time-out", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("a stalled body holds its handler")
	}
}

func TestErrorHandler_isQuietAboutClientsThatLeft(t *testing.T) {
	var log bytes.Buffer
	e := newEcho(t, httpserver.EchoOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	e.GET("/", func(echo.Context) error { return fmt.Errorf("read: %w", context.Canceled) })
	serve(e, httptest.NewRequest(http.MethodGet, "/", nil))
	if log.Len() != 0 {
		t.Errorf("log = %q, want nothing at info", log.String())
	}
}
