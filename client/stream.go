package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

// stream is one open event stream.
type stream struct {
	cause   func() error // why the stream was ended from this side, or nil
	cancel  context.CancelCauseFunc
	body    io.Closer
	decoder *sse.Decoder
	from    string // Mercure-Last-Event-ID
}

// open opens a stream. The error is an *Error.
func (f *follower) open(parent context.Context) (_ *stream, err error) {
	c := f.client
	ctx, cancel := context.WithCancelCause(parent)
	defer func() {
		if err != nil {
			cancel(nil)
		}
	}()
	if d := c.options.Timeout; d > 0 { // a context's own deadline would end the stream as well
		slow := time.AfterFunc(d, func() { cancel(noAnswer(d)) })
		defer slow.Stop()
	}
	resp, err := c.send(ctx, "subscribe", c.stream, func() (*http.Request, error) {
		target, cursor := f.target()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", eventStreamMediaType)
		req.Header.Set("Accept-Encoding", "identity") // a compressor on the way would hold events back
		req.Header.Set("Cache-Control", "no-cache")
		if cursor != "" {
			req.Header.Set(headerLastEventID, cursor)
		}
		return req, nil
	})
	if err != nil {
		return nil, err
	}
	if kind := mediaType(resp.Header); kind != eventStreamMediaType {
		err := fmt.Errorf("the answer is %s, not an event stream: this may not be a hub", describe(kind))
		return nil, &Error{Op: "subscribe", Status: resp.StatusCode, Err: errors.Join(err, resp.Body.Close())}
	}
	body := &idleReader{r: resp.Body, limit: c.options.IdleTimeout}
	if body.limit > 0 {
		body.timer = time.AfterFunc(body.limit, func() { cancel(fmt.Errorf("nothing came for %v", body.limit)) })
		body.timer.Stop()
	}
	return &stream{
		cause: func() error { return context.Cause(ctx) }, cancel: cancel, body: resp.Body, decoder: sse.NewDecoder(body, c.options.MaxEventBytes),
		from: trimmed(resp.Header.Get(headerMercureLastEventID)),
	}, nil
}

// next gives the next event. The error is an *Error.
func (s *stream) next() (sse.Event, error) {
	if cause := s.cause(); cause != nil { // events that have been read already must not outlive it
		return sse.Event{}, failed("subscribe", cause, nil)
	}
	e, err := s.decoder.Next()
	if err == nil {
		return e, nil
	}
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	return sse.Event{}, failed("subscribe", s.cause(), err)
}

// close lets go of the connection.
func (s *stream) close() {
	s.cancel(nil)
	_ = s.body.Close() // nothing is lost: what counts has been read
}

// idleReader ends the stream when a read takes too long. Its time counts only while somebody waits for bytes, not while the reader
// of the events is busy with one.
type idleReader struct {
	r     io.Reader
	limit time.Duration
	timer *time.Timer // nil: no limit
}

// Read implements io.Reader.
func (r *idleReader) Read(p []byte) (int, error) {
	if r.timer != nil {
		r.timer.Reset(r.limit)
		defer r.timer.Stop()
	}
	return r.r.Read(p)
}

// trimmed is a header value as it arrives.
func trimmed(s string) string { return strings.Trim(s, " \t") }
