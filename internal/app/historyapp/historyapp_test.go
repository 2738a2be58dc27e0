package historyapp_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func TestOpen(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "history")
	for driver, wantErr := range map[string]bool{"segments": false, "memory": false, "bolt": true} {
		log, err := historyapp.Open(t.Context(), config.History{Driver: driver, Path: config.File(folder)}, time.Second, nil)
		if (err != nil) != wantErr {
			t.Errorf("Open(%s) = %v", driver, err)
		}
		if err != nil {
			continue
		}
		if p, err := log.Append(t.Context(), &history.Record{ID: "a", Topics: []string{"t"}}); err != nil || p != 1 {
			t.Errorf("Append() = %d, %v with %s", p, err, driver)
		}
		if _, ok := log.(history.Inspector); !ok {
			t.Errorf("%s has no statistics", driver)
		}
		if err := log.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	}
	if s, err := historyapp.Check(t.Context(), folder); err != nil || s.Events != 1 {
		t.Errorf("Check() = %+v, %v", s, err)
	}
}

// The configuration's 0 is no limit, for every driver.
func TestOpen_noLimit(t *testing.T) {
	log, err := historyapp.Open(t.Context(), config.History{Driver: "memory"}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	for range 100_001 { // one more than the driver keeps by itself
		if _, err := log.Append(t.Context(), &history.Record{ID: "a", Topics: []string{"t"}}); err != nil {
			t.Fatal(err)
		}
	}
	if h, err := log.Head(t.Context()); err != nil || h.First != 1 {
		t.Errorf("Head() = %+v, %v, want nothing trimmed", h, err)
	}
}

func TestOpenOffline(t *testing.T) {
	if _, err := historyapp.OpenOffline(t.Context(), config.History{Driver: "memory"}); !errors.Is(err, historyapp.ErrVolatile) {
		t.Errorf("OpenOffline() = %v, want ErrVolatile", err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := historyapp.OpenOffline(t.Context(), config.History{Driver: "segments", Path: config.File(missing)}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenOffline() = %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat() = %v, want no folder", err)
	}
}
