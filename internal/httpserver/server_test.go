package httpserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

func start(t *testing.T, o httpserver.ServerOptions) *httpserver.Server {
	t.Helper()
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := httpserver.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if err := s.Wait(); err != nil {
			t.Errorf("Wait = %v", err)
		}
	})
	return s
}

// certificate makes a self-signed certificate for the loopback address.
func certificate(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: "test"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func writeCertificate(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	cert, key := certificate(t, serial)
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for name, data := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// client returns a client that keeps no connection of another test.
func client() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

func TestServer_refusesBadOptions(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, tc := range []struct {
		name string
		o    httpserver.ServerOptions
		want error
	}{
		{"no handler", httpserver.ServerOptions{Logger: log}, httpserver.ErrNoHandler},
		{"no logger", httpserver.ServerOptions{Handler: http.NotFoundHandler()}, httpserver.ErrNoLogger},
		{"no certificate", httpserver.ServerOptions{Handler: http.NotFoundHandler(), Logger: log, TLS: &tls.Config{MinVersion: tls.VersionTLS13}}, httpserver.ErrNoCertificate},
		{"small headers", httpserver.ServerOptions{Handler: http.NotFoundHandler(), Logger: log, MaxHeaderBytes: 1 << 10}, httpserver.ErrHeaderLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := httpserver.NewServer(tc.o); !errors.Is(err, tc.want) {
				t.Errorf("NewServer = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestServer_plain(t *testing.T) {
	s := start(t, httpserver.ServerOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	})})
	if err := s.Start(t.Context()); !errors.Is(err, httpserver.ErrStarted) {
		t.Errorf("second Start = %v, want %v", err, httpserver.ErrStarted)
	}
	if _, body := get(t, client(), "http://"+s.Addr().String()); body != "HTTP/1.1" {
		t.Errorf("protocol = %q, want HTTP/1.1", body)
	}
}

func TestServer_aBusyPortIsAnErrorOfItsOwn(t *testing.T) {
	first := start(t, httpserver.ServerOptions{Handler: http.NotFoundHandler()})
	second, err := httpserver.NewServer(httpserver.ServerOptions{
		Addr: first.Addr().String(), Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Start(t.Context())
	var busy *httpserver.BusyError
	if !errors.As(err, &busy) || busy.Addr != first.Addr().String() || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Start on a taken port = %v, want a BusyError naming it", err)
	}
	if err := second.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown of a server that never started = %v", err)
	}
	if second.Addr() != nil {
		t.Errorf("Addr = %v, want nil", second.Addr())
	}
}

func TestServer_otherListenErrorsAreNotBusy(t *testing.T) {
	s, err := httpserver.NewServer(httpserver.ServerOptions{
		Addr: "192.0.2.1:1", Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Start(t.Context())
	var busy *httpserver.BusyError
	if err == nil || errors.As(err, &busy) {
		t.Errorf("Start on a foreign address = %v, want an error that is no BusyError", err)
	}
}

func tlsClient(certPEM []byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
}

func TestServer_TLS(t *testing.T) {
	certPEM, keyPEM := certificate(t, 1)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, httpserver.ServerOptions{
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto)
		}),
	})
	t.Run("SUB-11 speaks HTTP/2", func(t *testing.T) {
		client := tlsClient(certPEM)
		defer client.CloseIdleConnections()
		if _, body := get(t, client, "https://"+s.Addr().String()); body != "HTTP/2.0" {
			t.Errorf("protocol = %q, want HTTP/2.0", body)
		}
	})
	t.Run("speaks HTTP/1.1 to who asks for it", func(t *testing.T) {
		client := tlsClient(certPEM)
		defer client.CloseIdleConnections()
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		client.Transport.(*http.Transport).Protocols = protocols
		if _, body := get(t, client, "https://"+s.Addr().String()); body != "HTTP/1.1" {
			t.Errorf("protocol = %q, want HTTP/1.1", body)
		}
	})
}

func TestServer_largeHeaders(t *testing.T) {
	s := start(t, httpserver.ServerOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})})
	for size, want := range map[int]int{32 << 10: 204, 128 << 10: 431} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", "a="+strings.Repeat("x", size))
		resp, err := client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d header bytes = %d, want %d", size, resp.StatusCode, want)
		}
	}
}

