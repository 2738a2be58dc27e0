package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
)

// DefaultBodyTimeout is how long a client may take to send a request body.
const DefaultBodyTimeout = 30 * time.Second

// EchoOptions configures NewEcho.
type EchoOptions struct {
	// Logger receives the access log and failures. It is required.
	Logger *slog.Logger
	// AccessLog writes a line per request at the info level.
	AccessLog bool
	// ClientIP adds the client's address to the access log; nil leaves it out.
	ClientIP ClientIPFunc
	// HSTS is the max-age of Strict-Transport-Security; 0 sends none.
	HSTS time.Duration
	// BodyTimeout bounds how long a client may take to send a body; 0 means DefaultBodyTimeout.
	BodyTimeout time.Duration
	// Hosts lists the host names that are served; see HostGate. Empty serves any.
	Hosts []string
}

// ErrNoLogger is returned by NewEcho and NewServer when no logger was given.
var ErrNoLogger = errors.New("httpserver: no logger")

// NewEcho returns an echo instance with the middleware that every listener shares, from the outside in: request id, access
// log, recovery, security headers, host gate, body time-out. Errors that handlers return, and requests that
// match no route, are answered with problem documents. The instance listens on nothing: hand it to NewServer.
func NewEcho(o EchoOptions) (*echo.Echo, error) {
	if o.Logger == nil {
		return nil, ErrNoLogger
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = DefaultBodyTimeout
	}
	e := echo.New()
	e.HideBanner = true
	e.HidePort = true
	e.Logger.SetOutput(discard{})
	e.IPExtractor = echo.ExtractIPDirect()
	e.SchemeExtractor = echo.ExtractSchemeDirect()
	e.HTTPErrorHandler = errorHandler(o.Logger)
	e.Use(requestID)
	if o.AccessLog {
		e.Use(accessLog(o.Logger, o.ClientIP))
	}
	e.Use(recovery(o.Logger), defaultHeaders(o.HSTS))
	if len(o.Hosts) > 0 {
		e.Use(HostGate(o.Hosts...))
	}
	e.Use(bodyTimeout(o.BodyTimeout))
	return e, nil
}

// discard swallows echo's own log, whose lines carry nothing that ours lack.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// errorHandler writes the problem document of an error. Only server errors are logged here: edges log their own refusals.
func errorHandler(log *slog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		p := asProblem(err)
		ctx := c.Request().Context()
		if p.Status >= http.StatusInternalServerError || p.Status == 0 {
			level := slog.LevelError
			if errors.Is(err, context.Canceled) {
				level = slog.LevelDebug // the client went away; nobody reads the answer
			}
			log.LogAttrs(ctx, level, "request failed",
				slog.String("request_id", RequestID(c)),
				slog.String("route", c.Path()),
				slog.String("error", err.Error()))
		}
		if werr := WriteProblem(c, p); werr != nil {
			log.LogAttrs(ctx, slog.LevelDebug, "problem not written",
				slog.String("request_id", RequestID(c)), slog.String("error", werr.Error()))
		}
	}
}

// recovery turns a panic of a handler into an error (500). http.ErrAbortHandler keeps its meaning.
func recovery(log *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			defer func() {
				r := recover()
				if r == nil {
					return
				}
				if r == http.ErrAbortHandler { //nolint:errorlint // net/http compares by identity, and so must we
					panic(r)
				}
				log.LogAttrs(c.Request().Context(), slog.LevelError, "handler panicked",
					slog.String("request_id", RequestID(c)),
					slog.String("route", c.Path()),
					slog.String("stack", string(debug.Stack())))
				err = fmt.Errorf("panic: %v", r)
			}()
			return next(c)
		}
	}
}

// accessLog writes one line per request. The query string is never logged, and the path only at the debug level, because
// paths below the hub URL carry topics; the route pattern says which endpoint it was.
func accessLog(log *slog.Logger, clientIP ClientIPFunc) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			if err := next(c); err != nil {
				c.Error(err)
			}
			r := c.Request()
			ctx := r.Context()
			attrs := make([]slog.Attr, 0, 10)
			attrs = append(attrs,
				slog.String("request_id", RequestID(c)),
				slog.String("method", logMethod(r.Method)),
				slog.String("route", c.Path()),
				slog.Int("status", c.Response().Status),
				slog.Int64("bytes", c.Response().Size),
				slog.Duration("duration", time.Since(start)),
				slog.String("protocol", r.Proto))
			if clientIP != nil {
				attrs = append(attrs, slog.String("client_address", clientIP(r).String()))
			}
			if log.Enabled(ctx, slog.LevelDebug) {
				attrs = append(attrs, slog.String("path", r.URL.Path))
			}
			log.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
			return nil
		}
	}
}

// logMethod keeps made-up methods out of the log: they may be as long as a header.
func logMethod(m string) string {
	if len(m) > 16 {
		return "other"
	}
	return m
}

// bodyTimeout bounds how long a body may take. The deadline belongs to reading alone, and is taken away again by the server
// before the next request, by hijacking, and by handlers that go on to stream (see BodyRead).
func bodyTimeout(d time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().ContentLength != 0 {
				// An error means that the writer has no deadlines, as in tests with a recorder.
				_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Now().Add(d))
			}
			return next(c)
		}
	}
}

// BodyRead tells the server that the body of c's request has been read: its time-out must not reach a response that is
// still being streamed.
func BodyRead(c echo.Context) {
	_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Time{})
}
