package suite

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// T is one check at work. Its methods belong to the check's own goroutine; Try, Context, Target, Dialer and Pause may be called from others. The
// methods that say so end the check at once, as testing.T's do.
type T struct {
	ctx    context.Context
	target *Target
	dialer *wire.Dialer
	run    string // tells this run from others on the same hub
	number int64  // tells this check from others of the run
	serial atomic.Int64
	wait   sync.WaitGroup

	mu     sync.Mutex
	opened []*wire.Response // event streams, which end with the check

	status   Status
	observed []string
}

// Fail ends the check: the hub does not meet the requirement. The text says what was observed.
func (t *T) Fail(format string, args ...any) {
	t.status = Fail
	t.Observed(format, args...)
	runtime.Goexit()
}

// Skip ends the check with the verdict SKIP: it means nothing for this hub, and the text says why, so that a reader can judge it. It is no way
// around a check: one that is skipped at every site of the reference hub fails package proof, and one that is skipped in every
// configuration of our hub fails package ownhub. What a hub has or lacks as a whole is a Feature.
func (t *T) Skip(format string, args ...any) {
	t.status = Skip
	t.Observed(format, args...)
	runtime.Goexit()
}

// Observed notes what was seen, for the report of a check that passes as well. Tokens are left out of it.
func (t *T) Observed(format string, args ...any) {
	t.observed = append(t.observed, redact(fmt.Sprintf(format, args...)))
}

// redact replaces what begins like a JWS: the base64url of a JSON object.
func redact(text string) string {
	return regexp.MustCompile(`e(yJ|yA|w0|wo|3)[A-Za-z0-9_-]{16,}(\.[A-Za-z0-9_-]*)*`).ReplaceAllString(text, "(token)")
}

// Context ends when the time of the check is over.
func (t *T) Context() context.Context { return t.ctx }

// Target is the hub under test.
func (t *T) Target() *Target { return t.target }

// Dialer opens connections to the hub, for what Do cannot express.
func (t *T) Dialer() *wire.Dialer { return t.dialer }

// Need skips the check when the hub lacks a feature that only some of its ways need.
func (t *T) Need(features ...Feature) {
	for _, f := range features {
		if !t.target.Has(f) {
			t.Skip("%s", f.lacking())
		}
	}
}

// Unique gives a name that nobody else uses: s, a hyphen, and lower-case letters and digits.
func (t *T) Unique(s string) string {
	return fmt.Sprintf("%s-%s%dx%d", s, t.run, t.number, t.serial.Add(1))
}

// Topic gives an absolute URL below https://example.com/, whose last segment nobody else uses.
func (t *T) Topic() string { return "https://example.com/" + t.Unique("t") }

// Folder gives an absolute URL without a final slash, below which nobody else has topics.
func (t *T) Folder() string { return "https://example.com/" + t.Unique("f") }

// Get is a subscription request without a token. The query is written as it is.
func (t *T) Get(query string) wire.Request {
	return wire.Request{Method: "GET", Target: t.target.Path() + mark(query)}.With("Accept", "text/event-stream")
}

// Query is a subscription request by the QUERY method, with a form as its body.
func (t *T) Query(query, form string) wire.Request {
	return wire.Request{Method: "QUERY", Target: t.target.Path() + mark(query)}.WithBody("application/x-www-form-urlencoded", form)
}

// Post is a publication without a token. The form is written as it is.
func (t *T) Post(form string) wire.Request {
	return wire.Request{Method: "POST", Target: t.target.Path()}.WithBody("application/x-www-form-urlencoded", form)
}

// At is a GET request without a token for a path (and query) on the hub's origin.
func (t *T) At(target string) wire.Request { return wire.Request{Method: "GET", Target: target} }

func mark(query string) string {
	if query == "" {
		return ""
	}
	return "?" + query
}

// Bearer presents a token in the Authorization field.
func Bearer(r wire.Request, token string) wire.Request {
	return r.With("Authorization", "Bearer "+token)
}

// InCookie presents a token in the hub's cookie. It needs the feature Cookie.
func (t *T) InCookie(r wire.Request, token string) wire.Request {
	return r.With("Cookie", t.target.CookieName+"="+token)
}

// Try sends a request to the hub and gives the answer. An event stream that is answered ends with the check.
func (t *T) Try(r wire.Request) (*wire.Response, error) {
	resp, err := t.dialer.Do(t.ctx, r)
	if err == nil && resp.Stream != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.opened = append(t.opened, resp)
	}
	return resp, err
}

