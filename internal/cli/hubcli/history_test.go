package hubcli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/hubcli"
	"github.com/cinnabar-hub/cinnabar/internal/control"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// place is a folder with a hub's configuration and history.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	p.write("hub.yaml", "public_url: https://hub.example.com/.well-known/mercure\ntls: { mode: off }\nhistory: { path: history }\n"+
		"issuers: [ { id: https://app.example.com, keys: [ { alg: HS256, secret_file: s } ] } ]\n")
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// open opens the history with so many updates in it.
func (p *place) open(count int) *segments.Log {
	p.t.Helper()
	log, err := segments.Open(p.t.Context(), segments.Options{Dir: filepath.Join(p.dir, "history")})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = log.Close() })
	p.append(log, count)
	return log
}

func (p *place) append(log history.Log, count int) {
	p.t.Helper()
	for n := range count {
		r := &history.Record{ID: fmt.Sprintf("urn:uuid:%d", n+1), Topics: []string{"https://example.com/books/1"}, Event: []byte("data: secret\n\n")}
		if _, err := log.Append(p.t.Context(), r); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *place) close(log history.Log) {
	p.t.Helper()
	if err := log.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// serve serves the history on the control socket, as a hub does.
func (p *place) serve(log history.Log) {
	p.t.Helper()
	s, err := control.Listen(p.t.Context(), filepath.Join(p.dir, "hub.sock"), control.Service{History: log})
	if err != nil {
		p.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.WithoutCancel(p.t.Context())) }()
	p.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			p.t.Error(err)
		}
		<-done
	})
}

// run runs a command and returns what it prints, with the place's folder, times and the epoch replaced.
func (p *place) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	return p.runWith(p.t.Context(), args...)
}

func (p *place) runWith(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	var out, errs bytes.Buffer
	env := cli.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	root := &cobra.Command{Use: "hub"}
	root.AddCommand(hubcli.HistoryCommand(env), hubcli.BackupCommand(env))
	code = cli.Execute(ctx, env, root)
	return p.normal(out.String()), p.normal(errs.String()), code
}

func (p *place) normal(text string) string {
	text = strings.ReplaceAll(text, p.dir, "DIR")
	for pattern, with := range map[string]string{
		`[0-9a-f]{32}|[A-Z2-7]{26}`:                                        "EPOCH",
		`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})`:   "TIME",
		`\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} UTC \((just now|[^)]* ago)\)`: "TIME",
		`partial-\d+`: "partial-N",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
	}
	return text
}

