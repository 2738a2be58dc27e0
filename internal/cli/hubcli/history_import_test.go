package hubcli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
)

// moved is a place whose history was kept by segments in "old", and is to be kept by bolt in "history".
func moved(t *testing.T, count int) *place {
	t.Helper()
	p := newPlace(t)
	p.close(p.open(count))
	if err := os.Rename(filepath.Join(p.dir, "history"), filepath.Join(p.dir, "old")); err != nil {
		t.Fatal(err)
	}
	p.boltConfig()
	return p
}

func (p *place) importOld(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	return p.run(append([]string{"history", "import", "--from", "segments", "--from-path", filepath.Join(p.dir, "old"), "--config", p.config()}, args...)...)
}

func TestHistoryImport(t *testing.T) {
	p := moved(t, 3)
	out, errs, code := p.importOld()
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	want(t, "text", out, "Imported 3 events from segments in DIR/old to bolt in DIR/history\n")
	log := p.openBolt(0)
	if at, err := log.Seek(t.Context(), "urn:uuid:2"); err != nil || at != 2 {
		t.Errorf("Seek() = %d, %v: cursors must go on", at, err)
	}
	p.close(log)

	// And back, by the data folder of hub dev.
	if err := os.Rename(filepath.Join(p.dir, "history"), filepath.Join(p.dir, "bolt")); err != nil {
		t.Fatal(err)
	}
	out, errs, code = p.run("history", "import", "--from", "bolt", "--from-path", filepath.Join(p.dir, "bolt"), "--data", p.data(), "--json")
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	want(t, "JSON", out, `
{
  "from_driver": "bolt",
  "from_path": "DIR/bolt",
  "driver": "segments",
  "path": "DIR/history",
  "events": 3,
  "kept": 3
}
`)
}

// The limits of the configuration hold, and it is said what they kept.
func TestHistoryImport_limits(t *testing.T) {
	p := moved(t, 120)
	out, errs, code := p.importOld()
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	want(t, "text", out, "Imported 120 events from segments in DIR/old to bolt in DIR/history; its limits keep 100 of them\n")
}

func TestHistoryImport_refusals(t *testing.T) {
	t.Run("the target has updates", func(t *testing.T) {
		p := moved(t, 3)
		p.close(p.openBolt(1))
		_, errs, code := p.importOld()
		if code != cli.ExitUsage || !strings.Contains(errs, "history: store is not empty\n  hint: the history in DIR/history has, or had, updates: ") {
			t.Errorf("exit code %d, %q", code, errs)
		}
	})
	t.Run("a hub runs with the target", func(t *testing.T) {
		p := moved(t, 3)
		log := p.openBolt(0)
		defer p.close(log)
		p.serve(log)
		_, errs, code := p.importOld()
		if code != cli.ExitFailure {
			t.Errorf("exit code %d", code)
		}
		want(t, "error", errs, "hub: a hub is running with the history in DIR/history\n  hint: stop it first\n")
	})
	t.Run("a process has the target open", func(t *testing.T) {
		p := moved(t, 3)
		defer p.close(p.openBolt(0))
		_, errs, code := p.importOld()
		if code != cli.ExitFailure || !strings.Contains(errs, "hint: a process has the history in DIR/history open: stop the hub first") {
			t.Errorf("exit code %d, %q", code, errs)
		}
	})
	t.Run("a process has the source open", func(t *testing.T) {
		p := newPlace(t)
		defer p.close(p.open(3))
		p.write("hub.yaml", "public_url: https://hub.example.com/.well-known/mercure\ntls: { mode: off }\nhistory: { driver: bolt, path: new }\n"+
			"issuers: [ { id: https://app.example.com, keys: [ { alg: HS256, secret_file: s } ] } ]\ncontrol_socket: other.sock\n")
		_, errs, code := p.run("history", "import", "--from", "segments", "--from-path", filepath.Join(p.dir, "history"), "--config", p.config())
		if code != cli.ExitFailure || !strings.Contains(errs, "hint: a process has the history in DIR/history open: stop the hub first") {
			t.Errorf("exit code %d, %q", code, errs)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "new")); err == nil {
			t.Error("the target was made")
		}
	})
	t.Run("the source is damaged", func(t *testing.T) {
		p := newPlace(t)
		p.close(p.openBolt(300))
		path := filepath.Join(p.dir, "history", "history.db")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), "urn:uuid:177", "urn:uuid:abc")), 0o600); err != nil {
			t.Fatal(err)
		}
		p.write("hub.yaml", "public_url: https://hub.example.com/.well-known/mercure\ntls: { mode: off }\nhistory: { path: new }\n"+
			"issuers: [ { id: https://app.example.com, keys: [ { alg: HS256, secret_file: s } ] } ]\n")
		_, errs, code := p.run("history", "import", "--from", "bolt", "--from-path", filepath.Join(p.dir, "history"), "--config", p.config())
		if code != cli.ExitFailure || !strings.Contains(errs, "history.db: record 177: wrong checksum") ||
			!strings.Contains(errs, "hint: look at the disk, and import a copy that hub backup has made") {
			t.Errorf("exit code %d, %q", code, errs)
		}
	})
}
