package hubcli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/hubcli"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// A service manager may ask for a reload as soon as it has started the process: that must not kill a hub which still waits for its
// predecessor.
func TestServe_survivesAReloadWhileItStarts(t *testing.T) {
	hangUp := needs.Hangup(t)
	p := newPlace(t)
	p.write("hub.yaml", "public_url: https://hub.example.com/hub\nlisten: 127.0.0.1:0\nops: { listen: '' }\ntls: { mode: off }\n"+
		"history: { path: history }\ndrain: 60s\nissuers: [ { id: i, keys: [ { alg: HS256, secret_file: s } ] } ]\n")
	p.write("s", strings.Repeat("s", 32))
	predecessor := p.open(0)

	log := make(lines, 100)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan int, 1)
	go func() {
		args := []string{"serve", "--config", filepath.Join(p.dir, "hub.yaml")}
		done <- hubcli.Main(ctx, cli.Env{Args: args, Stdin: strings.NewReader(""), Stdout: log, Stderr: log})
	}()
	log.await(t, "waiting for it to end")
	hangUp()
	if err := predecessor.Close(); err != nil {
		t.Fatal(err)
	}
	log.await(t, "configuration reloaded")
	stop()
	if code := <-done; code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// lines is a log whose lines can be waited for.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// await reads until a line holds the text.
func (l lines) await(t *testing.T, text string) {
	t.Helper()
	var before strings.Builder
	for patience := time.After(30 * time.Second); ; {
		select {
		case line := <-l:
			if strings.Contains(line, text) {
				return
			}
			before.WriteString(line)
		case <-patience:
			t.Fatalf("waited in vain for %q; the log has:\n%s", text, before.String())
		}
	}
}

// A terminal that is closed is how many a development server ends, and what it keeps for its time alone must not outlive it.
func TestDev_endsWithItsTerminal(t *testing.T) {
	hangUp := needs.Hangup(t)
	p := newPlace(t)
	data := filepath.Join(p.dir, "data")
	banner := make(lines, 100)
	done := make(chan int, 1)
	args := []string{"dev", "--ephemeral", "--data", data, "--listen", freeAddress(t), "--http", freeAddress(t)}
	go func() {
		done <- hubcli.Main(t.Context(), cli.Env{Args: args, Stdin: strings.NewReader(""), Stdout: banner, Stderr: banner, Executable: "hub"})
	}()
	banner.await(t, "Stop with Ctrl-C")
	hangUp()
	select {
	case code := <-done:
		if code != cli.ExitOK {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the server goes on without its terminal")
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ephemeral folder is still there: %v", err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestServe_completesConfigurationFiles(t *testing.T) {
	var out bytes.Buffer
	env := cli.Env{Args: []string{"__complete", "serve", "--config", ""}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard}
	code := hubcli.Main(t.Context(), env)
	if want := "yaml\nyml\n:8\n"; code != cli.ExitOK || out.String() != want { // 8 has the shell complete names of files with these endings
		t.Errorf("completion of serve --config: code %d, %q, want %q", code, out.String(), want)
	}
}