func want(t *testing.T, what, got, expected string) {
	t.Helper()
	if d := cmp.Diff(strings.TrimLeft(expected, "\n"), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestHistoryStats(t *testing.T) {
	p := newPlace(t)
	log := p.open(3)
	stats := func(t *testing.T, running string) {
		t.Helper()
		out, errs, code := p.run("history", "stats", "--config", filepath.Join(p.dir, "hub.yaml"))
		if code != 0 || errs != "" {
			t.Errorf("exit code %d, %q", code, errs)
		}
		want(t, "text", out, `
history     segments in DIR/history, `+running+` running
updates     3
size        325 bytes in 1 file
oldest      TIME
newest      TIME
last id     urn:uuid:3
positions   1 to 3
epoch       EPOCH
`)
		out, errs, code = p.run("history", "stats", "--json", "--config", filepath.Join(p.dir, "hub.yaml"))
		if code != 0 || errs != "" {
			t.Errorf("exit code %d, %q", code, errs)
		}
		want(t, "JSON", out, `
{
  "path": "DIR/history",
  "running": `+strconv.FormatBool(running == "hub")+`,
  "driver": "segments",
  "epoch": "EPOCH",
  "events": 3,
  "subscription_events": 0,
  "bytes": 325,
  "segments": 1,
  "first": 1,
  "last": 3,
  "first_at": "TIME",
  "last_at": "TIME",
  "last_id": "urn:uuid:3"
}
`)
	}
	t.Run("a process has it open and does not answer", func(t *testing.T) {
		out, errs, code := p.run("history", "stats", "--config", filepath.Join(p.dir, "hub.yaml"))
		if code != cli.ExitFailure || out != "" {
			t.Errorf("exit code %d, %q", code, out)
		}
		want(t, "error", errs, `
hub: open segments: waited 2s: lock DIR/history/LOCK: history: store is in use
  hint: a process has the history open, and none listens on DIR/hub.sock: a hub that is starting or ending, or one with another control_socket
`)
	})
	t.Run("a hub runs", func(t *testing.T) {
		p.t = t
		p.serve(log)
		stats(t, "hub")
	})
	t.Run("no hub runs", func(t *testing.T) {
		p.t = t
		p.close(log)
		stats(t, "no hub")
	})
}

func TestHistoryStats_empty(t *testing.T) {
	p := newPlace(t)
	p.close(p.open(0))
	out, errs, code := p.run("history", "stats", "--config", filepath.Join(p.dir, "hub.yaml"))
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	want(t, "text", out, `
history   segments in DIR/history, no hub running
updates   0
size      64 bytes in 1 file
epoch     EPOCH
`)
	out, _, _ = p.run("history", "stats", "--json", "--config", filepath.Join(p.dir, "hub.yaml"))
	want(t, "JSON", out, `
{
  "path": "DIR/history",
  "running": false,
  "driver": "segments",
  "epoch": "EPOCH",
  "events": 0,
  "subscription_events": 0,
  "bytes": 64,
  "segments": 1,
  "first": 1,
  "last": 0,
  "last_id": ""
}
`)
}

func TestHistoryStats_memory(t *testing.T) {
	p := newPlace(t)
	p.write("hub.yaml", "public_url: https://hub.example.com/.well-known/mercure\ntls: { mode: off }\nhistory: { driver: memory }\ncontrol_socket: hub.sock\n"+
		"issuers: [ { id: https://app.example.com, keys: [ { alg: HS256, secret_file: s } ] } ]\n")
	log, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close(log)
	p.append(log, 1200)
	p.serve(log)
	out, errs, code := p.run("history", "stats", "--config", filepath.Join(p.dir, "hub.yaml"))
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	want(t, "text", out, `
history     memory, hub running
updates     1,200
size        231.0 KiB
oldest      TIME
newest      TIME
last id     urn:uuid:1200
positions   1 to 1200
epoch       EPOCH
`)
	_, errs, code = p.run("backup", "--config", filepath.Join(p.dir, "hub.yaml"), filepath.Join(p.dir, "copy"))
	if code != cli.ExitFailure {
		t.Errorf("exit code %d", code)
	}
	want(t, "error", errs, "hub: back up: ask the hub for a copy: control: not supported by this history: this history keeps nothing that could be copied\n")
}

// Subscription events are counted apart from the updates, and copied with them.
func TestHistory_subscriptionEvents(t *testing.T) {
	p := newPlace(t)
	log := p.open(3)
	defer p.close(log)
	for n := range 2 {
		r := &history.Record{ID: fmt.Sprintf("urn:uuid:e%d", n), Topics: []string{"/hub/subscriptions/exact/a/b"}, Private: true, Subscription: true, Event: []byte("data: {}\n\n")}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	p.serve(log)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"history", "stats", "--data", p.data()}, `(?m)^updates +3\nsubscription events +2\n(.*\n)*last id +urn:uuid:e1\npositions +1 to 5$`},
		{[]string{"history", "stats", "--json", "--data", p.data()}, `"events": 3,\s+"subscription_events": 2,`},
		{[]string{"history", "verify", "--data", p.data()}, `^Verified 5 events, `},
		{[]string{"backup", "--data", p.data(), filepath.Join(p.dir, "copy")}, `^Copied 3 updates and 2 subscription events, `},
	} {
		out, errs, code := p.run(tc.args...)
		if code != 0 || !regexp.MustCompile(tc.want).MatchString(out) {
			t.Errorf("%v: exit code %d, %q\n%s", tc.args, code, errs, out)
		}
	}
}

