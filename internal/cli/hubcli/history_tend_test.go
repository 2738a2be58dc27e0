package hubcli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
)

// boltConfig makes the place one with the bolt driver.
func (p *place) boltConfig() {
	p.write("hub.yaml", "public_url: https://hub.example.com/.well-known/mercure\ntls: { mode: off }\nhistory: { driver: bolt, path: history, max_events: 100 }\n"+
		"issuers: [ { id: https://app.example.com, keys: [ { alg: HS256, secret_file: s } ] } ]\n")
}

// openBolt opens the history with the bolt driver, with so many updates in it.
func (p *place) openBolt(count int) *bolt.Log {
	p.t.Helper()
	log, err := bolt.Open(p.t.Context(), bolt.Options{Dir: filepath.Join(p.dir, "history")})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = log.Close() })
	p.append(log, count)
	return log
}

func (p *place) config() string { return filepath.Join(p.dir, "hub.yaml") }

// numbers reads JSON that a command has printed.
func numbers[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestHistoryStats_bolt(t *testing.T) {
	p := newPlace(t)
	p.boltConfig()
	p.close(p.openBolt(3))
	out, errs, code := p.run("history", "stats", "--config", p.config())
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	want(t, "text", out, `
history     bolt in DIR/history, no hub running
updates     3
size        411 bytes in 1 file
oldest      TIME
newest      TIME
last id     urn:uuid:3
positions   1 to 3
epoch       EPOCH
`)
}

func TestHistoryVerify(t *testing.T) {
	type view struct {
		Path     string `json:"path"`
		Running  bool   `json:"running"`
		Events   int64  `json:"events"`
		Bytes    int64  `json:"bytes"`
		Segments int    `json:"segments"`
		Indexes  int    `json:"indexes"`
	}
	p := newPlace(t)
	p.boltConfig()
	log := p.openBolt(3)
	verify := func(t *testing.T, running bool) {
		t.Helper()
		out, errs, code := p.run("history", "verify", "--config", p.config())
		if code != 0 || errs != "" {
			t.Errorf("exit code %d, %q", code, errs)
		}
		want(t, "text", out, "Verified 3 events, 411 bytes in 1 file, and 2 indexes: nothing is wrong\n")
		out, errs, code = p.run("history", "verify", "--json", "--config", p.config())
		if code != 0 || errs != "" {
			t.Errorf("exit code %d, %q", code, errs)
		}
		if got := numbers[view](t, out); got != (view{"DIR/history", running, 3, 411, 1, 2}) {
			t.Errorf("the JSON is %s", out)
		}
	}
	t.Run("a hub runs", func(t *testing.T) {
		p.t = t
		p.serve(log)
		verify(t, true)
	})
	t.Run("no hub runs", func(t *testing.T) {
		p.t = t
		p.close(log)
		verify(t, false)
	})
	t.Run("it is damaged", func(t *testing.T) {
		p.t = t
		path := filepath.Join(p.dir, "history", "history.db")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// The middle one, in whatever pages it was written to.
		raw = []byte(strings.ReplaceAll(string(raw), "urn:uuid:2", "urn:uuid:9"))
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := p.run("history", "verify", "--config", p.config())
		if code != cli.ExitFailure || out != "" {
			t.Errorf("exit code %d, %q", code, out)
		}
		want(t, "error", errs, `
hub: verify bolt: history: store is damaged: history.db: record 2: wrong checksum
  hint: look at the disk, and restore a copy that hub backup has made
`)
		_, errs, code = p.run("backup", "--config", p.config(), filepath.Join(p.dir, "copy"))
		if code != cli.ExitFailure || !strings.Contains(errs, "record 2: wrong checksum") {
			t.Errorf("backup: exit code %d, %q", code, errs)
		}
	})
}

// What is wrong with a history that a hub has open is said by the hub.
func TestHistoryVerify_damagedHub(t *testing.T) {
	p := newPlace(t)
	log := p.open(3)
	defer p.close(log)
	p.serve(broken{log})
	_, errs, code := p.run("history", "verify", "--config", p.config())
	if code != cli.ExitFailure {
		t.Errorf("exit code %d", code)
	}
	want(t, "error", errs, "hub: ask the hub to verify its history: control: the hub did not do it: history: store is damaged\n")
	_, errs, code = p.run("history", "compact", "--config", p.config())
	if code != cli.ExitFailure {
		t.Errorf("exit code %d", code)
	}
	want(t, "error", errs, "hub: ask the hub to compact its history: control: the hub did not do it: history: no space left\n")
}

// broken is a log in which everything goes wrong.
type broken struct{ history.Log }

func (broken) Verify(context.Context) (history.Verification, error) {
	return history.Verification{}, history.ErrCorrupt
}

func (broken) Compact(context.Context) (history.Compaction, error) {
	return history.Compaction{}, history.ErrNoSpace
}

func TestHistoryCompact(t *testing.T) {
	type view struct {
		Path    string `json:"path"`
		Running bool   `json:"running"`
		Before  int64  `json:"before"`
		After   int64  `json:"after"`
	}
	p := newPlace(t)
	p.boltConfig()
	log := p.openBolt(120)
	compact := func(t *testing.T, running bool) view {
		t.Helper()
		out, errs, code := p.run("history", "compact", "--json", "--config", p.config())
		if code != 0 || errs != "" {
			t.Errorf("exit code %d, %q", code, errs)
		}
		v := numbers[view](t, out)
		if v.Path != "DIR/history" || v.Running != running || v.After == 0 || v.After > v.Before {
			t.Errorf("the JSON is %s", out)
		}
		return v
	}
	t.Run("a hub runs", func(t *testing.T) {
		p.t = t
		p.serve(log)
		compact(t, true)
	})
	t.Run("no hub runs", func(t *testing.T) {
		p.t = t
		p.close(log)
		compact(t, false)
		out, errs, code := p.run("history", "compact", "--config", p.config())
		if code != 0 || errs != "" || !strings.HasPrefix(out, "Compacted the history: ") || !strings.Contains(out, ", before ") {
			t.Errorf("exit code %d, %q, %q", code, out, errs)
		}
		// The limit of the configuration was applied.
		out, _, _ = p.run("history", "stats", "--json", "--config", p.config())
		if s := numbers[history.Stats](t, strings.ReplaceAll(out, `"TIME"`, `"2026-01-01T00:00:00Z"`)); s.Events != 100 {
			t.Errorf("%d updates are left, want 100", s.Events)
		}
	})
	t.Run("a process has it open and does not answer", func(t *testing.T) {
		p.t = t
		defer p.close(p.openBolt(0))
		for _, verb := range []string{"verify", "compact"} {
			_, errs, code := p.run("history", verb, "--config", p.config())
			if code != cli.ExitFailure {
				t.Errorf("exit code %d", code)
			}
			want(t, "error", errs, `
hub: open bolt: waited 2s: lock DIR/history/LOCK: history: store is in use
  hint: a process has the history open, and none listens on DIR/hub.sock: a hub that is starting or ending, or one with another control_socket
`)
		}
	})
}

// A copy of a bolt history is checked as a whole, and can be restored.
func TestBackup_bolt(t *testing.T) {
	p := newPlace(t)
	p.boltConfig()
	log := p.openBolt(3)
	p.serve(log)
	out, errs, code := p.run("backup", "--config", p.config(), filepath.Join(p.dir, "copy"))
	if code != 0 || errs != "" || !strings.HasPrefix(out, "Copied 3 updates, ") || !strings.HasSuffix(out, " in 2 files, to DIR/copy\n") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	p.close(log)
	if err := os.RemoveAll(filepath.Join(p.dir, "history")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(p.dir, "copy"), filepath.Join(p.dir, "history")); err != nil {
		t.Fatal(err)
	}
	restored := p.openBolt(2)
	if h, err := restored.Head(t.Context()); err != nil || h.Last != 5 {
		t.Errorf("Head() = %+v, %v of the restored history", h, err)
	}
	p.close(restored)
}
