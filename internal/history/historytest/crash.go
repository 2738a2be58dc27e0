package historytest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
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
	// Events is the limit by number of subscription events in it.
	Events int
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

// Kill ends a process with SIGKILL over and over while it appends updates and subscription events, alone and several at once. Every record that
// was acknowledged before is there afterwards, at its position, once, but for what its limits have taken; of an Append that was not, all
// is there or nothing; and the log goes on (invariant I7 of the hub). Kill returns the folder of the store, which is closed.
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

// appendForEver appends from several goroutines and prints the last position and the name of every acknowledged append, until it is killed. When
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
				a := killedAppend{name: fmt.Sprintf("%d-%d-%d", os.Getpid(), w, n), count: 1 + 2*(n%3)}
				if n%3 == 2 {
					a.name += killedEvents
				}
				p, err := f.log.Append(ctx, a.records(w, n)...)
				if err != nil {
					panic(err)
				}
				// One write per line: a line is there or it is not.
				if _, err := fmt.Fprintf(os.Stdout, "%d %s/%d\n", p, a.name, a.count); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
}

// killedEvents ends the name of an append of subscription events.
const killedEvents = "-events"

// killedAppend is an append of so many records, whose ids tell which one of them each is.
type killedAppend struct {
	name  string
	count int
}

// id is that of record i.
func (a killedAppend) id(i int) string { return fmt.Sprintf("%s/%d/%d", a.name, a.count, i) }

func (a killedAppend) records(writer, n int) []*history.Record {
	all := make([]*history.Record, a.count)
	for i := range all {
		all[i] = &history.Record{
			ID: a.id(i), Topics: []string{"https://example.com/" + strconv.Itoa(writer), "https://example.com/all"},
			Subscription: strings.HasSuffix(a.name, killedEvents),
			Event:        fmt.Appendf(nil, "data: %s\n\n", strings.Repeat(a.id(i), 1+n%20)),
		}
	}
	return all
}

// parseKilled reads what an id, or a line without the number of a record, says.
func parseKilled(id string) (a killedAppend, record int, ok bool) {
	parts := strings.Split(id+"/0", "/")
	if len(parts) < 3 {
		return a, 0, false
	}
	count, err := strconv.Atoi(parts[1])
	record, failed := strconv.Atoi(parts[2])
	return killedAppend{name: parts[0], count: count}, record, err == nil && failed == nil && count > 0
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
		position, name, _ := strings.Cut(lines.Text(), " ")
		p, err := strconv.ParseUint(position, 10, 64)
		appended, _, ok := parseKilled(name)
		if !ok || err != nil {
			said := []string{lines.Text()}
			for len(said) < 20 && lines.Scan() { // what a test that fails prints
				said = append(said, lines.Text())
			}
			t.Fatalf("the child says %q", said)
		}
		first := history.Position(p) + 1 - history.Position(appended.count)
		for i := range appended.count {
			at, id := first+history.Position(i), appended.id(i)
			if other, ok := a.ids[at]; ok {
				t.Errorf("position %d was given to %s and to %s", at, other, id)
			}
			a.ids[at] = id
		}
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
	there := make(map[history.Position]string, len(entries))
	events := 0
	for i, e := range entries {
		if i > 0 && e.Position <= entries[i-1].Position || e.Position < h.First || e.Position > h.Last {
			t.Fatalf("position %d is out of order in %d to %d", e.Position, h.First, h.Last)
		}
		if id, ok := a.ids[e.Position]; ok && id != e.ID {
			t.Errorf("position %d bears %s, and %s was acknowledged there", e.Position, e.ID, id)
		}
		there[e.Position] = e.ID
	}
	for _, e := range slices.Backward(entries) {
		if e.Subscription {
			events++
		}
		if !e.Subscription || events <= c.Events { // others may go at any time
			f.wantSeek(e.ID, e.Position)
		}
	}
	for _, e := range entries { // limits take the first records of an append before the last
		if appended, i, ok := parseKilled(e.ID); !ok || i < appended.count-1 && there[e.Position+1] != appended.id(i+1) {
			t.Errorf("%s is at %d, and after it %q", e.ID, e.Position, there[e.Position+1])
		}
	}
	for p, id := range a.ids {
		if _, ok := there[p]; !ok && p >= h.First && (!strings.Contains(id, killedEvents) || events < c.Events) {
			t.Errorf("%s was acknowledged at %d and is lost; %d events are there", id, p, events)
		}
	}
	if c.Verify {
		if v, err := capability[history.Verifier](f).Verify(f.context()); err != nil || v.Events < int64(len(entries)) {
			t.Errorf("Verify() = %+v, %v, want %d events", v, err, len(entries))
		}
	}
	for p := range a.ids {
		if _, ok := there[p]; !ok {
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
