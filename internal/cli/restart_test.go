package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/hubcli"
)

// patience bounds the wait for something that should be there soon.
const patience = 30 * time.Second

// output can be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// waitFor waits until the output holds a text n times.
func (o *output) waitFor(t *testing.T, text string, n int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range int(patience / (10 * time.Millisecond)) {
		if strings.Count(o.String(), text) >= n {
			return
		}
		<-tick.C
	}
	t.Fatalf("no %q, %d times, in:\n%s", text, n, o)
}

// command is a command of the hub that runs beside the test.
type command struct {
	out, messages output
	stop          context.CancelFunc
	code          chan int
}

func run(t *testing.T, args ...string) *command {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &command{stop: stop, code: make(chan int, 1)}
	env := cli.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &c.out, Stderr: &c.messages, Version: "test", Executable: "hub"}
	go func() { c.code <- hubcli.Main(ctx, env) }() // end waits for it
	t.Cleanup(stop)
	return c
}

// end waits for the exit code.
func (c *command) end(t *testing.T) int {
	t.Helper()
	select {
	case code := <-c.code:
		return code
	case <-time.After(patience):
		t.Fatalf("the command does not end:\n%s", &c.messages)
		return -1
	}
}

// The development server stops and starts under a subscriber, which goes on where it was, with the token that then lies in the data folder.
func TestSubscribe_outlivesAServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	addresses := make([]string, 2)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)
		_ = l.Close()
	}
	start := func() *command {
		c := run(t, "dev", "--data", data, "--listen", addresses[0], "--http", addresses[1])
		c.out.waitFor(t, "Stop with Ctrl-C", 1)
		return c
	}
	publish := func(data1 string) {
		c := run(t, "publish", "--data", data, "--private", "--json", "https://example.com/x", data1)
		if code := c.end(t); code != cli.ExitOK || !strings.HasPrefix(c.out.String(), `{"id":"urn:uuid:`) {
			t.Fatalf("publish = %d, %s%s", code, &c.out, &c.messages)
		}
	}
	server := start()
	publish("1")
	reader := run(t, "subscribe", "--data", data, "--last-event-id", "earliest", "--count", "4", "--json", "https://example.com/x")
	reader.out.waitFor(t, "\n", 1)
	server.stop()
	if code := server.end(t); code != cli.ExitOK {
		t.Fatalf("the server ended with %d: %s", code, &server.messages)
	}
	reader.messages.waitFor(t, ", resuming in ", 2) // the stream has ended, and nobody listens
	server = start()
	publish("2")
	publish("3")
	publish("4")
	if code := reader.end(t); code != cli.ExitOK || strings.Contains(reader.messages.String(), "missing") {
		t.Errorf("subscribe = %d: %s", code, &reader.messages)
	}
	lines := strings.Split(strings.TrimSpace(reader.out.String()), "\n")
	for i, line := range lines {
		if !strings.HasSuffix(line, fmt.Sprintf(`"data":"%d"}`, i+1)) {
			t.Errorf("line %d of %d is %s", i+1, len(lines), line)
		}
	}
	server.stop()
	if code := server.end(t); code != cli.ExitOK || len(lines) != 4 {
		t.Errorf("the server ended with %d, the reader got %d updates", code, len(lines))
	}
}
