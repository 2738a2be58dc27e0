package segments

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// notes is where a log's messages go.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
	line chan struct{} // a value per write
}

func newNotes() (*notes, *slog.Logger) {
	n := &notes{line: make(chan struct{}, 100)}
	return n, slog.New(slog.NewTextHandler(n, nil))
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.line <- struct{}{}
	return n.text.Write(p)
}

func (n *notes) count(text string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Count(n.text.String(), text)
}

func openAt(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	return l
}

// opened is what a successor's Open returns.
type opened struct {
	log *Log
	err error
}

func openBeside(ctx context.Context, o Options) <-chan opened {
	done := make(chan opened, 1)
	go func() {
		l, err := Open(ctx, o)
		done <- opened{l, err}
	}()
	return done
}

func TestWait_handsOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	old := openAt(t, Options{Dir: dir})
	said, logger := newNotes()
	done := openBeside(t.Context(), Options{Dir: dir, Wait: time.Hour, Logger: logger})
	<-said.line // it waits
	for n := range 20 {
		if p, err := old.Append(t.Context(), powerRecord(history.Position(n+1))); err != nil || p != history.Position(n+1) {
			t.Fatalf("Append() = %d, %v while a successor waits", p, err)
		}
	}
	select {
	case o := <-done:
		t.Fatalf("Open() = %v while the predecessor has the store", o.err)
	default:
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	o := <-done
	if o.err != nil {
		t.Fatalf("Open() = %v", o.err)
	}
	defer func() { _ = o.log.Close() }()
	if p, err := o.log.Append(t.Context(), powerRecord(21)); err != nil || p != 21 {
		t.Errorf("Append() = %d, %v, want 21: all that the predecessor had acknowledged comes before", p, err)
	}
	if a, b := said.count("waiting for it to end"), said.count("handed over"); a != 1 || b != 1 {
		t.Errorf("the log says %d times that it waits, and %d times that it has waited", a, b)
	}
}

// Many that want the same store get it one after the other.
func TestWait_oneAtATime(t *testing.T) {
	const hubs = 8
	dir := filepath.Join(t.TempDir(), "history")
	var mu sync.Mutex
	open := 0
	var wg sync.WaitGroup
	for range hubs {
		wg.Go(func() {
			l, err := Open(t.Context(), Options{Dir: dir, Wait: time.Hour})
			if err != nil {
				t.Errorf("Open() = %v", err)
				return
			}
			mu.Lock()
			if open++; open > 1 {
				t.Errorf("%d have the store open", open)
			}
			mu.Unlock()
			for range 5 {
				if _, err := l.Append(t.Context(), powerRecord(1)); err != nil {
					t.Errorf("Append() = %v", err)
				}
			}
			mu.Lock()
			open--
			mu.Unlock()
			if err := l.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
	wg.Wait()
	l := openAt(t, Options{Dir: dir})
	defer func() { _ = l.Close() }()
	if h, err := l.Head(t.Context()); err != nil || h.Last != 5*hubs {
		t.Errorf("Head() = %+v, %v, want %d", h, err, 5*hubs)
	}
}

// Errors name the file with its folder: "LOCK: permission denied" would say of no hub's which.
func TestDir_errorsNameThePath(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "history")}
	d, err := openDir(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	_, openErr := d.Open("nothing.seg")
	for op, err := range map[string]error{"Open": openErr, "Remove": d.Remove("nothing.seg"), "Rename": d.Rename("nothing.seg", "x")} {
		if want := filepath.Join(o.Dir, "nothing.seg"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s() = %v, want it to name %s", op, err, want)
		}
	}
}
