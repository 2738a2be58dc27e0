package bolt_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
)

// crashDir tells the test binary to be the process that is killed.
const crashDir = "CINNABAR_TEST_BOLT_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		appendForEver(dir)
	}
	if dir := os.Getenv(fullDir); dir != "" {
		if err := fillDisk(context.Background(), dir); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

func crashOptions(dir string) bolt.Options {
	return bolt.Options{Dir: dir, MaxEvents: 700}
}

// appendForEver appends from several goroutines and prints the position and id of every
// acknowledged record, until it is killed.
func appendForEver(dir string) {
	log, err := bolt.Open(context.Background(), crashOptions(dir))
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, n)
				r := &history.Record{
					ID: id, Topics: []string{"https://example.com/" + strconv.Itoa(w), "https://example.com/all"},
					Event: fmt.Appendf(nil, "data: %s\n\n", strings.Repeat(id, 1+n%20)),
				}
				p, err := log.Append(context.Background(), r)
				if err != nil {
					panic(err)
				}
				// One write per line: a line is there or it is not.
				if _, err := fmt.Fprintf(os.Stdout, "%d %s\n", p, id); err != nil {
					panic(err)
				}
			}
		})
	}
	// Compactions change the file under the appends.
	wg.Go(func() {
		for {
			if _, err := log.Compact(context.Background()); err != nil {
				panic(err)
			}
		}
	})
	wg.Wait()
}

// Every record that was acknowledged before a kill -9 is there afterwards, at its position, and the
// log goes on (invariant I7 of the hub).
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[history.Position]string{}
	last := history.Position(0)
	for round := range 6 {
		last = max(last, runAndKill(t, dir, acknowledged, 60+round*80))
		checkAcknowledged(t, dir, acknowledged, last)
	}
}

// runAndKill lets a child append until it has acknowledged some records, and kills it.
func runAndKill(t *testing.T, dir string, acknowledged map[history.Position]string, count int) (last history.Position) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
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
		position, id, ok := strings.Cut(lines.Text(), " ")
		p, err := strconv.ParseUint(position, 10, 64)
		if !ok || err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		if other, ok := acknowledged[history.Position(p)]; ok {
			t.Errorf("position %d was given to %s and to %s", p, other, id)
		}
		acknowledged[history.Position(p)] = id
		last = max(last, history.Position(p))
		if seen++; seen == count {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || seen < count {
		t.Fatalf("the child ended with %v after %d records", err, seen)
	}
	return last
}

func checkAcknowledged(t *testing.T, dir string, acknowledged map[history.Position]string, last history.Position) {
	t.Helper()
	log := mustOpen(t, crashOptions(dir))
	defer mustClose(t, log)
	h, err := log.Head(t.Context())
	if err != nil || h.Last < last {
		t.Fatalf("Head() = %+v, %v, want at least %d", h, err, last)
	}
	page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 30})
	if err != nil || len(page.Entries) != int(h.Last-h.First+1) {
		t.Fatalf("Replay() = %d entries, %v, want %d", len(page.Entries), err, h.Last-h.First+1)
	}
	for i, e := range page.Entries {
		if want := h.First + history.Position(i); e.Position != want {
			t.Fatalf("position %d follows %d", e.Position, want-1)
		}
		if id, ok := acknowledged[e.Position]; ok && id != e.ID {
			t.Errorf("position %d bears %s, and %s was acknowledged there", e.Position, e.ID, id)
		}
		if p, err := log.Seek(t.Context(), e.ID); err != nil || p != e.Position {
			t.Errorf("Seek(%s) = %d, %v, want %d", e.ID, p, err, e.Position)
		}
	}
	if v, err := log.Verify(t.Context()); err != nil || v.Events < int64(len(page.Entries)) {
		t.Errorf("Verify() = %+v, %v, want %d events", v, err, len(page.Entries))
	}
	for p := range acknowledged {
		if p < h.First {
			delete(acknowledged, p) // trimmed
		}
	}
}
