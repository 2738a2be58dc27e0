package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

// ShutdownGrace is how long the requests of a hub may take to finish, once its streams have been drained.
const ShutdownGrace = 3 * time.Second

// HSTSAge is what browsers are told to remember of a server that speaks TLS (Strict-Transport-Security).
const HSTSAge = 180 * 24 * time.Hour

// BrokerTimeout bounds one request of the session broker to its authorization server.
const BrokerTimeout = 10 * time.Second

// Servers are the listeners of a process. The zero value has none. It is not safe for concurrent use.
type Servers struct {
	list   []*httpserver.Server
	failed chan error // holds the first failure; nobody blocks on it
}

// Start binds a listener and serves on it.
func (s *Servers) Start(ctx context.Context, o httpserver.ServerOptions) (*httpserver.Server, error) {
	if s.failed == nil {
		s.failed = make(chan error, 1)
	}
	srv, err := httpserver.NewServer(o)
	if err != nil {
		return nil, err
	}
	if err := srv.Start(ctx); err != nil {
		return nil, err
	}
	s.list = append(s.list, srv)
	go func() { // ends with Shutdown, which waits for the server
		if err := srv.Wait(); err != nil {
			select {
			case s.failed <- fmt.Errorf("serve %s: %w", o.Addr, err):
			default:
			}
		}
	}()
	return srv, nil
}

// Failed gives the first listener's failure.
func (s *Servers) Failed() <-chan error { return s.failed }

// Retire closes the listeners at once, so that a successor can bind their addresses and readers that come back go elsewhere, and not to
// a refusal. What it returns waits for the requests that are under way, streams included, until grace has passed since Retire; it ends those that are left.
func (s *Servers) Retire(ctx context.Context, grace time.Duration) (wait func() error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	var wg sync.WaitGroup
	errs := make([]error, len(s.list))
	for _, srv := range s.list {
		srv.Retire()
	}
	for i, srv := range s.list {
		wg.Go(func() {
			if err := srv.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				errs[i] = err
			}
		})
	}
	s.list = nil
	return func() error {
		defer cancel()
		wg.Wait()
		return errors.Join(errs...)
	}
}

// Shutdown is Retire and its wait in one.
func (s *Servers) Shutdown(ctx context.Context, grace time.Duration) error {
	return s.Retire(ctx, grace)()
}

// StartOps starts the listener for operators, if the configuration wants one. Its error is as that of Start.
func (s *Servers) StartOps(ctx context.Context, c config.Ops, reg *prometheus.Registry, logger *slog.Logger, ready ...obs.ReadyCheck) error {
	if c.Listen == "" {
		return nil
	}
	h, err := obs.NewOpsHandler(obs.OpsOptions{Logger: logger, Gatherer: reg, Ready: ready, Pprof: c.Pprof})
	if err != nil {
		return err
	}
	_, err = s.Start(ctx, httpserver.ServerOptions{Addr: c.Listen, Handler: h, Logger: logger})
	return err
}

// Busy adds to the error about a taken address what to change.
func Busy(err error, setting string) error {
	if _, ok := errors.AsType[*httpserver.BusyError](err); ok {
		return fmt.Errorf("%w: choose another with %s", err, setting)
	}
	return err
}

// TLSConfig gives the certificate that a configuration names, or nil for plain HTTP. A renewed certificate is picked up.
func TLSConfig(c config.TLS, logger *slog.Logger) (*tls.Config, error) {
	if c.Mode == "off" {
		return nil, nil //nolint:nilnil // no TLS is a mode, not a failure
	}
	files, err := httpserver.OpenCertificateFiles(string(c.CertFile), string(c.KeyFile), logger)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &tls.Config{GetCertificate: files.GetCertificate, MinVersion: tls.VersionTLS12}, nil
}
