package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Defaults of ServerOptions.
const (
	DefaultReadHeaderTimeout = 10 * time.Second
	DefaultIdleTimeout       = 2 * time.Minute
	// DefaultMaxHeaderBytes leaves room for a URL of 16 KiB beside the cookies of an application.
	DefaultMaxHeaderBytes = 64 << 10
	// MinMaxHeaderBytes is the smallest limit with which the hub's own limits answer first.
	MinMaxHeaderBytes = 32 << 10
	// DefaultMaxStreams is how many streams one HTTP/2 connection may have open: tabs share a connection, and a proxy
	// shares one among clients.
	DefaultMaxStreams = 1000
	// DefaultPingAfter and DefaultPingTimeout find dead HTTP/2 peers: a ping after silence, and how long its answer may take.
	DefaultPingAfter   = 15 * time.Second
	DefaultPingTimeout = 15 * time.Second
	// DefaultWriteStall is how long an HTTP/2 connection may take no byte before it is closed.
	DefaultWriteStall = 30 * time.Second
)

// Errors of NewServer and Start. ErrNoHandler: no handler was given. ErrHeaderLimit: MaxHeaderBytes is below
// MinMaxHeaderBytes. ErrNoCertificate: TLS is wanted without a source of certificates. ErrStarted: Start was called before.
var (
	ErrNoHandler     = errors.New("httpserver: no handler")
	ErrHeaderLimit   = errors.New("httpserver: header limit below 32 KiB")
	ErrStarted       = errors.New("httpserver: already started")
	ErrNoCertificate = errors.New("httpserver: TLS without a certificate")
)

// BusyError says that another process listens on the address. Callers add the name of the flag or key to change.
type BusyError struct {
	// Addr is the address as configured.
	Addr string
	err  error
}

// Error implements error.
func (e *BusyError) Error() string { return "address " + e.Addr + " is in use" }

// Unwrap returns the error of the operating system.
func (e *BusyError) Unwrap() error { return e.err }

// ServerOptions configures one listener. 0 means the default of each value.
type ServerOptions struct {
	// Addr is the address to listen on, as in net.Listen: "127.0.0.1:8080", ":8443", "localhost:0".
	Addr string
	// Handler serves the requests, usually the instance of NewEcho. It is required.
	Handler http.Handler
	// TLS makes it a TLS listener with HTTP/2; nil means plain HTTP/1. It is cloned, and must hold a certificate source.
	TLS *tls.Config
	// Logger receives what net/http reports about connections, at the debug level. It is required.
	Logger *slog.Logger

	ReadHeaderTimeout time.Duration // time for the header section
	IdleTimeout       time.Duration // time a kept-alive connection may wait for its next request
	MaxHeaderBytes    int           // size of the header section, at least MinMaxHeaderBytes
	MaxStreams        int           // open streams per HTTP/2 connection
	PingAfter         time.Duration // HTTP/2: silence before a ping
	PingTimeout       time.Duration // HTTP/2: time for its answer
	WriteStall        time.Duration // HTTP/2: time without a byte taken by the peer
}