func TestServer_ShutdownLetsRequestsFinish(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := start(t, httpserver.ServerOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "done")
	})})
	body := make(chan string, 1) // one answer, so the client never blocks
	go func() {
		_, b := get(t, client(), "http://"+s.Addr().String())
		body <- b
	}()
	<-entered
	stopped := make(chan error, 1) // one result
	go func() { stopped <- s.Shutdown(t.Context()) }()
	if err := s.Wait(); err != nil {
		t.Errorf("Wait = %v, want nil", err)
	}
	close(release)
	if got := <-body; got != "done" {
		t.Errorf("body = %q, want the running request to finish", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown = %v, want nil", err)
	}
}

func TestServer_RetireLetsRequestsGoOn(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := start(t, httpserver.ServerOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		_, _ = io.WriteString(w, "done")
	})})
	answer := make(chan string, 1)
	go func() {
		_, body := get(t, client(), "http://"+s.Addr().String())
		answer <- body
	}()
	<-begun
	s.Retire()
	s.Retire() // does nothing more
	if err := s.Wait(); err != nil {
		t.Errorf("Wait = %v", err)
	}
	l, err := net.Listen("tcp", s.Addr().String())
	if err != nil {
		t.Fatalf("the address is not free: %v", err)
	}
	defer func() { _ = l.Close() }()
	close(goOn)
	if body := <-answer; body != "done" {
		t.Errorf("the request under way got %q", body)
	}
}

func TestServer_ShutdownCutsWhatOutlivesIt(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	s, err := httpserver.NewServer(httpserver.ServerOptions{
		Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
			close(left)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	parent, cancel := context.WithCancel(t.Context())
	if err := s.Start(parent); err != nil {
		t.Fatal(err)
	}
	go func() {
		req, err := http.NewRequestWithContext(context.WithoutCancel(parent), http.MethodGet, "http://"+s.Addr().String(), nil)
		if err != nil {
			return
		}
		if resp, err := client().Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-entered
	cancel()
	select {
	case <-left:
		t.Fatal("the end of Start's context ended a request")
	case <-time.After(20 * time.Millisecond):
	}
	ctx, done := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer done()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown = %v, want %v", err, context.DeadlineExceeded)
	}
	<-left
}

func TestCertificateFiles(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := writeCertificate(t, dir, 1)
	if _, err := httpserver.OpenCertificateFiles(certFile, certFile, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a certificate taken for its key = nil error, want one")
	}
	if _, err := httpserver.OpenCertificateFiles(certFile+"x", keyFile, slog.New(slog.DiscardHandler)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file = %v, want %v", err, os.ErrNotExist)
	}
	f, err := httpserver.OpenCertificateFiles(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.GetCertificate(nil)
	if err != nil || c.Leaf.SerialNumber.Int64() != 1 {
		t.Fatalf("GetCertificate = %v, %v", c, err)
	}
}

// TestServer_deadPeers speaks HTTP/2 by hand and never answers a ping.
func TestServer_deadPeers(t *testing.T) {
	certPEM, keyPEM := certificate(t, 1)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, httpserver.ServerOptions{
		TLS:       &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Handler:   http.NotFoundHandler(),
		PingAfter: 30 * time.Millisecond, PingTimeout: 30 * time.Millisecond,
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	pinged := false
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() || !pinged {
				t.Errorf("connection = %v, pinged %v, want a ping and then the end", err, pinged)
			}
			return
		}
		if _, ok := frame.(*http2.PingFrame); ok {
			pinged = true
		}
	}
}
