package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	verifyPath  = "/v1/verify"
	compactPath = "/v1/compact"
	// talkInterval is how often a server says something while it works, so that its client does not take it for dead.
	talkInterval = 15 * time.Second
)

var (
	_ history.Verifier  = (*Client)(nil)
	_ history.Compacter = (*Client)(nil)
)

func (v *Server) verify(w http.ResponseWriter, r *http.Request) {
	verifier, ok := v.service.History.(history.Verifier)
	if !ok {
		refuse(w, http.StatusNotImplemented, "this history cannot check itself")
		return
	}
	v.work(w, r, "history was verified", func(ctx context.Context) (any, error) { return verifier.Verify(ctx) })
}

func (v *Server) compact(w http.ResponseWriter, r *http.Request) {
	compacter, ok := v.service.History.(history.Compacter)
	if !ok {
		refuse(w, http.StatusNotImplemented, "this history has nothing to give back")
		return
	}
	v.work(w, r, "history was compacted", func(ctx context.Context) (any, error) { return compacter.Compact(ctx) })
}

// beginWork keeps others from long work until done is called; ok is false, and the request answered, when there is some already.
func (v *Server) beginWork(w http.ResponseWriter) (done func(), ok bool) {
	select {
	case v.working <- struct{}{}:
		return func() { <-v.working }, true
	default:
		refuse(w, http.StatusConflict, "the history is being copied, verified or compacted for somebody else")
		return nil, false
	}
}

// work answers with what fn returns, however long that takes. What it says meanwhile is white space, which JSON allows before a value.
func (v *Server) work(w http.ResponseWriter, r *http.Request, done string, fn func(context.Context) (any, error)) {
	finished, ok := v.beginWork(w)
	if !ok {
		return
	}
	defer finished()
	type outcome struct {
		value any
		err   error
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	result := make(chan outcome, 1) // the goroutine ends whether or not somebody reads, and is waited for
	go func() {
		value, err := fn(ctx)
		result <- outcome{value, err}
	}()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Trailer", statusTrailer)
	out := &stream{w: w, control: http.NewResponseController(w)}
	tick := time.NewTicker(talkInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := out.Write([]byte("\n")); err != nil || out.control.Flush() != nil {
				cancel() // nobody is there to be told; the outcome is waited for all the same
			}
			continue
		case o := <-result:
			var text []byte
			if o.err == nil {
				text, o.err = json.Marshal(o.value)
			}
			if o.err != nil {
				h.Set(statusTrailer, oneLine(o.err))
				_, _ = out.Write([]byte("\n")) // so that the trailer is sent
				v.service.Logger.Warn("a command was not served", slog.String("path", r.URL.Path), slog.String("error", o.err.Error()))
				return
			}
			_, _ = out.Write(append(text, '\n')) // a client that has gone needs no answer
			h.Set(statusTrailer, statusComplete)
			v.service.Logger.Info("a command was served", slog.String("outcome", done), slog.Duration("took", time.Since(began)))
			return
		}
	}
}

// oneLine writes an error so that it fits into a header.
func oneLine(err error) string {
	text := []rune(err.Error())
	for i, r := range text {
		if r < ' ' || r == 0x7f {
			text[i] = ' '
		}
	}
	return string(text)
}

// Verify implements history.Verifier. It returns ErrFailed with what the hub says of damage, and when the hub ended meanwhile.
func (c *Client) Verify(ctx context.Context) (history.Verification, error) {
	var v history.Verification
	if err := c.ask(ctx, http.MethodGet, verifyPath, &v); err != nil {
		return history.Verification{}, fmt.Errorf("ask the hub to verify its history: %w", err)
	}
	return v, nil
}

// Compact implements history.Compacter. It returns ErrFailed when the hub could not do it, or ended meanwhile.
func (c *Client) Compact(ctx context.Context) (history.Compaction, error) {
	var v history.Compaction
	if err := c.ask(ctx, http.MethodPost, compactPath, &v); err != nil {
		return history.Compaction{}, fmt.Errorf("ask the hub to compact its history: %w", err)
	}
	return v, nil
}

// ask sends a request for long work and reads its outcome.
func (c *Client) ask(ctx context.Context, method, path string, to any) error {
	resp, err := c.send(ctx, method, path)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	status := resp.Trailer.Get(statusTrailer)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: it ended: %w", ErrFailed, err)
	case status == "":
		return fmt.Errorf("%w: it does not say that it has", ErrFailed)
	case status != statusComplete:
		return fmt.Errorf("%w: %s", ErrFailed, status)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}
