package control_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/control"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
)

func openBolt(t *testing.T) history.Log {
	t.Helper()
	log, err := bolt.Open(t.Context(), bolt.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	for _, id := range []string{"a", "b"} {
		if _, err := log.Append(t.Context(), &history.Record{ID: id, Topics: []string{"t"}}); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func TestUpkeep(t *testing.T) {
	for name, log := range map[string]history.Log{"segments": openLog(t, 10), "bolt": openBolt(t)} {
		t.Run(name, func(t *testing.T) {
			path := socketPath(t)
			serve(t, path, log)
			c := dial(t, path)
			h, err := log.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if v, err := c.Verify(t.Context()); err != nil || v.Events != int64(h.Last) || v.Segments == 0 {
				t.Errorf("Verify() = %+v, %v", v, err)
			}
			if v, err := c.Compact(t.Context()); err != nil || v.Before == 0 || v.After == 0 {
				t.Errorf("Compact() = %+v, %v", v, err)
			}
		})
	}
}

// plain is a log that can do nothing but what every log can.
type plain struct{ history.Log }

// damaged is a log in which something is wrong.
type damaged struct {
	history.Log

	asked   chan struct{} // receives a value when it is verified
	release chan struct{} // what it waits for then; nil: for nothing
}

func (d damaged) Verify(ctx context.Context) (history.Verification, error) {
	if d.release != nil {
		d.asked <- struct{}{}
		select {
		case <-d.release:
		case <-ctx.Done():
			return history.Verification{}, ctx.Err()
		}
	}
	return history.Verification{}, errors.Join(history.ErrCorrupt, errors.New("record 17"))
}

func (d damaged) Compact(context.Context) (history.Compaction, error) {
	return history.Compaction{}, history.ErrNoSpace
}

func TestUpkeep_refusals(t *testing.T) {
	path := socketPath(t)
	serve(t, path, plain{openMemory(t)})
	c := dial(t, path)
	if _, err := c.Verify(t.Context()); !errors.Is(err, control.ErrUnsupported) {
		t.Errorf("Verify() = %v, want ErrUnsupported", err)
	}
	if _, err := c.Compact(t.Context()); !errors.Is(err, control.ErrUnsupported) {
		t.Errorf("Compact() = %v, want ErrUnsupported", err)
	}
	path = socketPath(t)
	serve(t, path, damaged{Log: openMemory(t)})
	c = dial(t, path)
	if _, err := c.Verify(t.Context()); !errors.Is(err, control.ErrFailed) || !strings.Contains(err.Error(), "history: store is damaged record 17") {
		t.Errorf("Verify() = %v, want ErrFailed with what is wrong", err)
	}
	if _, err := c.Compact(t.Context()); !errors.Is(err, control.ErrFailed) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Compact() = %v, want ErrFailed with what is wrong", err)
	}
}

// One at a time works on the history, and a hub that stops ends it.
func TestUpkeep_busy(t *testing.T) {
	path := socketPath(t)
	log := damaged{Log: openMemory(t), asked: make(chan struct{}), release: make(chan struct{})}
	stop := serve(t, path, log)
	c := dial(t, path)
	first := make(chan error, 1)
	go func() {
		_, err := c.Verify(t.Context())
		first <- err
	}()
	<-log.asked
	if _, err := c.Verify(t.Context()); !errors.Is(err, control.ErrBusy) {
		t.Errorf("Verify() = %v beside another one, want ErrBusy", err)
	}
	if _, err := c.Compact(t.Context()); !errors.Is(err, control.ErrBusy) {
		t.Errorf("Compact() = %v beside a verification, want ErrBusy", err)
	}
	stop()
	if err := <-first; !errors.Is(err, control.ErrFailed) {
		t.Errorf("Verify() = %v of a hub that stops, want ErrFailed", err)
	}
	// So does the client's own wish.
	path = socketPath(t)
	serve(t, path, log)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := dial(t, path).Verify(ctx)
		first <- err
	}()
	<-log.asked
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("Verify(cancelled) = %v", err)
	}
}

// Compacting is no request that something fetches by chance.
func TestUpkeep_method(t *testing.T) {
	path := socketPath(t)
	serve(t, path, openMemory(t))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	begun := make([]byte, len("HTTP/1.1 404"))
	_, err = io.WriteString(conn, "GET /v1/compact HTTP/1.1\r\nHost: hub\r\n\r\n")
	if _, failed := io.ReadFull(conn, begun); err != nil || failed != nil || string(begun) != "HTTP/1.1 404" {
		t.Errorf("the hub answers %q, %v, %v", begun, err, failed)
	}
}

func TestUpkeep_otherServers(t *testing.T) {
	for name, tc := range map[string]struct {
		body, status string
		want         error
	}{
		"no status":      {"{}", "", control.ErrFailed},
		"another status": {"{}", "almost", control.ErrFailed},
		"no JSON":        {"<html>", "complete", control.ErrProtocol},
		"nothing wrong":  {"\n\n{\"events\":3}\n", "complete", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := impostor(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cinnabar-Control", "hub/1")
				w.Header().Set("Trailer", "Cinnabar-Status")
				_, _ = io.WriteString(w, tc.body)
				if tc.status != "" {
					w.Header().Set("Cinnabar-Status", tc.status)
				}
			})
			if v, err := c.Verify(t.Context()); !errors.Is(err, tc.want) || err == nil && v.Events != 3 {
				t.Errorf("Verify() = %+v, %v, want %v", v, err, tc.want)
			}
		})
	}
}
