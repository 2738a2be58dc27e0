package historytest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// childVariable tells a test binary that it is the process which is killed, or whose disk is full, and the folder that is meant.
const childVariable = "CINNABAR_HISTORYTEST_CHILD"

// crashRounds is how often Kill kills, and crashWriters how many append at the same time until then.
const (
	crashRounds  = 6
	crashWriters = 16
)

// Opener opens the store in a folder, which it makes when there is none. It is called in this process and in others, always with the
// same options.
type Opener func(ctx context.Context, dir string) (history.Log, error)

// Crash says how a driver is killed.
type Crash struct {
	// Open opens the store that is killed. Its limits shall be reached within the test.
	Open Opener
	// Appends is the number of appends that are acknowledged before the first kill, More how many more there are before each
	// following one.
	Appends, More int
	// Compact says that the log, a history.Compacter, is compacted over and over under the appends.
	Compact bool
	// Verify says that the log, a history.Verifier, must verify after each kill.
	Verify bool
	// Damage does to the store in a folder what it has to bear beside the kill; nil is nothing. Rounds count from 0.
	Damage func(t *testing.T, dir string, round int)
}

// Kill ends a process with SIGKILL over and over while it appends. Every record that was acknowledged before is there afterwards, at
// its position, once, and the log goes on (invariant I7 of the hub). Kill returns the folder of the store, which is closed.
//
// The process is the test binary itself, which runs the same test and no other. So Kill is called once in a test, which is no subtest;
// what comes before the call happens in that process too, and what follows it does not.
func Kill(t *testing.T, c Crash) (dir string) {
	t.Helper()
	if dir := os.Getenv(childVariable); dir != "" {
		c.appendForEver(t, dir)
	}
	dir = t.TempDir()
	a := acknowledged{ids: map[history.Position]string{}}
	for round := range crashRounds {
		a.appendAndKill(t, dir, c.Appends+round*c.More)
		if c.Damage != nil {
			c.Damage(t, dir, round)
		}
		a.check(t, c, dir)
	}
	return dir
}

// appendForEver appends from several goroutines and prints the position and id of every acknowledged record, until it is killed. When
// an append fails it panics: that ends the process at once and says why on its standard error.
func (c Crash) appendForEver(t *testing.T, dir string) {
	t.Helper()
	f := opened(t, c.Open, dir)
	ctx := t.Context()
	var wg sync.WaitGroup
	if c.Compact {
		log := capability[history.Compacter](f)
		wg.Go(func() {
			for {
				if _, err := log.Compact(ctx); err != nil {
					panic(err)
				}
			}
		})
	}
	for w := range crashWriters {
		wg.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, n)
				p, err := f.log.Append(ctx, &history.Record{
					ID: id, Topics: []string{"https://example.com/" + strconv.Itoa(w), "https://example.com/all"},
					Event: fmt.Appendf(nil, "data: %s\n\n", strings.Repeat(id, 1+n%20)),
				})
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
	wg.Wait()
}

// acknowledged is what processes have said before they were killed.
type acknowledged struct {
	ids  map[history.Position]string // but for those that were trimmed
	last history.Position
}

// appendAndKill lets a child append until it has acknowledged so many records, and kills it.
func (a *acknowledged) appendAndKill(t *testing.T, dir string, count int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self(t), onlyTest(t))
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
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
			said := []string{lines.Text()}
			for len(said) < 20 && lines.Scan() { // what a test that fails prints
				said = append(said, lines.Text())
			}
			t.Fatalf("the child says %q", said)
		}
		if other, ok := a.ids[history.Position(p)]; ok {
			t.Errorf("position %d was given to %s and to %s", p, other, id)
		}
		a.ids[history.Position(p)] = id
		a.last = max(a.last, history.Position(p))
		if seen++; seen == count {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || seen < count {
		t.Fatalf("the child ended with %v after %d records", err, seen)
	}
}

// check opens the store and looks for everything that was acknowledged.
func (a *acknowledged) check(t *testing.T, c Crash, dir string) {
	t.Helper()
	f := opened(t, c.Open, dir)
	defer f.close()
	h := f.head()
	if h.Last < a.last {
		t.Fatalf("Head() = %+v, want at least %d", h, a.last)
	}
	entries := f.replayPage()
	if len(entries) != int(h.Last-h.First+1) {
		t.Fatalf("Replay() = %d entries, want %d", len(entries), h.Last-h.First+1)
	}
	for i, e := range entries {
		if want := h.First + history.Position(i); e.Position != want {
			t.Fatalf("position %d follows %d", e.Position, want-1)
		}
		if id, ok := a.ids[e.Position]; ok && id != e.ID {
			t.Errorf("position %d bears %s, and %s was acknowledged there", e.Position, e.ID, id)
		}
		f.wantSeek(e.ID, e.Position)
	}
	if c.Verify {
		if v, err := capability[history.Verifier](f).Verify(f.context()); err != nil || v.Events < int64(len(entries)) {
			t.Errorf("Verify() = %+v, %v, want %d events", v, err, len(entries))
		}
	}
	for p := range a.ids {
		if p < h.First {
			delete(a.ids, p) // trimmed
		}
	}
}

// opened is the store in a folder, which the caller closes.
func opened(t *testing.T, open Opener, dir string) *fixture {
	t.Helper()
	log, err := open(t.Context(), dir)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	return &fixture{t: t, log: log}
}

func (f *fixture) close() {
	f.t.Helper()
	if err := f.log.Close(); err != nil {
		f.t.Errorf("Close() = %v", err)
	}
}

// replayPage reads everything as one page.
func (f *fixture) replayPage() []history.Entry {
	f.t.Helper()
	page, err := f.log.Replay(f.context(), history.Query{MaxBytes: 1 << 30})
	if err != nil {
		f.t.Fatalf("Replay() = %v", err)
	}
	return page.Entries
}

// self is the path of the test binary.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// onlyTest is the flag with which the test binary runs this test and no other one.
func onlyTest(t *testing.T) string {
	t.Helper()
	return "-test.run=^" + regexp.QuoteMeta(t.Name()) + "$"
}
