package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/needs"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// copySources copies what belongs to the project, and nothing that was built or installed, into an empty folder.
func copySources(t *testing.T, to string) {
	t.Helper()
	root := filepath.Join("..", "..")
	needs.Checkout(t, root)
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v: %s", err, stderr.String())
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		raw, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// goEnvironment gives the caches of the go command, so that a new home does not begin with a download. Without the paths of
// sources in what is compiled, a copy elsewhere finds it in the cache.
func goEnvironment(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	return []string{"GOCACHE=" + lines[0], "GOMODCACHE=" + lines[1], "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=readonly -trimpath"}
}

// TestTour types the tours of the pages that have one into a shell, word for word, in a new home that holds nothing but the
// project, and compares what appears with what the page says. Each runs in namespaces of its own: the pages name the ports that
// everybody uses first, and whatever they leave running ends with the test.
func TestTour(t *testing.T) {
	for _, tour := range tours() {
		t.Run(tour.file, func(t *testing.T) { take(t, tour) })
	}
}

func take(t *testing.T, page tour) {
	t.Helper()
	for _, name := range []string{"bash", "curl", "git", "make", "unshare", "ip"} {
		needs.Program(t, name)
	}
	namespaces := needs.Namespaces(t, "-n", "-p", "--fork", "--kill-child")
	blocks := readTour(t, page)
	top := t.TempDir()
	home, project := filepath.Join(top, "home"), filepath.Join(top, "home", "cinnabar")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	copySources(t, project)
	// The blocks are read from files, so that no command can take the next one for its input.
	script := "set -e\nip link set lo up\n"
	for i, b := range blocks {
		allowed := ""
		if b.hasWant { // what it prints is looked at, so a refusal that the page shows may be one for the shell as well
			allowed = " || true"
		}
		path := harness.WriteFile(t, top, fmt.Sprintf("block-%d.sh", i), b.script)
		script += fmt.Sprintf(". '%s' </dev/null%s\necho; echo \"--- end of block %d ---\"\n", path, allowed, i)
	}
	// A shell whose command has failed ends what it began, so that the output ends too.
	script = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n" + script

	out := harness.NewBuffer()
	cmd := exec.Command("unshare", append(namespaces, "bash", harness.WriteFile(t, top, "tour.sh", script))...)
	cmd.Dir = project
	cmd.Env = append(append(os.Environ(), "HOME="+home), goEnvironment(t)...)
	w := secretwatch.Output(t, "tour", out)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); out.Close(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	from := 0
	for i, b := range blocks {
		end := fmt.Sprintf("--- end of block %d ---", i)
		if !out.WaitFor(end, 5*harness.Patience) {
			t.Fatalf("%s, line %d: this did not work:\n%s\nThe output ends with:\n%s", page.file, b.line, b.script, out.Tail())
		}
		text := out.String()
		to := strings.Index(text, end)
		got := text[from:to]
		from = to + len(end)
		if b.hasWant && !tourMatches(b.want, got) {
			t.Errorf("%s, line %d: the output is not what the page says.\n%s\npage:\n%s\noutput:\n%s", page.file, b.line, b.script, b.want, got)
		}
	}
}
