package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Dialer opens connections to one origin. The zero value is not ready; make one with New.
type Dialer struct {
	address string // host:port to connect to
	host    string // the Host field
	tls     *tls.Config
	timeout time.Duration
}

// Options are how an origin is reached.
type Options struct {
	Address  string         // host:port to connect to instead of the URL's; empty: the URL's
	Roots    *x509.CertPool // whom to trust; nil: the system's
	Insecure bool           // trust any certificate
	Timeout  time.Duration  // for connecting, and for an answer until its body is whole or its stream begins
}

// New gives a Dialer for the origin of a URL.
func New(u *url.URL, o Options) (*Dialer, error) {
	d := &Dialer{host: u.Host, timeout: o.Timeout, address: o.Address}
	port := u.Port()
	switch u.Scheme {
	case "http":
		if port == "" {
			port = "80"
		}
	case "https":
		if port == "" {
			port = "443"
		}
		d.tls = &tls.Config{
			ServerName: u.Hostname(), RootCAs: o.Roots, InsecureSkipVerify: o.Insecure, MinVersion: tls.VersionTLS12,
			// Thousands of connections are opened: sessions are resumed, and the key exchange is a cheap one.
			ClientSessionCache: tls.NewLRUClientSessionCache(0), CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521},
		}
	default:
		return nil, fmt.Errorf("wire: %q is neither an http nor an https URL", u.Redacted())
	}
	if d.address == "" {
		d.address = net.JoinHostPort(u.Hostname(), port)
	}
	return d, nil
}

// Do sends a request over HTTP/1.1 and reads the answer. It fails when there is none within the timeout.
func (d *Dialer) Do(ctx context.Context, r Request) (*Response, error) {
	return d.Raw(ctx, r.Method, r.bytes(d.host))
}

// Raw sends these bytes, which are the request as a whole, and reads the answer. A peer that answers before it has
// read everything, as it may, is heard.
func (d *Dialer) Raw(ctx context.Context, method string, message []byte) (*Response, error) {
	conn, err := d.Dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(d.timeout))
	written := make(chan error, 1)
	go func() {
		_, err := conn.Write(message)
		written <- err
	}()
	resp, err := readResponse(conn, method)
	if err != nil {
		_ = conn.Close()
		if w := <-written; w != nil {
			err = errors.Join(err, fmt.Errorf("wire: send request: %w", w))
		}
		return nil, err
	}
	if resp.Stream == nil {
		<-written // the connection is closed: this ends
	}
	return resp, nil
}

// Dial opens a connection and leaves it to the caller.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	return d.dial(ctx, "http/1.1")
}

func (d *Dialer) dial(ctx context.Context, protocols ...string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	nd := &net.Dialer{}
	if d.tls == nil {
		conn, err := nd.DialContext(ctx, "tcp", d.address)
		if err != nil {
			return nil, fmt.Errorf("wire: %w", err)
		}
		return conn, nil
	}
	config := d.tls.Clone()
	config.NextProtos = protocols
	conn, err := (&tls.Dialer{NetDialer: nd, Config: config}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	return conn, nil
}

// Protocol says which protocol the peer chooses when offered HTTP/2 and HTTP/1.1 (ALPN, RFC 7301). Empty: none.
func (d *Dialer) Protocol(ctx context.Context) (string, error) {
	conn, err := d.dial(ctx, "h2", "http/1.1")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if c, ok := conn.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol, nil
	}
	return "", nil
}

// DoHTTP2 sends a request over an HTTP/2 connection of its own. Its target and fields must be well-formed.
func (d *Dialer) DoHTTP2(ctx context.Context, r Request) (*Response, error) {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetHTTP2(true)
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", d.address)
	}
	if d.tls != nil {
		tr.TLSClientConfig = d.tls.Clone()
	}
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(d.timeout, cancel)
	defer late.Stop()
	end := func() {
		cancel()
		tr.CloseIdleConnections()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, "https://"+d.host+r.Target, bytes.NewReader(r.Body))
	if err != nil {
		end()
		return nil, fmt.Errorf("wire: http/2: %w", err)
	}
	for _, f := range r.Fields {
		req.Header.Add(f.Name, f.Value)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		end()
		return nil, fmt.Errorf("wire: http/2: %w", err)
	}
	out := &Response{Status: resp.StatusCode, HTTP: resp.Proto}
	for name, values := range resp.Header {
		for _, v := range values {
			out.Fields = append(out.Fields, Field{Name: name, Value: v})
		}
	}
	if out.Status == http.StatusOK && out.MediaType() == "text/event-stream" {
		out.Stream = &stream{Reader: resp.Body, close: func() error {
			defer end()
			return resp.Body.Close()
		}}
		return out, nil
	}
	defer end()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	_ = resp.Body.Close()
	if err == nil && len(raw) > maxBody {
		err = fmt.Errorf("a body of more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, fmt.Errorf("wire: http/2: %w", err)
	}
	out.Body = string(raw)
	return out, nil
}
