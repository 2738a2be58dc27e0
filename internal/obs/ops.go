package obs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTimeout bounds all readiness checks of one request together.
const readyTimeout = 3 * time.Second

// maxScrapes bounds concurrent scrapes of /metrics.
const maxScrapes = 4

// ErrOps is returned by NewOpsHandler for incomplete options.
var ErrOps = errors.New("obs: the operations handler needs a logger and a gatherer")

// ReadyCheck tells whether one part of the process can do its work.
type ReadyCheck struct {
	// Name is what /readyz calls the part.
	Name string
	// Check returns nil when the part is ready. It must respect ctx and be safe for concurrent use.
	Check func(ctx context.Context) error
}

// OpsOptions configures NewOpsHandler.
type OpsOptions struct {
	// Logger receives failed checks and scrapes. It is required.
	Logger *slog.Logger
	// Gatherer has the metrics, usually the registry of NewRegistry. It is required.
	Gatherer prometheus.Gatherer
	// Ready are the checks behind /readyz; without any the process is ready as soon as it listens.
	Ready []ReadyCheck
	// Pprof serves Go's profiler under /debug/pprof/. Profiles can hold tokens: it is off by default, and answers only
	// requests made to an address or to localhost, so that no web page can get at it by re-binding a name.
	Pprof bool
}

// NewOpsHandler returns the handler of the operations listener: /livez (the process answers), /readyz (it can do its work),
// /metrics (Prometheus) and, if enabled, /debug/pprof/.
func NewOpsHandler(o OpsOptions) (http.Handler, error) {
	if o.Logger == nil || o.Gatherer == nil {
		return nil, ErrOps
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeStatus(w, http.StatusOK, status{Status: "ok"})
	})
	mux.Handle("GET /readyz", readyHandler(o.Logger, o.Ready))
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
	}))
	if o.Pprof {
		mux.Handle("/debug/pprof/", directOnly(http.HandlerFunc(pprof.Index)))
		mux.Handle("/debug/pprof/cmdline", directOnly(http.HandlerFunc(pprof.Cmdline)))
		mux.Handle("/debug/pprof/profile", directOnly(http.HandlerFunc(pprof.Profile)))
		mux.Handle("/debug/pprof/symbol", directOnly(http.HandlerFunc(pprof.Symbol)))
		mux.Handle("/debug/pprof/trace", directOnly(http.HandlerFunc(pprof.Trace)))
	}
	return mux, nil
}

// status is the document of /livez and /readyz.
type status struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks,omitempty"`
}

func writeStatus(w http.ResponseWriter, code int, s status) {
	body, err := json.Marshal(s)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the prober may have gone away; nobody else reads the error
}

// readyHandler runs all checks at once and answers 503 when one fails. Why it failed is in the log.
func readyHandler(log *slog.Logger, checks []ReadyCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		results := make([]error, len(checks))
		var wg sync.WaitGroup
		for i, c := range checks {
			wg.Go(func() { results[i] = c.Check(ctx) })
		}
		wg.Wait()
		code, s := http.StatusOK, status{Status: "ok"}
		if len(checks) > 0 {
			s.Checks = make(map[string]string, len(checks))
		}
		for i, c := range checks {
			s.Checks[c.Name] = "ok"
			if err := results[i]; err != nil {
				s.Checks[c.Name], s.Status, code = "failed", "unavailable", http.StatusServiceUnavailable
				log.WarnContext(ctx, "not ready", slog.String("check", c.Name), slog.String("error", err.Error()))
			}
		}
		writeStatus(w, code, s)
	})
}

// directOnly refuses requests whose Host is a name other than localhost.
func directOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil && !strings.EqualFold(host, "localhost") {
			http.Error(w, "Use the address of the listener.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
