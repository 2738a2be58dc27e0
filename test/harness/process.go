package harness

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// Patience bounds every wait for something that is expected to happen.
const Patience = 60 * time.Second

// bin is the folder with the programs under test, set once by Main.
var bin string

// Main is what TestMain of a package of tests does: it builds the programs, and those of other packages of the module that are
// named by their folders in it, into a temporary folder, runs the tests and removes the folder. It returns the exit code.
func Main(m *testing.M, others ...string) int {
	dir, err := os.MkdirTemp("", "cinnabar-bin-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator))
	for _, folder := range append([]string{"cmd/hub", "cmd/authz"}, others...) {
		build.Args = append(build.Args, "github.com/cinnabar-hub/cinnabar/"+folder)
	}
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	bin = dir
	return m.Run()
}

// Program gives the path of a built program.
func Program(name string) string { return filepath.Join(bin, name) }

// given holds the ports that FreePorts has given: none is given twice.
var given sync.Map

// FreePorts gives TCP ports that nobody listens on. They are not of the range from which systems take the ports of outgoing
// connections by default: between this call and the server's start, or its stop and its next start, any client could get one of those.
func FreePorts(tb testing.TB, n int) []int {
	tb.Helper()
	const first, last = 15_000, 32_000
	var ports []int
	for range last - first {
		if len(ports) == n {
			return ports
		}
		port := first + rand.IntN(last-first)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			_ = l.Close()
			ports = append(ports, port)
		}
	}
	tb.Fatal("no free ports")
	return nil
}

// Process is a program under test.
type Process struct {
	T    testing.TB
	Cmd  *exec.Cmd
	Out  *Buffer       // what it printed, on both outputs
	Done chan struct{} // closed when it has ended
	Err  error         // how it ended, once Done is closed

	Quiet bool // nobody needs its output any more, even if the test fails
}

// Start runs one of our programs in an empty folder; its output is kept and can be waited for.
func Start(tb testing.TB, name string, args ...string) *Process {
	tb.Helper()
	return Run(tb, name, exec.Command(Program(name), args...))
}

// Run starts a command as a Process, in an empty folder unless it names one. The name is for people.
func Run(tb testing.TB, name string, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{T: tb, Cmd: cmd, Out: NewBuffer(), Done: make(chan struct{})}
	if cmd.Dir == "" {
		cmd.Dir = tb.TempDir()
	}
	w := secretwatch.Output(tb, name, p.Out)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() { p.Err = cmd.Wait(); p.Out.Close(); close(p.Done) }()
	tb.Cleanup(func() {
		p.Stop()
		if tb.Failed() && !p.Quiet {
			tb.Logf("output of %s ends with:\n%s", name, p.Out.Tail())
		}
	})
	return p
}

// Stop ends the program as an operator does, with SIGTERM, and waits for it.
func (p *Process) Stop() {
	p.T.Helper()
	select {
	case <-p.Done:
		return
	default:
	}
	_ = p.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.Done:
	case <-time.After(Patience):
		_ = p.Cmd.Process.Kill()
		<-p.Done
		p.T.Error("the program did not stop after SIGTERM")
	}
}

// Kill ends the program without warning, with SIGKILL, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Done
}

// WaitFor waits for a text in the output.
func (p *Process) WaitFor(text string) {
	p.T.Helper()
	if !p.Out.WaitFor(text, Patience) {
		p.T.Fatalf("no %q in the output, which ends with:\n%s", text, p.Out.Tail())
	}
}

// Command runs one of our programs to its end and gives its output. Standard output is not shown to the checker: minting prints
// a token, which is its purpose.
func Command(tb testing.TB, stdin, name string, args ...string) (stdout, stderr string, code int) {
	tb.Helper()
	return finish(tb, stdin, name, exec.Command(Program(name), args...), Patience)
}

// finish runs a command to its end, in an empty folder. One that does not end in time fails the test: that it was killed must not
// pass for its own refusal.
func finish(tb testing.TB, stdin, name string, cmd *exec.Cmd, patience time.Duration) (stdout, stderr string, code int) {
	tb.Helper()
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Dir = tb.TempDir()
	var out, errOut bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = secretwatch.Output(tb, name, &errOut)
	cmd.WaitDelay = 5 * time.Second // a child of it may hold its outputs
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	var late atomic.Bool
	timer := time.AfterFunc(patience, func() { late.Store(true); _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	if late.Load() {
		tb.Fatalf("%s did not end within %v", name, patience)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// Must runs one of our programs to its end, wants success, and gives its standard output without the space around it.
func Must(tb testing.TB, stdin, name string, args ...string) string {
	tb.Helper()
	out, stderr, code := Command(tb, stdin, name, args...)
	if code != 0 {
		tb.Fatalf("%s %s: exit %d: %s", name, strings.Join(args[:min(2, len(args))], " "), code, stderr)
	}
	return strings.TrimSpace(out)
}

// Mint makes a token with 'authz token mint' and tells the checker of it.
func Mint(tb testing.TB, args ...string) string {
	tb.Helper()
	token := Must(tb, "", "authz", append([]string{"token", "mint"}, args...)...)
	secretwatch.Add(tb, token)
	return token
}
