package authzcli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/authzcli"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// journal is the log of a server.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestServe_reload: on SIGHUP a server takes over what it can, names what it cannot, and keeps the old configuration when the new one
// is wrong.
func TestServe_reload(t *testing.T) {
	hangUp := needs.Hangup(t)
	p := &place{dir: t.TempDir()}
	p.config = filepath.Join(p.dir, "authz.yaml")
	configure := func(change func(string) string) {
		t.Helper()
		if err := os.WriteFile(p.config, []byte(change("listen: localhost:0\nops: { listen: \"\" }\n"+configuration)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(func(s string) string { return s })
	var log journal
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- authzcli.Main(ctx, cli.Env{Args: []string{"serve", "--config", p.config}, Stdin: strings.NewReader(""), Stdout: &log, Stderr: &log})
	}()
	defer func() {
		stop()
		if code := <-done; code != cli.ExitOK {
			t.Errorf("authz serve ended with %d:\n%s", code, log.String())
		}
	}()
	until(t, "the server", func() bool { return strings.Contains(log.String(), "is ready") })

	configure(func(s string) string {
		s = strings.Replace(s, "localhost:0", "localhost:1", 1)
		return strings.Replace(s, "clients: [", "clients: [ { id: novel, redirect_uris: [ https://f.example.com/cb ] },", 1)
	})
	hangUp()
	until(t, "the new client", func() bool { return strings.Contains(p.ok(t, "client", "list"), "novel") })
	until(t, "the log", func() bool {
		return strings.Contains(log.String(), "listen") && strings.Contains(log.String(), "restart")
	})

	configure(func(string) string { return "nonsense: true\n" })
	hangUp()
	until(t, "the refusal", func() bool {
		return strings.Contains(log.String(), "configuration not reloaded") && strings.Contains(log.String(), "nonsense")
	})

	configure(func(s string) string { return s })
	if out := p.ok(t, "client", "list"); !strings.Contains(out, "novel") {
		t.Errorf("a configuration that was refused changed the clients:\n%s", out)
	}
	hangUp()
	until(t, "the client to go", func() bool { return !strings.Contains(p.ok(t, "client", "list"), "novel") })
}
