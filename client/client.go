package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

const (
	defaultTimeout     = 30 * time.Second
	defaultIdleTimeout = 45 * time.Second
	dialTimeout        = 10 * time.Second
	// maxHeaderBytes bounds the header of a response, where the transport is ours.
	maxHeaderBytes = 64 << 10
)

// Options configures a [Client]. Only HubURL is required.
type Options struct {
	// HubURL is the URL of the hub, such as https://hub.example.com/.well-known/mercure.
	HubURL string
	// Token returns the access token of the next request. It is called before every request, reconnections included, and once more
	// when the hub has refused a token: if it then returns another one, that one is tried. It should therefore cache, and it must be
	// safe for concurrent use. An empty token, or no function, makes the request anonymous. An error is final, and ends a subscription,
	// unless it is one of the network ([net.Error]), or an [*Error] that is retryable: one with the status with which the server of the
	// tokens has answered, for example.
	Token func(ctx context.Context) (string, error)
	// AllowPlainHTTP lets tokens travel over plain HTTP to other machines, on a network that is encrypted by other means.
	AllowPlainHTTP bool

	// HTTPClient sends the requests. Its redirect policy is not used, and its Timeout not for streams. Nil gives a client
	// of its own, with HTTP/2, the proxy of the environment and bounds on everything it waits for or reads.
	HTTPClient *http.Client
	// TLS is used when HTTPClient is nil, for example to trust a certificate authority of one's own; nil is Go's default.
	TLS *tls.Config

	// Timeout bounds a publication, and the opening of a stream: from asking for a token until the answer, or its header, has come. 0
	// means 30 seconds, less means no limit but the context's.
	Timeout time.Duration
	// IdleTimeout bounds the silence on a stream: a connection on which no byte has come for so long counts as lost. Hubs send a
	// comment from time to time, Cinnabar every 15 seconds. 0 means 45 seconds, less means no limit.
	IdleTimeout time.Duration
	// MaxEventBytes bounds one received event; 0 or less means 16 MiB.
	MaxEventBytes int

	// Logger is told of lost and resumed streams; nil logs nothing.
	Logger *slog.Logger
}

// Client talks to one hub. [New] makes it.
type Client struct {
	hub     *url.URL
	options Options
	publish *http.Client
	stream  *http.Client
	logger  *slog.Logger
}

// New returns a client of the hub that the options name. The error says which option is wrong; nothing is sent yet.
func New(o Options) (*Client, error) {
	hub, err := url.Parse(o.HubURL)
	switch {
	case err != nil || hub.Hostname() == "" || hub.Scheme != "https" && hub.Scheme != "http":
		return nil, errors.New("client: HubURL must be a URL such as https://hub.example.com/.well-known/mercure")
	case hub.User != nil || hub.Fragment != "":
		return nil, errors.New("client: HubURL must have neither credentials nor a fragment")
	case hub.Scheme == "http" && o.Token != nil && !o.AllowPlainHTTP && !isLoopback(hub.Hostname()):
		return nil, errors.New("client: a token must not be sent over plain HTTP to another machine")
	case o.HTTPClient != nil && o.TLS != nil:
		return nil, errors.New("client: TLS is for the client's own HTTPClient, and one was given")
	}
	o.Timeout = orDefault(o.Timeout, defaultTimeout)
	o.IdleTimeout = orDefault(o.IdleTimeout, defaultIdleTimeout)
	if o.MaxEventBytes <= 0 {
		o.MaxEventBytes = sse.DefaultMaxEventBytes
	}
	c := &Client{hub: hub, options: o, logger: o.Logger}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	base := http.Client{}
	if o.HTTPClient != nil {
		base = *o.HTTPClient
	} else {
		base.Transport = newTransport(o.TLS)
	}
	base.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	stream := base
	stream.Timeout = 0
	c.publish, c.stream = &base, &stream
	return c, nil
}

// CloseIdleConnections closes the connections that are kept for later requests, like [http.Client.CloseIdleConnections]. Streams
// are not affected.
func (c *Client) CloseIdleConnections() { c.publish.CloseIdleConnections() }

// newTransport gives a transport that bounds whatever it waits for.
func newTransport(config *tls.Config) *http.Transport {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:        config.Clone(),
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        time.Minute,
	}
}

// token asks for the token of the next request.
func (c *Client) token(ctx context.Context) (string, error) {
	if c.options.Token == nil {
		return "", nil
	}
	token, err := c.options.Token(ctx)
	if err != nil {
		return "", &tokenError{err}
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", &tokenError{errors.New("it is not one word of ASCII characters")} // and is not shown
	}
	return token, nil
}

// send sends a request, with a fresh token when the first one was refused, and gives a response whose status is 200. The error is an
// *Error for op. Request makes the request anew each time.
func (c *Client) send(ctx context.Context, op string, via *http.Client, request func() (*http.Request, error)) (*http.Response, error) {
	token, err := c.token(ctx)
	if err != nil {
		return nil, unsent(ctx, op, err)
	}
	for again := true; ; again = false {
		req, err := request()
		if err != nil {
			return nil, unsent(ctx, op, err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if ctx.Err() != nil { // a transport that is asked would not tell whether it has sent anything
			return nil, unsent(ctx, op, ctx.Err())
		}
		resp, err := via.Do(req)
		if err != nil {
			return nil, failed(op, context.Cause(ctx), err)
		}
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		refusal := refused(op, resp)
		if resp.StatusCode != http.StatusUnauthorized || !again {
			return nil, refusal
		}
		fresh, err := c.token(ctx)
		if err != nil {
			return nil, unsent(ctx, op, err)
		}
		if fresh == token {
			return nil, refusal
		}
		token = fresh
	}
}

// unsent is the error of an attempt that did not get as far as sending anything.
func unsent(ctx context.Context, op string, err error) *Error {
	e := failed(op, context.Cause(ctx), err)
	e.unsent = true
	return e
}

// orDefault gives d, or the default for 0; less than 0 stands for no limit.
func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return d
}

// limited gives a context that ends, with a cause that says so, when d is over; 0 or less is no limit.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, noAnswer(d))
}

// noAnswer is the cause of a context that ended because the hub was too slow.
func noAnswer(d time.Duration) error {
	return fmt.Errorf("no answer within %v: %w", d, context.DeadlineExceeded)
}

// isLoopback says whether what is sent to a host stays on this machine. Of names below localhost browsers know that; to Go they are
// names like all others, which it looks up, and for which it uses a proxy.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
