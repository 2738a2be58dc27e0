package obs_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

func ops(t *testing.T, o obs.OpsOptions) http.Handler {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Gatherer == nil {
		o.Gatherer = obs.NewRegistry()
	}
	h, err := obs.NewOpsHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOps(t *testing.T) {
	failing := obs.ReadyCheck{Name: "history", Check: func(context.Context) error { return errors.New("disk on fire") }}
	fine := obs.ReadyCheck{Name: "keys", Check: func(context.Context) error { return nil }}
	for _, tc := range []struct {
		name, method, target, host string
		options                    obs.OpsOptions
		status                     int
		contains                   string
	}{
		{name: "live", target: "/livez", options: obs.OpsOptions{Ready: []obs.ReadyCheck{failing}}, status: 200, contains: `"ok"`},
		{name: "ready", target: "/readyz", options: obs.OpsOptions{Ready: []obs.ReadyCheck{fine}}, status: 200, contains: `"keys":"ok"`},
		{name: "ready without checks", target: "/readyz", status: 200, contains: `{"status":"ok"}`},
		{name: "not ready", target: "/readyz", options: obs.OpsOptions{Ready: []obs.ReadyCheck{fine, failing}}, status: 503, contains: `"history":"failed"`},
		{name: "metrics", target: "/metrics", status: 200, contains: "go_goroutines"},
		{name: "metrics are for reading", method: "POST", target: "/metrics", status: 405},
		{name: "profiler is off by default", target: "/debug/pprof/", host: "localhost:9090", status: 404},
		{name: "profiler", target: "/debug/pprof/", host: "localhost:9090", options: obs.OpsOptions{Pprof: true}, status: 200, contains: "goroutine"},
		{name: "profiler by address", target: "/debug/pprof/cmdline", host: "[::1]:9090", options: obs.OpsOptions{Pprof: true}, status: 200},
		{name: "profiler under a re-bound name", target: "/debug/pprof/heap", host: "evil.example:9090", options: obs.OpsOptions{Pprof: true}, status: 421},
		{name: "nothing else", target: "/", status: 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			r := httptest.NewRequest(tc.method, tc.target, nil)
			if tc.host != "" {
				r.Host = tc.host
			}
			w := httptest.NewRecorder()
			ops(t, tc.options).ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Fatalf("status = %d, want %d: %s", w.Code, tc.status, w.Body)
			}
			if !strings.Contains(w.Body.String(), tc.contains) {
				t.Errorf("body = %q, want it to contain %q", w.Body, tc.contains)
			}
			if strings.Contains(w.Body.String(), "disk on fire") {
				t.Errorf("body = %q, want no reason in it", w.Body)
			}
		})
	}
}

func TestOps_needsLoggerAndGatherer(t *testing.T) {
	if _, err := obs.NewOpsHandler(obs.OpsOptions{}); !errors.Is(err, obs.ErrOps) {
		t.Errorf("NewOpsHandler({}) = %v, want %v", err, obs.ErrOps)
	}
}