// Do sends a request to the hub and gives the answer; the check fails when there is none. When the answer is an event
// stream, it is closed: use Open for those.
func (t *T) Do(r wire.Request) *wire.Response {
	resp, err := t.Try(r)
	if err != nil {
		t.Fail("%s: no answer: %v", r.Method, err)
	}
	resp.Close()
	return resp
}

// Want sends a request to the hub; the check fails when the status is none of these.
func (t *T) Want(r wire.Request, status ...int) *wire.Response {
	resp := t.Do(r)
	if !slices.Contains(status, resp.Status) {
		t.Fail("%s: answered %s, wanted %s", describe(r), outcome(resp), oneOf(status))
	}
	t.Observed("%s: %d", describe(r), resp.Status)
	return resp
}

// WantRefused sends a request to the hub; the check fails when the answer is not a 4xx.
func (t *T) WantRefused(r wire.Request) *wire.Response {
	resp := t.Do(r)
	if resp.Status < 400 || resp.Status > 499 {
		t.Fail("%s: answered %s, wanted a 4xx", describe(r), outcome(resp))
	}
	t.Observed("%s: %d", describe(r), resp.Status)
	return resp
}

// Fetch sends a request to any URL, whose path and query it takes; the check fails when there is no answer. Connections
// to the hub's own host go where the target says.
func (t *T) Fetch(at string, r wire.Request) *wire.Response {
	resp, err := t.try(at, r)
	if err != nil {
		t.Fail("%s %s: no answer: %v", r.Method, at, err)
	}
	return resp
}

// try is Fetch without a verdict.
func (t *T) try(at string, r wire.Request) (*wire.Response, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not an absolute URL", at)
	}
	o := wire.Options{Roots: t.target.Roots, Insecure: t.target.Insecure, Timeout: t.target.Patience}
	if u.Host == t.target.url().Host {
		o.Address = t.target.Address
	}
	d, err := wire.New(u, o)
	if err != nil {
		return nil, err
	}
	r.Target = u.EscapedPath() + mark(u.RawQuery)
	if u.Path == "" {
		r.Target = "/" + r.Target
	}
	resp, err := d.Do(t.ctx, r)
	if err == nil {
		resp.Close()
	}
	return resp, err
}

// Publish publishes with tok(publish *): names and values, escaped. It gives the event id, which is the body.
func (t *T) Publish(pairs ...string) string { return t.PublishForm(wire.Form(pairs...)) }

// PublishForm publishes a form as it is with tok(publish *).
func (t *T) PublishForm(form string) string {
	return t.PublishWith(Bearer(t.Post(form), t.PublishAll()))
}

// PublishWith sends a publication that must succeed and gives the event id. That it is answered with 200, and no other 2xx, is
// a matter of PUB-30 alone.
func (t *T) PublishWith(r wire.Request) string {
	resp := t.Do(r)
	if resp.Status < 200 || resp.Status > 299 {
		t.Fail("%s: answered %s, wanted 200", describe(r), outcome(resp))
	}
	return resp.Body
}

// describe names a request in a report without anything secret.
func describe(r wire.Request) string {
	text := r.Method
	if _, query, ok := strings.Cut(r.Target, "?"); ok {
		text += " ?" + short(query)
	}
	if len(r.Body) > 0 {
		text += " " + short(string(r.Body))
	}
	return text
}

// outcome is a status with what the challenge says.
func outcome(resp *wire.Response) string {
	if c := resp.Get("WWW-Authenticate"); c != "" {
		return fmt.Sprintf("%d (%s)", resp.Status, short(c))
	}
	return strconv.Itoa(resp.Status)
}

func oneOf(status []int) string {
	parts := make([]string, len(status))
	for i, s := range status {
		parts[i] = strconv.Itoa(s)
	}
	return strings.Join(parts, " or ")
}

const shortest = 120

// short cuts a text for the report and shows what cannot be printed.
func short(s string) string {
	if s = redact(s); len(s) > shortest {
		s = s[:shortest] + fmt.Sprintf("… (%d bytes)", len(s))
	}
	q := fmt.Sprintf("%+q", s)
	return q[1 : len(q)-1]
}

// finish ends what the check left open.
func (t *T) finish() {
	t.mu.Lock()
	opened := t.opened
	t.mu.Unlock()
	for _, resp := range opened {
		resp.Close()
	}
	t.wait.Wait()
}

// Pause waits, for what only time brings. It ends early with the check.
func (t *T) Pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
	}
}
