package hubhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// maxMatcherCost bounds the regular expressions of one subscription (URLP-07). Each pattern is bounded by itself, but hundreds of the
// largest would take megabytes for as long as the stream lasts, and hold every update up while it is matched. It is enough
// for a hundred UUIDs spelt out, or any number of wildcards and named groups that stand for whole segments.
const maxMatcherCost = 8192

// subscription is a subscribe request that was found good.
type subscription struct {
	principal *hub.Principal
	params    *mercure.SubscribeParams
	matchers  []*topic.Matcher
}

// subscribe serves GET and QUERY: it opens an event stream.
func (a *api) subscribe(c echo.Context) error {
	s, err := a.admit(c)
	if err != nil {
		return err
	}
	release, err := a.connections.acquire(a.clientIP(c.Request()))
	if err != nil {
		return err
	}
	subscriber, err := a.hub.Subscribe(c.Request().Context(), hub.SubscribeRequest{
		Principal: s.principal,
		Matchers:  s.matchers,
		Cursor:    s.params.Cursor,
		HasCursor: s.params.HasCursor,
	})
	if err != nil {
		release()
		return err
	}
	if a.outdated(s.principal) {
		subscriber.End() // its reader comes back, to the edge that has taken this one's place
	}
	header := make(http.Header)
	setStreamHeaders(header)
	if s.params.HasCursor {
		header.Set(mercure.HeaderMercureLastEventID, resumedFrom(subscriber))
	}
	// From here on nothing of the request may be kept: the connection may already be the engine's.
	err = a.sinks.Serve(c.Response(), c.Request(), header, func(s hub.Sink) {
		subscriber.Attach(&countedSink{Sink: s, release: release})
	})
	if err != nil { // nothing was sent, and nothing attached
		subscriber.Discard()
		release()
		return fmt.Errorf("open stream: %w", err)
	}
	return nil
}

// subscribeHead serves HEAD: everything a GET checks, and its header fields, but no subscription. The cursor's field is left out:
// it would take a subscription to know it.
func (a *api) subscribeHead(c echo.Context) error {
	if _, err := a.admit(c); err != nil {
		return err
	}
	setStreamHeaders(c.Response().Header())
	return c.NoContent(http.StatusOK)
}

// admit judges the credential and reads the parameters, in this order (401 before 400).
func (a *api) admit(c echo.Context) (*subscription, error) {
	r := c.Request()
	if err := a.checkURL(r); err != nil {
		return nil, err
	}
	principal, _, err := a.authenticate(r, rar.Subscribe)
	if err != nil {
		return nil, err
	}
	if principal == nil && !a.options.Anonymous {
		return nil, errNoToken
	}
	params, err := a.subscribeParams(c)
	if err != nil {
		return nil, err
	}
	if len(params.IgnoredCursorNames) > 0 {
		a.legacyCursor.warn(a.log, params.IgnoredCursorNames)
	}
	matchers, cost := make([]*topic.Matcher, 0, len(params.Matchers)), 0
	for _, p := range params.Matchers {
		m, err := a.compiler.Compile(p.Type, p.Pattern)
		if err != nil {
			return nil, fmt.Errorf("compile matcher: %w", err)
		}
		if cost += m.Cost(); cost > maxMatcherCost {
			return nil, errCostlyMatchers
		}
		matchers = append(matchers, m)
	}
	return &subscription{principal: principal, params: params, matchers: matchers}, nil
}

// subscribeParams joins the query, the body of a QUERY request and the Last-Event-ID field. Whatever is too much in a
// subscription is a 400 (LIM-03).
func (a *api) subscribeParams(c echo.Context) (*mercure.SubscribeParams, error) {
	r := c.Request()
	query, err := mercure.ParseForm(r.URL.RawQuery, 0)
	if err != nil {
		return nil, err
	}
	var body []mercure.Pair
	if r.Method == methodQuery && (r.ContentLength != 0 || r.Header.Get(echo.HeaderContentType) != "") {
		// Matchers cost more than their length to compile, so a body may hold no more of them than a URL.
		body, err = a.readForm(c, a.options.Limits.URLBytes)
	}
	var field *mercure.FieldError
	switch {
	case errors.Is(err, errBodyTooLarge):
		return nil, errQueryTooLarge
	case errors.As(err, &field):
		return nil, &mercure.FieldError{Field: field.Field, Rule: field.Rule, Hint: field.Hint}
	case err != nil:
		return nil, err
	}
	header, hasHeader := resumeHeader(r)
	return mercure.ParseSubscribe(query, body, header, hasHeader, a.options.Limits)
}

// setStreamHeaders writes the fields of an event stream: nobody may store it, transform it or hold it back.
func setStreamHeaders(h http.Header) {
	h.Set(echo.HeaderContentType, mercure.EventStreamMediaType)
	h.Set(echo.HeaderCacheControl, "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// resumedFrom is the value of Mercure-Last-Event-ID: the id before the first event of the stream, or "earliest" when there is
// none or the requested one is unknown (REC-15 to REC-17).
func resumedFrom(s *hub.Subscriber) string {
	if id, ok := s.ResumedFrom(); ok {
		return id
	}
	return mercure.Earliest
}

// countedSink gives a stream's place back when the engine is done with the connection, which it says by one of two calls.
type countedSink struct {
	hub.Sink

	release  func()
	released atomic.Bool
}

// Finish implements hub.Sink.
func (s *countedSink) Finish() {
	s.Sink.Finish()
	s.free()
}

// Abort implements hub.Sink.
func (s *countedSink) Abort() {
	s.Sink.Abort()
	s.free()
}

func (s *countedSink) free() {
	if s.released.CompareAndSwap(false, true) {
		s.release()
	}
}

// onceLog writes a warning once in the life of an edge, since every reconnect of every such client would repeat it.
type onceLog struct{ done atomic.Bool }

func (o *onceLog) warn(log *slog.Logger, names []string) {
	if o.done.CompareAndSwap(false, true) {
		log.Warn("a client sends its cursor under a name that is none; it resumes nothing",
			slog.Any("parameters", names), slog.String("use", mercure.ParamLastEventID))
	}
}