func (o *ServerOptions) setDefaults() {
	setDefault(&o.ReadHeaderTimeout, DefaultReadHeaderTimeout)
	setDefault(&o.IdleTimeout, DefaultIdleTimeout)
	setDefault(&o.MaxHeaderBytes, DefaultMaxHeaderBytes)
	setDefault(&o.MaxStreams, DefaultMaxStreams)
	setDefault(&o.PingAfter, DefaultPingAfter)
	setDefault(&o.PingTimeout, DefaultPingTimeout)
	setDefault(&o.WriteStall, DefaultWriteStall)
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Server is one listener and the HTTP server on it. There is no write time-out: event streams are answers that last for
// hours, and each has its own way to find a dead reader. Its methods are safe for concurrent use.
type Server struct {
	options ServerOptions
	server  *http.Server
	abort   context.CancelFunc // ends the contexts of requests that outlive Shutdown

	mu       sync.Mutex
	listener net.Listener
	retired  bool          // the listener was closed on purpose
	done     chan struct{} // closed when the listener serves no more; err is final then
	err      error
}

// NewServer prepares a listener without binding it.
func NewServer(o ServerOptions) (*Server, error) {
	o.setDefaults()
	switch {
	case o.Handler == nil:
		return nil, ErrNoHandler
	case o.Logger == nil:
		return nil, ErrNoLogger
	case o.MaxHeaderBytes < MinMaxHeaderBytes:
		return nil, ErrHeaderLimit
	case o.TLS != nil && len(o.TLS.Certificates) == 0 && o.TLS.GetCertificate == nil && o.TLS.GetConfigForClient == nil:
		return nil, ErrNoCertificate
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s := &Server{options: o, done: make(chan struct{})}
	s.server = &http.Server{
		Handler:           o.Handler,
		ReadHeaderTimeout: o.ReadHeaderTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    o.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		Protocols:         protocols,
	}
	if o.TLS != nil {
		protocols.SetHTTP2(true)
		config := o.TLS.Clone()
		if config.MinVersion == 0 {
			config.MinVersion = tls.VersionTLS12
		}
		s.server.TLSConfig = config
		s.server.HTTP2 = &http.HTTP2Config{
			MaxConcurrentStreams: o.MaxStreams,
			SendPingTimeout:      o.PingAfter,
			PingTimeout:          o.PingTimeout,
			WriteByteTimeout:     o.WriteStall,
		}
	}
	return s, nil
}

// Start binds the address and serves in a goroutine of its own; Shutdown ends it and Wait waits for it. ctx bounds the
// binding, and its values reach the requests, not its end. A taken address is a *BusyError.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return ErrStarted
	}
	lc := listenConfig()
	l, err := lc.Listen(ctx, "tcp", s.options.Addr)
	if errors.Is(err, syscall.EADDRINUSE) || isWindowsAddrInUse(err) {
		return &BusyError{Addr: s.options.Addr, err: err}
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.options.Addr, err)
	}
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	s.listener, s.abort = l, abort
	s.server.BaseContext = func(net.Listener) context.Context { return base }
	go s.serve(l)
	return nil
}

// isWindowsAddrInUse knows WSAEADDRINUSE, which Windows reports instead of its own EADDRINUSE.
func isWindowsAddrInUse(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno == 10048
}

func (s *Server) serve(l net.Listener) {
	var err error
	if s.options.TLS != nil {
		err = s.server.ServeTLS(l, "", "")
	} else {
		err = s.server.Serve(l)
	}
	s.mu.Lock()
	if !s.retired {
		s.err = err
	}
	s.mu.Unlock()
	close(s.done)
}

// Addr returns the bound address, with the port the system chose for port 0. It is nil before Start.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Wait blocks until the listener serves no more, and returns why: nil after Retire or Shutdown, its failure otherwise. It must be
// called after Start.
func (s *Server) Wait() error {
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Retire stops accepting: when it has returned, others can bind the address. Connections go on until Shutdown.
func (s *Server) Retire() {
	s.mu.Lock()
	started := s.listener != nil
	if started && !s.retired {
		s.retired = true
		_ = s.listener.Close() // nothing is accepted any more, whatever it says
	}
	s.mu.Unlock()
	if started {
		<-s.done
	}
}

// Shutdown stops accepting, lets running requests finish until ctx ends, then closes what is left and cancels its requests.
// Hijacked connections are the business of who took them. It returns nil when everything finished by itself.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	started, abort := s.listener != nil, s.abort
	s.mu.Unlock()
	if !started {
		return nil
	}
	defer abort()
	s.Retire()
	err := s.server.Shutdown(ctx)
	if err != nil {
		abort()
		err = errors.Join(fmt.Errorf("finish requests: %w", err), s.server.Close())
	}
	return err
}
