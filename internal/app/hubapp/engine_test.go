package hubapp_test

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/app/hubapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
)

func TestOpenEngine_durableHistoryHasTwoProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	c := config.DefaultHub()
	c.PublicURL = "https://hub.example.com/.well-known/mercure"
	for _, tc := range []struct {
		driver string
		want   int
	}{{"memory", 1}, {"segments", 2}} {
		c.History.Driver, c.History.Path = tc.driver, config.File(filepath.Join(t.TempDir(), "history"))
		e, err := hubapp.OpenEngine(t.Context(), hubapp.EngineOptions{Config: c, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if got := runtime.GOMAXPROCS(0); got != tc.want {
			t.Errorf("%s: %d processors, want %d", tc.driver, got, tc.want)
		}
	}
}
