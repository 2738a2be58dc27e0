package hubhttp_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	must(t, err)
	must(t, conn.SetDeadline(time.Now().Add(2*patience)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	_, err := io.WriteString(w, s)
	must(t, err)
}

// readResponse reads the header section of an answer, and leaves its body to the caller.
func readResponse(t *testing.T, conn net.Conn, method string) *http.Response {
	t.Helper()
	return readResponseFrom(t, conn, bufio.NewReader(conn), method)
}

func readResponseFrom(t *testing.T, conn net.Conn, r *bufio.Reader, method string) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	must(t, err)
	t.Cleanup(func() {
		_ = conn.Close() // first: closing a body reads it to its end
		_ = resp.Body.Close()
	})
	return resp
}

func readStatus(t *testing.T, conn net.Conn) int {
	t.Helper()
	return readResponse(t, conn, http.MethodGet).StatusCode
}

// exchange sends raw request lines and returns the answer.
func (f *fixture) exchange(t *testing.T, lines ...string) *http.Response {
	t.Helper()
	conn := dial(t, f.address)
	write(t, conn, strings.Join(lines, "\r\n")+"\r\n\r\n")
	method, _, _ := strings.Cut(lines[0], " ")
	return readResponse(t, conn, method)
}

// bare is what Register needs, without a running hub.
type bare struct {
	echo         *echo.Echo
	dependencies hubhttp.Dependencies
}

type noVerifier struct{}

func (noVerifier) Verify(context.Context, string, rar.Action) (*token.Claims, error) {
	return nil, token.ErrUnavailable
}

func newBare(t *testing.T) *bare {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	e, err := httpserver.NewEcho(httpserver.EchoOptions{Logger: log})
	must(t, err)
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	must(t, err)
	history, err := memory.Open(memory.Options{})
	must(t, err)
	t.Cleanup(func() { _ = history.Close() })
	o := hub.DefaultOptions()
	o.Log, o.Compiler = history, compiler
	h, err := hub.New(o)
	must(t, err)
	sinks, err := sink.NewSet(sink.Options{})
	must(t, err)
	t.Cleanup(func() { _ = sinks.Close() })
	return &bare{echo: e, dependencies: hubhttp.Dependencies{
		Hub: h, Sinks: sinks, Verifier: noVerifier{}, Compiler: compiler, Logger: log,
	}}
}

// status serves a GET without a listener.
func (b *bare) status(t *testing.T, target string) int {
	t.Helper()
	w := httptest.NewRecorder()
	b.echo.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w.Code
}
