package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/needs"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// TestMakeRun_offline is the first thing a new user does, on a machine whose modules are downloaded and whose network is gone:
// a copy of the sources, 'make run', and each printed line pasted into another terminal.
func TestMakeRun_offline(t *testing.T) {
	for _, name := range []string{"git", "make", "curl", "unshare", "nsenter", "ip"} {
		needs.Program(t, name)
	}
	namespaces, enter := needs.Namespaces(t, "-n"), []string{"-n"}
	if namespaces[0] == "-r" {
		enter = []string{"-U", "--preserve-credentials", "-n"}
	}
	project := t.TempDir()
	copySources(t, project)
	out := harness.NewBuffer()
	cmd := exec.Command("unshare", append(namespaces, "sh", "-c", "ip link set lo up && exec make run")...)
	cmd.Dir = project
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly -trimpath", "GOTOOLCHAIN=local")
	w := secretwatch.Output(t, "make-run", out)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); out.Close(); close(ended) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("output of make run:\n%s", out)
		}
	})
	if !out.WaitFor("Stop with Ctrl-C", 5*harness.Patience) {
		t.Fatal("make run printed no banner")
	}
	lines := printed(out.String())
	inside := func(ctx context.Context, line string) *exec.Cmd {
		c := exec.CommandContext(ctx, "nsenter", append(slices.Clone(enter), "-t", strconv.Itoa(cmd.Process.Pid), "sh", "-c", "exec "+line)...)
		c.Dir = t.TempDir()
		return c
	}
	for _, with := range []string{"curl", "hub"} {
		if !strings.Contains(lines["publish with "+with], project) {
			t.Errorf("the line has no absolute path: %s", lines["publish with "+with])
		}
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		seen := harness.NewBuffer()
		watch := inside(ctx, lines["watch with "+with])
		ww := secretwatch.Output(t, "watch", seen)
		watch.Stdout, watch.Stderr = ww, ww
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		if !publishUntilSeen(func() (string, error) {
			b, err := inside(ctx, lines["publish with "+with]).CombinedOutput()
			return string(b), err
		}, seen) {
			t.Errorf("%s: the watcher saw nothing: %s", with, seen)
		}
		cancel()
		_ = watch.Wait()
	}
}
