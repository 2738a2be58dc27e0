package app_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

func TestServers_busyAddressNamesTheSettingOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var s app.Servers
	err = s.StartOps(t.Context(), config.Ops{Listen: l.Addr().String()}, obs.NewRegistry(), slog.New(slog.DiscardHandler))
	if _, ok := errors.AsType[*httpserver.BusyError](err); !ok {
		t.Fatalf("StartOps = %v, want a *BusyError", err)
	}
	if text := app.Busy(err, "ops.listen").Error(); strings.Count(text, "choose another") != 1 || !strings.HasSuffix(text, "ops.listen") {
		t.Errorf("the error says %q", text)
	}
	if err := s.Shutdown(t.Context(), 0); err != nil {
		t.Errorf("Shutdown without a listener = %v", err)
	}
}

// A request that does not end must not keep the process from ending.
func TestServers_shutdownEndsWhatIsLeft(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	var s app.Servers
	srv, err := s.Start(t.Context(), httpserver.ServerOptions{
		Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			close(ended)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+srv.Addr().String(), http.NoBody)
		if err != nil {
			return
		}
		if resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-begun
	if err := s.Shutdown(t.Context(), time.Millisecond); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	<-ended
}

// A successor may be told that it can go on as soon as Retire has returned.
func TestServers_retireGivesTheAddressesBack(t *testing.T) {
	for range 50 {
		var s app.Servers
		srv, err := s.Start(t.Context(), httpserver.ServerOptions{
			Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Handler: http.NotFoundHandler(),
		})
		if err != nil {
			t.Fatal(err)
		}
		wait := s.Retire(t.Context(), time.Minute)
		l, err := net.Listen("tcp", srv.Addr().String())
		if err != nil {
			t.Fatalf("listen where a server has retired: %v", err)
		}
		if err := errors.Join(wait(), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
