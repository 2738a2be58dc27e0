package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// maxIDBytes bounds the event id in the answer to a publication.
const maxIDBytes = 16 << 10

// Update is what is published. Only Topics is required.
type Update struct {
	// Topics identify what the update is about, as a rule by URL. The first is canonical, the others are alternates: the update reaches
	// the subscribers of any of them.
	Topics []string
	// Data is the new content, in any text format; UTF-8. Line ends arrive as LF.
	Data string
	// Private keeps the update from everybody whose token does not allow to read one of the topics.
	Private bool
	// ID is the event id; empty lets the hub make one. It must not start with "#". See [NewID].
	ID string
	// Type is the event type; empty means "message".
	Type string
	// Retry is the time that readers are asked to wait before they reconnect, in whole milliseconds, rounded up; 0 asks for nothing.
	Retry time.Duration
}

// NewID returns an id for an update: a random UUID as a URN. A publisher that gives its updates ids can publish one again after an
// uncertain failure ([Error.Uncertain]); should it arrive twice, its readers can tell by the id. Without one, the hub makes a new
// id for each publication.
func NewID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails: crypto/rand aborts the program instead
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u[:])
	return "urn:uuid:" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Publish sends an update and returns the id under which the hub has accepted it. A failure to do so is an [*Error]: it tells
// whether the call can simply be repeated ([Error.Retryable]) and whether the update may have been published nevertheless
// ([Error.Uncertain]). Publish itself sends an update again only when the hub has refused the token and [Options.Token] has another one.
func (c *Client) Publish(ctx context.Context, u Update) (id string, err error) {
	form, err := u.form()
	if err != nil {
		return "", err
	}
	ctx, cancel := limited(ctx, c.options.Timeout)
	defer cancel()
	body := form.Encode()
	var sent *delivery
	resp, err := c.send(ctx, "publish", c.publish, func() (*http.Request, error) {
		sent = &delivery{}
		req, err := http.NewRequestWithContext(sent.watch(ctx), http.MethodPost, c.hub.String(), strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", formMediaType)
		return req, nil
	})
	if e, ok := errors.AsType[*Error](err); ok {
		e.Uncertain = e.Status == 0 && !e.unsent && sent.possible() || indefinite(e.Status)
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	id, err = readID(resp)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", &Error{Op: "publish", Status: resp.StatusCode, Uncertain: true, Err: err}
	}
	return id, nil
}

// form gives the fields of the publication. What the hub checks itself is left to it.
func (u *Update) form() (url.Values, error) {
	if len(u.Topics) == 0 {
		return nil, errors.New("client: an update needs a topic")
	}
	if u.Retry < 0 {
		return nil, errors.New("client: Retry must not be negative")
	}
	form := url.Values{fieldTopic: u.Topics, fieldData: {u.Data}}
	if u.Private {
		form.Set(fieldPrivate, "on")
	}
	for name, value := range map[string]string{fieldID: u.ID, fieldType: u.Type} {
		if value != "" {
			form.Set(name, value)
		}
	}
	if u.Retry > 0 {
		ms := int64((u.Retry-1)/time.Millisecond) + 1
		form.Set(fieldRetry, strconv.FormatInt(ms, 10))
	}
	return form, nil
}

// readID reads the answer to a publication: the id alone, as plain text (PUB-31, PUB-32).
func readID(resp *http.Response) (string, error) {
	if kind := mediaType(resp.Header); kind != "text/plain" {
		return "", fmt.Errorf("the answer is %s, not an event id: this may not be a hub", describe(kind))
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxIDBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the event id: %w", err)
	case len(raw) == 0 || len(raw) > maxIDBytes || strings.ContainsAny(string(raw), "\r\n\x00"):
		return "", errors.New("the answer is not an event id: this may not be a hub")
	}
	return string(raw), nil
}

// describe names a media type in a sentence.
func describe(kind string) string {
	if kind == "" {
		return "of no media type"
	}
	return kind
}

// indefinite reports whether a status leaves open if the request had an effect: a server or a proxy failed while it was at it. A 503
// is sent in place of doing something.
func indefinite(status int) bool {
	switch status {
	case http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusHTTPVersionNotSupported:
		return false
	default:
		return status >= http.StatusInternalServerError
	}
}

// delivery watches how far a request gets. The transport may call it after the request has failed, and from other goroutines.
type delivery struct {
	tracing, connected, broken atomic.Bool
}

// watch gives a context whose request tells d.
func (d *delivery) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { d.tracing.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { d.connected.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) { d.broken.Store(info.Err != nil) },
	})
}

// possible reports whether the server may have got the whole request. Without evidence that it has not, it may: a request that is
// being written when its context ends can still be on its way. A transport that tells nothing gives no evidence.
func (d *delivery) possible() bool {
	return !d.tracing.Load() || d.connected.Load() && !d.broken.Load()
}
