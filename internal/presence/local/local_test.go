package local_test

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/presence/local"
	"github.com/cinnabar-hub/cinnabar/internal/presence/presencetest"
)

func mustOpen(tb testing.TB, path string) *local.Directory {
	tb.Helper()
	d, err := local.Open(local.Options{Path: path})
	if err != nil {
		tb.Fatalf("Open() = %v", err)
	}
	return d
}

func mustClose(tb testing.TB, d *local.Directory) {
	tb.Helper()
	if err := d.Close(); err != nil {
		tb.Fatalf("Close() = %v", err)
	}
}

// subscribers makes those from first on, each with one subscription of a usual size.
func subscribers(first, count int) []presence.Subscriber {
	all := make([]presence.Subscriber, count)
	for i := range all {
		all[i] = presence.Subscriber{
			ID: fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-%012d", first+i),
			Subscriptions: []presence.Subscription{{
				MatchType: "URLPattern", Match: fmt.Sprintf("https://example.com/users/%d/:topic", first+i),
				Payload: json.RawMessage(`{"user":"https://example.com/users/` + strconv.Itoa(first+i) + `","name":"Somebody"}`),
			}},
		}
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

func mustPut(tb testing.TB, d *local.Directory, subscribers []presence.Subscriber) {
	tb.Helper()
	if err := d.Put(tb.Context(), subscribers); err != nil {
		tb.Fatalf("Put() = %v", err)
	}
}

func mustRemove(tb testing.TB, d *local.Directory, subscribers []presence.Subscriber) {
	tb.Helper()
	if err := d.Remove(tb.Context(), ids(subscribers)); err != nil {
		tb.Fatalf("Remove() = %v", err)
	}
}

// reaped reaps everything. They come in the order in which they were put.
func reaped(tb testing.TB, d *local.Directory) []presence.Subscriber {
	tb.Helper()
	var all []presence.Subscriber
	for {
		some, err := d.Reap(tb.Context(), math.MaxInt)
		if err != nil {
			tb.Fatalf("Reap() = %v", err)
		}
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

func wantReaped(tb testing.TB, d *local.Directory, want []presence.Subscriber) {
	tb.Helper()
	got := reaped(tb, d)
	if reflect.DeepEqual(want, got) { // much faster
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		tb.Errorf("Reap() (-want +got):\n%s", diff)
	}
}

// store makes a file with so many subscribers and closes it.
func store(tb testing.TB, count int) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), ".presence.db")
	d := mustOpen(tb, path)
	mustPut(tb, d, subscribers(0, count))
	mustClose(tb, d)
	return path
}

func TestContract(t *testing.T) {
	presencetest.Run(t, func(t *testing.T) presencetest.Store {
		t.Helper()
		path := filepath.Join(t.TempDir(), ".presence.db")
		return presencetest.Store{
			Directory: mustOpen(t, path),
			Reopen:    func(t *testing.T) presence.Directory { t.Helper(); return mustOpen(t, path) },
		}
	})
}

// What a call of Reap gives is bounded by bytes too: a token's payload is kept once for each of a connection's subscriptions.
func TestReap_large(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".presence.db")
	d := mustOpen(t, path)
	var want []presence.Subscriber
	for n := range 12 {
		s := presence.Subscriber{ID: fmt.Sprint("large", n)}
		for range 1 << (n % 4) {
			s.Subscriptions = append(s.Subscriptions, presence.Subscription{MatchType: "exact", Match: "m", Payload: make([]byte, 1<<20)})
		}
		want = append(want, s)
	}
	mustPut(t, d, want)
	mustClose(t, d)
	d = mustOpen(t, path)
	defer mustClose(t, d)
	var got []presence.Subscriber
	for {
		some, err := d.Reap(t.Context(), 256)
		if err != nil {
			t.Fatalf("Reap() = %v", err)
		}
		if len(some) == 0 {
			break
		}
		size := 0
		for i := range some {
			size += len(some[i].Subscriptions) << 20
		}
		if len(some) > 1 && size > 4<<20 {
			t.Errorf("Reap() = %d subscribers with %d bytes of payload", len(some), size)
		}
		got = append(got, some...)
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%d subscribers were reaped, want %d", len(got), len(want))
	}
}
