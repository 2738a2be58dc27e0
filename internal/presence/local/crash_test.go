package local_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/presence/local"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// childVariable tells the test binary that it is the process which is killed, or whose disk is full, and the folder that is meant.
const childVariable = "CINNABAR_PRESENCE_CHILD"

// command runs the test t, and no other one, in a process of its own.
func command(t *testing.T, dir string, before ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(before, exe, "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	return cmd
}

// What a child says of a batch, one line each.
const (
	hasPut     = "put"
	isRemoving = "removing"
	hasRemoved = "removed"
)

// A batch is put at once, and its first half removed at once. Its name ends in a number that tells its size.
func batch(name string) []presence.Subscriber {
	n, _ := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	all := make([]presence.Subscriber, 2+n%17)
	for i := range all {
		all[i] = presence.Subscriber{ID: name + "/" + strconv.Itoa(i), Subscriptions: []presence.Subscription{
			{MatchType: "Exact", Match: strings.Repeat(name, 1+n%20)}, {MatchType: "URLPattern", Match: "/:i", Payload: fmt.Appendf(nil, `{"i":%d}`, i)},
		}}
	}
	return all
}

// A process is killed over and over while it puts and removes. What it has acknowledged is kept: who was put and not removed is reaped
// afterwards, batches are there as wholes, and who was reaped and not removed comes back.
func TestKill(t *testing.T) {
	if dir := os.Getenv(childVariable); dir != "" {
		comeAndGo(t, dir)
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), ".presence.db")
	said := map[string]string{} // what was said last, by batch
	for round := range 8 {
		sayAndKill(t, path, said, 40+60*round)
		d := mustOpen(t, path)
		all := reaped(t, d)
		checkReaped(t, said, all)
		if round%2 != 0 {
			mustRemove(t, d, all)
			clear(said)
		}
		mustClose(t, d)
		if _, err := os.Stat(path + ".damaged"); err == nil {
			t.Fatal("the file is damaged")
		}
	}
}

// comeAndGo puts and removes batches from several goroutines until the process is killed, and says so. When something fails it panics: that ends
// the process at once and says why on its standard error.
func comeAndGo(t *testing.T, path string) {
	t.Helper()
	d := mustOpen(t, path)
	say := func(what, name string) {
		// One write per line: a line is there or it is not.
		if _, err := fmt.Fprintf(os.Stdout, "%s %s\n", what, name); err != nil {
			panic(err)
		}
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, n)
				all := batch(name)
				if err := d.Put(t.Context(), all); err != nil {
					panic(err)
				}
				say(hasPut, name)
				if n%3 == 0 {
					continue
				}
				say(isRemoving, name)
				if err := d.Remove(t.Context(), ids(all[:len(all)/2])); err != nil {
					panic(err)
				}
				say(hasRemoved, name)
			}
		})
	}
	wg.Wait()
}

// sayAndKill lets a child say so many things, and kills it.
func sayAndKill(t *testing.T, path string, said map[string]string, count int) {
	t.Helper()
	cmd := command(t, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, name, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.Count(name, "-") != 2 {
			t.Fatalf("the child says %q", lines.Text())
		}
		said[name] = what
		if seen++; seen == count {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || seen < count {
		t.Fatalf("the child ended with %v after %d lines", err, seen)
	}
}

// checkReaped compares what was reaped with what was said.
func checkReaped(t *testing.T, said map[string]string, all []presence.Subscriber) {
	t.Helper()
	got := map[string][]presence.Subscriber{}
	for _, s := range all {
		name, _, _ := strings.Cut(s.ID, "/")
		got[name] = append(got[name], s)
	}
	for name := range got {
		if _, ok := said[name]; !ok {
			said[name] = hasPut // and was killed before it could say so
		}
	}
	for name, what := range said {
		whole := batch(name)
		rest := whole[len(whole)/2:]
		if what == hasRemoved || what == isRemoving && len(got[name]) == len(rest) {
			whole = rest
			said[name] = hasRemoved
		}
		if diff := cmp.Diff(whole, got[name]); diff != "" {
			t.Errorf("%s was %s (-want +got):\n%s", name, what, diff)
		}
	}
}

// sayFull is what a child writes when it has come to its end: one that ran no test ends well too.
const sayFull = "the disk was full"

// A small disk, mounted where only a child process sees it, is filled for real.
func TestPut_noSpace(t *testing.T) {
	if dir := os.Getenv(childVariable); dir != "" {
		fillDisk(t, dir)
		return
	}
	flags := needs.Namespaces(t, "-m")
	dir := t.TempDir()
	before := append([]string{"unshare"}, flags...)
	before = append(before, "sh", "-c", `mount -t tmpfs -o size=2m,mode=0700 tmpfs "$0" && exec "$@"`, dir)
	if out, err := command(t, dir, before...).CombinedOutput(); err != nil || !strings.Contains(string(out), sayFull) {
		t.Errorf("the child ended with %v: %s", err, out)
	}
}

// fillDisk puts until the disk at dir is full, makes room, and goes on.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	filler, path := filepath.Join(dir, "filler"), filepath.Join(dir, ".presence.db")
	if err := os.WriteFile(filler, make([]byte, 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, path)
	var kept []presence.Subscriber
	fill := func() {
		for range 1000 {
			all := subscribers(len(kept), 50)
			if err := d.Put(t.Context(), all); err != nil {
				return
			}
			kept = append(kept, all...)
		}
		t.Fatal("the disk is never full")
	}
	fill()
	mustClose(t, d)
	d = mustOpen(t, path) // on a full disk
	wantReaped(t, d, kept)
	before := len(kept)
	fill()
	if len(kept) > before+100 {
		t.Errorf("%d subscribers were put on a full disk", len(kept)-before)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		all := subscribers(len(kept), 50)
		mustPut(t, d, all)
		kept = append(kept, all...)
	}
	mustRemove(t, d, kept[:50])
	mustClose(t, d)
	d = mustOpen(t, path)
	wantReaped(t, d, kept[50:])
	mustRemove(t, d, kept)
	mustPut(t, d, kept)
	mustClose(t, d)
	if _, err := os.Stat(path + ".damaged"); err == nil {
		t.Error("the file is damaged")
	}
	// There is nothing to begin with on a disk without any space.
	if err := errors.Join(os.Remove(path), fillUp(filler)); err != nil {
		t.Fatal(err)
	}
	if d, err := local.Open(local.Options{Path: path}); err == nil {
		t.Errorf("Open() = %v without space", d.Close())
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, path))
	if _, err := fmt.Fprintln(os.Stdout, sayFull); err != nil {
		t.Fatal(err)
	}
}

// fillUp makes a file of all the space there is.
func fillUp(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	return f.Close()
}