// data makes the place one of 'hub dev'.
func (p *place) data() string {
	if err := os.Chmod(p.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	return p.dir
}

func TestBackup(t *testing.T) {
	p := newPlace(t)
	log := p.open(3)
	take := func(t *testing.T, name, running string) {
		t.Helper()
		copied := filepath.Join(p.dir, name)
		out, errs, code := p.run("backup", "--data", p.data(), copied)
		if code != 0 || errs != "" {
			t.Errorf("exit code %d, %q", code, errs)
		}
		want(t, "text", out, "Copied 3 updates, 325 bytes in 1 file, to DIR/"+name+"\n")
		out, errs, code = p.run("backup", "--json", "--data", p.data(), copied+"2")
		if code != 0 || errs != "" {
			t.Errorf("exit code %d, %q", code, errs)
		}
		want(t, "JSON", out, `
{
  "running": `+running+`,
  "dir": "DIR/`+name+`2",
  "files": 1,
  "bytes": 325,
  "history": {
    "driver": "segments",
    "epoch": "EPOCH",
    "events": 3,
    "subscription_events": 0,
    "bytes": 325,
    "segments": 1,
    "first": 1,
    "last": 3,
    "first_at": "TIME",
    "last_at": "TIME",
    "last_id": "urn:uuid:3"
  }
}
`)
		_, errs, code = p.run("backup", "--data", p.data(), copied)
		if code != cli.ExitUsage {
			t.Errorf("exit code %d the second time", code)
		}
		want(t, "error", errs, "hub: backup: the place of the copy is taken: DIR/"+name+" is not empty\n  hint: name a folder that does not exist yet\n")
	}
	t.Run("while a hub runs", func(t *testing.T) {
		p.t = t
		p.serve(log)
		take(t, "live", "true")
	})
	t.Run("while none runs", func(t *testing.T) {
		p.t = t
		p.close(log)
		take(t, "cold", "false")
	})
	t.Run("and restore", func(t *testing.T) {
		p.t = t
		for _, name := range []string{"live", "cold2"} {
			if err := os.RemoveAll(filepath.Join(p.dir, "history")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(p.dir, name), filepath.Join(p.dir, "history")); err != nil {
				t.Fatal(err)
			}
			out, _, code := p.run("history", "stats", "--json", "--data", p.data())
			var s history.Stats
			if err := json.Unmarshal([]byte(out), &struct {
				Events *int64  `json:"events"`
				LastID *string `json:"last_id"`
			}{&s.Events, &s.LastID}); err != nil || code != 0 || s.Events != 3 || s.LastID != "urn:uuid:3" {
				t.Errorf("the restored history has %+v, exit code %d, %v", s, code, err)
			}
		}
	})
}

// What is wrong with the place of a copy is said with what to do about it.
func TestBackup_places(t *testing.T) {
	p := newPlace(t)
	p.close(p.open(1))
	for target, expected := range map[string]struct {
		code int
		errs string
	}{
		"": {cli.ExitUsage, "hub: TARGET is empty: is a variable unset?\n"},
		filepath.Join(p.dir, "missing", "copy"): {
			cli.ExitFailure, "hub: back up: stat DIR/missing: no such file or directory\n  hint: the folder that TARGET goes into must be there\n",
		},
	} {
		_, errs, code := p.run("backup", "--data", p.data(), target)
		if code != expected.code {
			t.Errorf("exit code %d for %q, want %d", code, target, expected.code)
		}
		want(t, "error", errs, expected.errs)
	}
}

// A copy that was interrupted is a failure for scripts, whatever interrupted it.
func TestBackup_interrupted(t *testing.T) {
	p := newPlace(t)
	log := p.open(3)
	defer p.close(log)
	p.serve(log)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errs, code := p.runWith(ctx, "backup", "--data", p.data(), filepath.Join(p.dir, "copy"))
	if code != cli.ExitFailure || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if left, err := filepath.Glob(filepath.Join(p.dir, "copy*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}

// A copy that breaks off because the hub ends says so.
func TestBackup_hubEnds(t *testing.T) {
	p := newPlace(t)
	log := p.open(3)
	defer p.close(log)
	p.serve(ending{log})
	_, errs, code := p.run("backup", "--data", p.data(), filepath.Join(p.dir, "copy"))
	if code != cli.ExitFailure {
		t.Errorf("exit code %d", code)
	}
	want(t, "error", errs, "hub: back up: control: the copy is not complete: the hub says: history: closed\n")
}

// ending is a log that is closed while a copy is taken.
type ending struct{ *segments.Log }

func (ending) Backup(context.Context, history.CreateFile) error { return history.ErrClosed }
