package revocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// DefaultRemoteEvery is how often a log that is read over HTTP should be asked for new entries (Options.Every).
	DefaultRemoteEvery = 500 * time.Millisecond
	// remotePath is where an authorization server has its log, below its issuer identifier.
	remotePath = "/revocations"
	// remoteTimeout bounds one request, its answer included.
	remoteTimeout = 5 * time.Second
	// remoteMaxBytes bounds one answer.
	remoteMaxBytes = 2 << 20
	// remoteEntries is how many entries are asked for at a time, so that they fit into remoteMaxBytes.
	remoteEntries = 500
	// maxRetryAfter bounds what a server may say in Retry-After.
	maxRetryAfter = time.Hour
)

// Authenticator adds a client's authentication to the form of a request. *clientassertion.Asserter is one.
type Authenticator interface {
	Authenticate(form url.Values, now time.Time) error
}

// RemoteOptions configures a Remote.
type RemoteOptions struct {
	// Issuer is the issuer identifier of the authorization server: an https URL, or an http one on this machine.
	Issuer string
	// Client proves which client asks; required.
	Client Authenticator
	// HTTPClient replaces the transport, for servers in the same process and for proxies. Nil means a transport of our own.
	// Redirects are never followed.
	HTTPClient *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Remote is the log of an authorization server elsewhere, read with POST {issuer}/revocations. It gives entries of that
// issuer only, whatever it is told. It is safe for concurrent use.
type Remote struct {
	issuer   string
	endpoint string
	auth     Authenticator
	client   *http.Client
	now      func() time.Time
}

var _ Source = (*Remote)(nil)

// NewRemote returns a Remote that has not asked anything yet. The error says which option is wrong.
func NewRemote(o RemoteOptions) (*Remote, error) {
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(o.Issuer, "#"):
		return nil, fmt.Errorf("revocation: issuer %q is not a URL with a host and without user, query and fragment", o.Issuer)
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return nil, fmt.Errorf("revocation: issuer %q must use https", o.Issuer)
	case o.Client == nil:
		return nil, errors.New("revocation: RemoteOptions.Client is required")
	}
	r := &Remote{
		issuer:   o.Issuer,
		endpoint: strings.TrimSuffix(o.Issuer, "/") + remotePath,
		auth:     o.Client,
		client:   &http.Client{Transport: transport(u.Scheme == "http")},
		now:      o.Now,
	}
	if o.HTTPClient != nil {
		r.client.Transport = o.HTTPClient.Transport
	}
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if r.now == nil {
		r.now = time.Now
	}
	return r, nil
}

// isLoopback tells whether host is this machine by its name.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// transport keeps one connection, uses no proxy, and where local is set connects to this machine only, whatever its name
// resolves to: what is sent in clear must not leave it.
func transport(local bool) *http.Transport {
	dialer := &net.Dialer{Timeout: remoteTimeout}
	if local {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !at.Addr().Unmap().IsLoopback() {
				return fmt.Errorf("plain http to %s, which is not this machine", address)
			}
			return nil
		}
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    remoteTimeout,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    1,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Since implements Source.
func (r *Remote) Since(ctx context.Context, seq int64, limit int) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	form := url.Values{
		"since": {strconv.FormatInt(seq, 10)},
		"limit": {strconv.Itoa(min(limit, remoteEntries))},
	}
	if err := r.auth.Authenticate(form, r.now()); err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err // *url.Error: it names method, URL and cause
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, remoteMaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case response.StatusCode != http.StatusOK:
		return nil, r.refused(response, body)
	case !isJSON(response.Header.Get("Content-Type")):
		return nil, fmt.Errorf("%w: the answer of %s is not JSON", ErrSource, r.endpoint)
	case len(body) > remoteMaxBytes:
		return nil, fmt.Errorf("%w: the answer of %s exceeds %d bytes", ErrSource, r.endpoint, remoteMaxBytes)
	}
	return r.decode(body, min(limit, remoteEntries))
}

// refused makes an error of an answer that is none.
func (r *Remote) refused(response *http.Response, body []byte) error {
	err := fmt.Errorf("%s answered %d%s", r.endpoint, response.StatusCode, errorCode(body))
	seconds, convErr := strconv.Atoi(response.Header.Get("Retry-After"))
	if convErr != nil || seconds <= 0 {
		return err
	}
	after := maxRetryAfter
	if seconds < int(maxRetryAfter/time.Second) {
		after = time.Duration(seconds) * time.Second
	}
	return &LaterError{After: after, Err: err}
}

// errorCode is the error code of an OAuth error answer (RFC 6749 section 5.2) with a space before it, or "". The description
// is the other side's free text and stays out of our log.
func errorCode(body []byte) string {
	const longest = 64
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == "" || len(answer.Error) > longest {
		return ""
	}
	for _, c := range answer.Error {
		if (c < 'a' || c > 'z') && c != '_' {
			return ""
		}
	}
	return " " + answer.Error
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// remotePage is an answer.
type remotePage struct {
	Revocations []struct {
		Seq          int64   `json:"seq"`
		Kind         string  `json:"kind"`
		Value        string  `json:"value"`
		IssuedBefore float64 `json:"issued_before"`
		Until        float64 `json:"until"`
	} `json:"revocations"`
}

func (r *Remote) decode(body []byte, limit int) ([]Entry, error) {
	var page remotePage
	err := json.Unmarshal(body, &page)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the answer of %s: %w", ErrSource, r.endpoint, err)
	case page.Revocations == nil:
		return nil, fmt.Errorf("%w: the answer of %s has no revocations", ErrSource, r.endpoint)
	case len(page.Revocations) > limit:
		return nil, fmt.Errorf("%w: the answer of %s has %d entries, %d were asked for", ErrSource, r.endpoint, len(page.Revocations), limit)
	}
	entries := make([]Entry, 0, len(page.Revocations))
	for _, e := range page.Revocations {
		entries = append(entries, Entry{
			Seq: e.Seq, Issuer: r.issuer, Kind: e.Kind, Value: e.Value,
			// Whole seconds may have been cut off: keeping an entry a second longer does no harm.
			IssuedBefore: unix(e.IssuedBefore), Until: unix(e.Until).Add(time.Second),
		})
	}
	return entries, nil
}

// unix is a time in seconds since 1970, to the millisecond, within the years that can be written.
func unix(seconds float64) time.Time {
	const last = 253402300799 // the end of the year 9999
	return time.UnixMilli(int64(math.Round(min(max(seconds, 0), last) * 1000)))
}

// LaterError says that a source wants to be left alone for a while.
type LaterError struct {
	// After is how long.
	After time.Duration
	// Err is what it answered.
	Err error
}

// Error implements error.
func (e *LaterError) Error() string { return fmt.Sprintf("%s (again in %s)", e.Err, e.After) }

// Unwrap gives the answer.
func (e *LaterError) Unwrap() error { return e.Err }
