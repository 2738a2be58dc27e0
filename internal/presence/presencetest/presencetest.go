// Package presencetest is the contract of package presence as a test suite. Every implementation of presence.Directory runs it against itself:
//
//	func TestContract(t *testing.T) {
//		presencetest.Run(t, func(t *testing.T) presencetest.Store { ... })
//	}
//
// It checks what is kept, who reaps it and how often, that batches are kept as wholes, and concurrency, contexts and closing. Run it with the race
// detector too. What survives a kill, damage or a full disk depends on where an implementation keeps things, and is tested beside it.
package presencetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

// patience is how long a step may take before the suite calls it stuck.
const patience = 30 * time.Second

// Store is a new directory without subscribers.
type Store struct {
	// Directory is the directory. The suite closes it, also when it has been reopened.
	Directory presence.Directory
	// Reopen opens the same store as the next process of the node does. The suite has closed the directory before, and whoever put
	// subscribers by then counts as gone when Reopen returns.
	Reopen func(t *testing.T) presence.Directory
}

// Run runs the suite. open is called once per test, with that test's t.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	s := suite{open: open}
	t.Run("keep", s.testKeep)
	t.Run("reap", s.testReap)
	t.Run("remove", s.testRemove)
	t.Run("lifecycle", s.testLifecycle)
	t.Run("concurrency", s.testConcurrency)
}

type suite struct {
	open func(*testing.T) Store
}

// fixture is an open directory.
type fixture struct {
	t     *testing.T
	store Store
	dir   presence.Directory
}

func (s *suite) fixture(t *testing.T) *fixture {
	t.Helper()
	store := s.open(t)
	f := &fixture{t: t, store: store, dir: store.Directory}
	t.Cleanup(f.close)
	return f
}

// close closes the directory, which may be closed already.
func (f *fixture) close() {
	f.t.Helper()
	if err := f.dir.Close(); err != nil {
		f.t.Errorf("Close() = %v", err)
	}
}

// reopen goes on as the next process.
func (f *fixture) reopen() {
	f.t.Helper()
	f.close()
	f.dir = f.store.Reopen(f.t)
}

// context returns a context that ends when a step is stuck.
func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	f.t.Cleanup(cancel)
	return ctx
}

func (f *fixture) put(subscribers ...presence.Subscriber) {
	f.t.Helper()
	if err := f.dir.Put(f.context(), subscribers); err != nil {
		f.t.Fatalf("Put() = %v", err)
	}
}

func (f *fixture) remove(subscribers ...presence.Subscriber) {
	f.t.Helper()
	if err := f.dir.Remove(f.context(), ids(subscribers)); err != nil {
		f.t.Fatalf("Remove() = %v", err)
	}
}

// reap reaps once, and checks the limit.
func (f *fixture) reap(limit int) []presence.Subscriber {
	f.t.Helper()
	got, err := f.dir.Reap(f.context(), limit)
	if err != nil {
		f.t.Fatalf("Reap(%d) = %v", limit, err)
	}
	if len(got) > max(limit, 1) {
		f.t.Fatalf("Reap(%d) = %d subscribers", limit, len(got))
	}
	return got
}

// reapAll reaps until there are no more.
func (f *fixture) reapAll(limit int) []presence.Subscriber {
	f.t.Helper()
	var all []presence.Subscriber
	for {
		got := f.reap(limit)
		if len(got) == 0 {
			return all
		}
		all = append(all, got...)
	}
}

// wantReaped checks that exactly these are there to be reaped, in any order.
func (f *fixture) wantReaped(want ...presence.Subscriber) {
	f.t.Helper()
	diff(f.t, want, f.reapAll(1000))
}

// diff compares subscribers in any order.
func diff(t *testing.T, want, got []presence.Subscriber) {
	t.Helper()
	if d := cmp.Diff(sorted(want), sorted(got)); d != "" {
		t.Errorf("Reap() (-want +got):\n%s", d)
	}
}

func sorted(subscribers []presence.Subscriber) []presence.Subscriber {
	c := append([]presence.Subscriber{}, subscribers...)
	slices.SortFunc(c, func(a, b presence.Subscriber) int { return strings.Compare(a.ID, b.ID) })
	return c
}

// subscriber makes a subscriber whose parts tell which one it is.
func subscriber(n int) presence.Subscriber {
	s := presence.Subscriber{ID: fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-%012d", n)}
	for i := range 1 + n%3 {
		sub := presence.Subscription{MatchType: "Exact", Match: fmt.Sprintf("https://example.com/%d/%d", n, i)}
		if n%2 == 0 {
			sub.Payload = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))
		}
		s.Subscriptions = append(s.Subscriptions, sub)
	}
	return s
}

// subscribers makes those from first on.
func subscribers(first, count int) []presence.Subscriber {
	all := make([]presence.Subscriber, count)
	for i := range all {
		all[i] = subscriber(first + i)
	}
	return all
}

func ids(subscribers []presence.Subscriber) []string {
	all := make([]string, len(subscribers))
	for i := range subscribers {
		all[i] = subscribers[i].ID
	}
	return all
}
