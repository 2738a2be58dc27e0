package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// CAFile is where a data folder keeps the certificate of the development certificate authority.
func CAFile(data string) string { return filepath.Join(data, "tls", "ca.crt") }

// Roots reads a file of certificate authorities.
func Roots(tb testing.TB, caFile string) *x509.CertPool {
	tb.Helper()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(caFile)
	if err != nil {
		tb.Fatal(err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		tb.Fatal("the file holds no certificate")
	}
	return pool
}

// Client is an HTTP client that trusts the certificate authorities of a file alone (of the system when it is empty), keeps
// cookies, follows no redirect, and tells the checker of the secrets it sees.
func Client(tb testing.TB, caFile string) *http.Client {
	tb.Helper()
	base := &http.Transport{ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: Patience}
	if caFile != "" {
		base.TLSClientConfig = &tls.Config{RootCAs: Roots(tb, caFile), MinVersion: tls.VersionTLS12}
	}
	tb.Cleanup(base.CloseIdleConnections)
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &http.Client{
		Jar: jar, Transport: &secretwatch.Transport{TB: tb, Base: base},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Bearer is the header that presents a token.
func Bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// Do sends a request, with a form as its body when there is one, and gives the response with its body.
func Do(tb testing.TB, c *http.Client, method, target string, form url.Values, header http.Header) (*http.Response, string) {
	tb.Helper()
	resp, body, err := Try(tb.Context(), c, method, target, form, header)
	if err != nil {
		tb.Fatal(err)
	}
	return resp, body
}

// Try is Do for other goroutines than the test's, and for requests that may fail. It waits for the whole answer no longer than
// Patience.
func Try(ctx context.Context, c *http.Client, method, target string, form url.Values, header http.Header) (*http.Response, string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, "", err
	}
	maps.Copy(req.Header, header)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, "", err
	}
	return resp, string(text), nil
}

// Stream is an open subscription.
type Stream struct {
	Resp   *http.Response
	Events chan Event // closed when the stream has ended
	cancel context.CancelFunc

	mu    sync.Mutex
	ended time.Time
}

// Subscribe opens a stream and reads it in the background until the test ends.
func Subscribe(tb testing.TB, c *http.Client, target string, header http.Header) *Stream {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(cancel)
	late := time.AfterFunc(Patience, cancel) // until the stream is open
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	maps.Copy(req.Header, header)
	resp, err := c.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Stream{Resp: resp, Events: make(chan Event, 1000), cancel: cancel}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		tb.Fatalf("subscribe = %d %s", resp.StatusCode, body)
	}
	if !late.Stop() {
		tb.Fatal("the stream did not open in time")
	}
	go func() {
		defer close(s.Events)
		defer func() { _ = resp.Body.Close() }()
		_ = ReadEvents(resp.Body, func(e Event) bool {
			select {
			case s.Events <- e:
				return true
			case <-ctx.Done():
				return false
			}
		})
		s.mu.Lock()
		s.ended = time.Now()
		s.mu.Unlock()
	}()
	return s
}

// Next waits for an event and gives its data.
func (s *Stream) Next(tb testing.TB) string {
	tb.Helper()
	return s.NextEvent(tb).Data
}

// NextEvent waits for an event.
func (s *Stream) NextEvent(tb testing.TB) Event {
	tb.Helper()
	select {
	case e, ok := <-s.Events:
		if !ok {
			tb.Fatal("the stream has ended")
		}
		return e
	case <-time.After(Patience):
		tb.Fatal("no event came")
	}
	return Event{}
}

// End waits until the server has ended the stream, and says when it had; events that come before are dropped.
func (s *Stream) End(tb testing.TB) time.Time {
	tb.Helper()
	late := time.After(Patience)
	for {
		select {
		case _, ok := <-s.Events:
			if !ok {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.ended
			}
		case <-late:
			tb.Fatal("the stream did not end")
		}
	}
}

// Close ends the stream from our side.
func (s *Stream) Close() { s.cancel() }
