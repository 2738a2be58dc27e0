package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

// ErrEventTooLarge says that an event exceeds [Options.MaxEventBytes]. It would come again, so the iteration ends.
var ErrEventTooLarge = sse.ErrEventTooLarge

// errEnded says that the hub ended a stream, which hubs do from time to time.
var errEnded = errors.New("the stream has ended")

// maxProblemBytes bounds what is read of an error response.
const maxProblemBytes = 64 << 10

// Error is a failed publication, stream or discovery.
type Error struct {
	// Op is what failed: "publish", "subscribe" or "discover".
	Op string
	// Status is the status of the response, or 0 when none came.
	Status int
	// Code is the error code of a Bearer challenge (RFC 6750 section 3.1), such as "invalid_token" or "insufficient_scope".
	Code string
	// Title, Detail, Hint and RequestID are members of the problem document (RFC 9457) that came with the response; Hint and RequestID
	// are extensions of Cinnabar's. All are the other side's text.
	Title, Detail, Hint, RequestID string
	// Problem is that document as a whole, or nil.
	Problem json.RawMessage
	// RetryAfter is how long the server asked to wait, 0 when it did not.
	RetryAfter time.Duration
	// Uncertain says that the update may have been published all the same: the answer was lost or says nothing definite. A publisher
	// that gave the update an id of its own can repeat it, and readers recognise the repetition by its id; see [NewID].
	Uncertain bool
	// Err is the cause when there was no usable response, or nil.
	Err error

	unsent bool // it failed before there was a request
}

// Error returns the operation, the status and what the other side said about it, in one line.
func (e *Error) Error() string {
	var parts []string
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	if e.Status != 0 && (e.Err == nil || e.Status != http.StatusOK) {
		parts = append(parts, strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status)))
	}
	if e.Code != "" {
		parts = append(parts, e.Code)
	}
	switch {
	case e.Detail != "":
		parts = append(parts, strings.TrimSuffix(e.Detail, "."))
	case e.Title != "" && e.Title != http.StatusText(e.Status):
		parts = append(parts, e.Title)
	}
	if e.Err != nil {
		parts = append(parts, oneLine(e.Err.Error()))
	}
	text := strings.Join(parts, ": ")
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed later and cannot repeat what has already happened: the hub could not be
// reached, or asked to come back (408, 425, 429, 503), or failed (5xx). An uncertain publication is not retryable, see
// [Error.Uncertain]. Of an error of [Options.Token], see there.
func (e *Error) Retryable() bool {
	if e.Uncertain {
		return false
	}
	switch e.Status {
	case 0:
		return passes(e.Err)
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	default:
		return e.Status >= http.StatusInternalServerError
	}
}

// passes reports whether a failure without a response may be over the next time.
func passes(err error) bool {
	if source, ok := errors.AsType[*tokenError](err); ok {
		if e, ok := errors.AsType[*Error](source.err); ok {
			return e.Retryable()
		}
		_, network := errors.AsType[net.Error](source.err)
		return network
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	return err != nil && !errors.Is(err, ErrEventTooLarge) && !errors.Is(err, context.Canceled)
}

// tokenError is a failure of Options.Token.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "get a token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// failed is the error of a request without a response. When its context has ended, the cause of that is what went wrong.
func failed(op string, cause, err error) *Error {
	if cause != nil {
		return &Error{Op: op, Err: cause}
	}
	if source, ok := errors.AsType[*tokenError](err); ok {
		e := &Error{Op: op, Err: source}
		if busy, ok := errors.AsType[*Error](source.err); ok {
			e.RetryAfter = busy.RetryAfter
		}
		return e
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok && wrapped.Err != nil {
		err = wrapped.Err // it would show the URL, and the URL the topics
	}
	return &Error{Op: op, Err: err}
}

// refused turns an unexpected response into an error with what it says, and closes it.
func refused(op string, resp *http.Response) *Error {
	defer func() { _ = resp.Body.Close() }()
	e := &Error{
		Op: op, Status: resp.StatusCode, Code: challengeError(resp.Header.Values("WWW-Authenticate")),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	if to, err := resp.Location(); err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		e.Err = fmt.Errorf("a redirect to %s://%s%s, which is not followed", to.Scheme, to.Host, to.EscapedPath())
	}
	switch kind := mediaType(resp.Header); kind {
	case "application/problem+json", "application/json":
	default:
		return e
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	if err != nil {
		return e // a broken body still has a status
	}
	var p struct {
		Title     string `json:"title"`
		Detail    string `json:"detail"`
		Hint      string `json:"hint"`
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(body, &p) != nil {
		return e
	}
	e.Problem = bytes.TrimSpace(body)
	e.Title, e.Detail, e.Hint, e.RequestID = oneLine(p.Title), oneLine(p.Detail), oneLine(p.Hint), oneLine(p.RequestID)
	return e
}

// oneLine keeps foreign text from breaking out of its line in logs and terminals.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// mediaType is the media type of a response, in lower case and without parameters; what cannot be parsed is none.
func mediaType(h http.Header) string {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind
}

// challengeError finds the error parameter of a Bearer challenge (RFC 6750 section 3). Codes are of few characters, none of which
// needs escaping, so what precedes and follows them is enough to find one.
func challengeError(challenges []string) string {
	for _, c := range challenges {
		for rest, found := c, true; found; {
			var before, after string
			before, after, found = strings.Cut(rest, "error=")
			if found && (before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, ",")) {
				value := strings.TrimPrefix(after, `"`)
				end := strings.IndexFunc(value, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
				if end < 0 {
					end = len(value)
				}
				return value[:end]
			}
			rest = after
		}
	}
	return ""
}
