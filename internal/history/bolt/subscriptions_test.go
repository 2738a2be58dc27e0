package bolt_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
)

// event makes a subscription event.
func event(n int) *history.Record {
	return &history.Record{
		ID: fmt.Sprint("event-", n), Topics: []string{fmt.Sprint("/.well-known/mercure/subscriptions/exact/t/", n)},
		Private: true, Subscription: true, Event: fmt.Appendf(nil, "data: %0400d\n\n", n),
	}
}

// mixedStore makes a store with so many updates, and a subscription event before each, and closes it.
func mixedStore(t *testing.T, o bolt.Options, count int) bolt.Options {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "history")
	log := mustOpen(t, o)
	for n := range count {
		mustAppend(t, log, event(n), record(n))
	}
	mustClose(t, log)
	return o
}

func mustAppend(t *testing.T, log history.Log, records ...*history.Record) {
	t.Helper()
	if _, err := log.Append(t.Context(), records...); err != nil {
		t.Fatalf("Append() = %v", err)
	}
}

// ids returns the ids of what follows the position.
func ids(t *testing.T, log history.Log, after history.Position) []string {
	t.Helper()
	page, err := log.Replay(t.Context(), history.Query{After: after, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatalf("Replay(after %d) = %v", after, err)
	}
	var all []string
	for _, e := range page.Entries {
		all = append(all, e.ID)
	}
	return all
}

// wantCounts checks the numbers of the log, in its statistics and by verifying it.
func wantCounts(t *testing.T, log *bolt.Log, updates, events int64) {
	t.Helper()
	s, err := log.Stats(t.Context())
	if err != nil || s.Events != updates || s.SubscriptionEvents != events {
		t.Errorf("Stats() = %+v, %v, want %d updates and %d subscription events", s, err, updates, events)
	}
	if v, err := log.Verify(t.Context()); err != nil || v.Events != updates+events || v.Bytes != s.Bytes {
		t.Errorf("Verify() = %+v, %v, want %d entries of %d bytes", v, err, updates+events, s.Bytes)
	}
}

// Whatever is appended, in whatever company, the newest updates stay, and the newest subscription events after the last update that is gone.
func TestRetention_model(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		o := bolt.Options{
			Dir:       filepath.Join(dir, strconv.Itoa(n)),
			MaxEvents: rapid.IntRange(1, 12).Draw(t, "updates"), MaxSubscriptionEvents: rapid.IntRange(1, 12).Draw(t, "events"),
		}
		log, err := bolt.Open(rapidContext(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = log.Close() }()
		var all []*history.Record
		for range rapid.IntRange(1, 12).Draw(t, "appends") {
			var together []*history.Record
			for _, subscription := range rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "kinds") {
				r := record(len(all) + len(together))
				r.Subscription = subscription
				together = append(together, r)
			}
			if _, err := log.Append(rapidContext(), together...); err != nil {
				t.Fatal(err)
			}
			all = append(all, together...)
			if rapid.IntRange(0, 5).Draw(t, "reopen") == 0 {
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				if log, err = bolt.Open(rapidContext(), o); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := log.Compact(rapidContext()); err != nil { // trims what may be left over
			t.Fatal(err)
		}
		want := retained(all, o)
		page, err := log.Replay(rapidContext(), history.Query{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range page.Entries {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v are left, want %v", got, want)
		}
		if v, err := log.Verify(rapidContext()); err != nil || v.Events != int64(len(want)) {
			t.Errorf("Verify() = %+v, %v", v, err)
		}
	})
}

// retained returns the ids of what the limits leave.
func retained(all []*history.Record, o bolt.Options) []string {
	updates, events := 0, 0
	var kept []string
	for _, r := range slices.Backward(all) {
		switch {
		case r.Subscription:
			if events++; events > o.MaxSubscriptionEvents {
				continue
			}
		case updates == o.MaxEvents:
			slices.Reverse(kept)
			return kept
		default:
			updates++
		}
		kept = append(kept, r.ID)
	}
	slices.Reverse(kept)
	return kept
}

// A position whose neighbours have gone as subscription events is a position like any other; one before an update that is gone is gone. That does
// not change when the log is opened again.
func TestReplay_afterWhatHasGone(t *testing.T) {
	o := bolt.Options{Dir: t.TempDir(), MaxEvents: 4, MaxSubscriptionEvents: 2}
	log := mustOpen(t, o)
	for n := range 5 { // positions 1 to 5
		mustAppend(t, log, event(n))
	}
	for n := range 3 { // 6 to 8
		mustAppend(t, log, record(n))
	}
	check := func(gone history.Position, want []string) {
		t.Helper()
		for range 2 {
			h, err := log.Head(t.Context())
			if err != nil || h.First != gone+1 {
				t.Errorf("Head() = %+v, %v, want first %d", h, err, gone+1)
			}
			for after := range gone {
				_, err := log.Replay(t.Context(), history.Query{After: after})
				if want := after != 0; errors.Is(err, history.ErrPositionGone) != want {
					t.Errorf("Replay(after %d) = %v, want ErrPositionGone: %t", after, err, want)
				}
			}
			if got := ids(t, log, 0); !slices.Equal(got, want) {
				t.Errorf("%v are left, want %v", got, want)
			}
			if got := ids(t, log, max(gone, 1)); !slices.Equal(got, want) {
				t.Errorf("%v follow position %d, want %v", got, max(gone, 1), want)
			}
			mustClose(t, log)
			log = mustOpen(t, o)
		}
	}
	check(0, []string{"event-3", "event-4", "id-0", "id-1", "id-2"})
	mustAppend(t, log, event(9), record(3), record(4)) // 9 to 11
	check(6, []string{"id-1", "id-2", "event-9", "id-3", "id-4"})
	if _, err := log.Seek(t.Context(), "event-4"); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("Seek() = %v, want ErrUnknownID", err)
	}
	wantCounts(t, log, 4, 1)
	mustClose(t, log)
}

// A limit that was lowered is applied bit by bit, and at once by Compact; what is read alone stays as it is.
func TestSubscriptions_loweredLimit(t *testing.T) {
	o := mixedStore(t, bolt.Options{}, 700)
	o.MaxSubscriptionEvents = 10
	o.ReadOnly = true
	log := mustOpen(t, o)
	wantCounts(t, log, 700, 700)
	mustClose(t, log)
	o.ReadOnly = false
	log = mustOpen(t, o)
	defer mustClose(t, log)
	if _, err := log.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, log, 700, 10)
	mustAppend(t, log, event(700))
	wantCounts(t, log, 700, 10)
	if _, err := log.Seek(t.Context(), "event-690"); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("Seek() = %v, want ErrUnknownID", err)
	}
	if p, err := log.Seek(t.Context(), "event-691"); err != nil || p != 2*691+1 {
		t.Errorf("Seek() = %d, %v", p, err)
	}
}

// A storm of subscription events takes no more of the file than their limit, and pushes out no update.
func TestSubscriptions_giveBackSpace(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), MaxBytes: 1 << 20, MaxSubscriptionEvents: 200}
	log := mustOpen(t, o)
	defer mustClose(t, log)
	const updates = 500
	for n := range updates { // scattered among three times their own size of events
		mustAppend(t, log, event(3*n), event(3*n+1), event(3*n+2), record(n))
	}
	for n := 3 * updates; n < 10_000; n += 100 {
		var together []*history.Record
		for i := range 100 {
			together = append(together, event(n+i))
		}
		mustAppend(t, log, together...)
	}
	wantCounts(t, log, updates, 200)
}

// Copies and compacted stores have the same entries.
func TestSubscriptions_backup(t *testing.T) {
	o := mixedStore(t, bolt.Options{MaxSubscriptionEvents: 30}, 100)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	want := ids(t, log, 0)
	if _, err := log.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, log, 100, 30)
	files := copied{}
	if err := log.Backup(t.Context(), files.create); err != nil {
		t.Fatalf("Backup() = %v", err)
	}
	restored := mustOpen(t, bolt.Options{Dir: files.write(t), MaxSubscriptionEvents: 30})
	defer mustClose(t, restored)
	for _, l := range []*bolt.Log{log, restored} {
		if got := ids(t, l, 0); !slices.Equal(got, want) {
			t.Errorf("%v are left, want %v", got, want)
		}
		mustAppend(t, l, event(1000))
		wantCounts(t, l, 100, 30)
	}
}

// A store that was made when there were no subscription events is one that has none.
func TestOpen_withoutSubscriptions(t *testing.T) {
	for name, limit := range map[string]int{"with all entries": 0, "trimmed": 20, "empty": -1} {
		t.Run(name, func(t *testing.T) {
			dir, want := filepath.Join(t.TempDir(), "history"), int64(max(limit, 0))
			log := mustOpen(t, bolt.Options{Dir: dir, MaxEvents: max(limit, 0)})
			if limit >= 0 {
				fill(t, log, 0, 50)
			}
			mustClose(t, log)
			if limit == 0 {
				want = 50
			}
			change(t, dir, func(tx *bbolt.Tx) error {
				meta := tx.Bucket([]byte("meta"))
				state := slices.Clone(meta.Get([]byte("state"))[:32])
				if got := binary.BigEndian.Uint64(state[24:]); got != uint64(want) {
					t.Errorf("the state ends with %d, want the number of entries, %d", got, want)
				}
				return errors.Join(tx.DeleteBucket([]byte("subscriptions")), meta.Put([]byte("state"), state))
			})
			o := bolt.Options{Dir: dir, MaxSubscriptionEvents: 3, ReadOnly: true}
			log = mustOpen(t, o)
			wantCounts(t, log, want, 0)
			mustClose(t, log)
			o.ReadOnly = false
			log = mustOpen(t, o)
			mustAppend(t, log, record(100))
			wantCounts(t, log, want+1, 0)
			if _, err := log.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			for n := range 5 {
				mustAppend(t, log, event(n), record(200+n))
			}
			for range 2 {
				wantCounts(t, log, want+6, 3)
				mustClose(t, log)
				log = mustOpen(t, o)
			}
			mustClose(t, log)
		})
	}
}

// Verify compares the bucket of the subscription events with everything else.
func TestVerify_subscriptions(t *testing.T) {
	key := func(p byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, p} }
	move := func(from, to string, p byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(from))
			v := slices.Clone(b.Get(key(p)))
			return errors.Join(b.Delete(key(p)), tx.Bucket([]byte(to)).Put(key(p), v))
		}
	}
	for name, c := range map[string]struct {
		damage func(tx *bbolt.Tx) error
		want   string
	}{
		"an event is missing": {func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("subscriptions")).Delete(key(7))
		}, "record 7: an index has it, and it is missing"},
		"an event among the updates": {move("subscriptions", "entries", 7), "record 7: it is in the wrong bucket"},
		"an update among the events": {move("entries", "subscriptions", 8), "record 8: it is in the wrong bucket"},
		"an event in the place of an update": {func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("subscriptions"))
			return b.Put(key(8), slices.Clone(b.Get(key(7))))
		}, "record 8: wrong checksum"},
		"a number that is wrong": {func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			state := slices.Clone(meta.Get([]byte("state")))
			state[39]-- // of subscription events
			state[31]++ // of updates
			return meta.Put([]byte("state"), state)
		}, "20 updates and 20 subscription events"},
	} {
		t.Run(name, func(t *testing.T) {
			o := mixedStore(t, bolt.Options{}, 20)
			change(t, o.Dir, c.damage)
			log := mustOpen(t, o)
			defer mustClose(t, log)
			wantCorrupt(t, "Verify()", second(log.Verify(t.Context())), c.want)
		})
	}
}

// The ends of a store are compared with its state, of both kinds of entries.
func TestOpen_subscriptionEnds(t *testing.T) {
	key := func(p byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, p} }
	for name, damage := range map[string]func(tx *bbolt.Tx) error{
		"the oldest is missing":  func(tx *bbolt.Tx) error { return tx.Bucket([]byte("subscriptions")).Delete(key(1)) },
		"the newest is missing":  func(tx *bbolt.Tx) error { return tx.Bucket([]byte("entries")).Delete(key(40)) },
		"the oldest is damaged":  func(tx *bbolt.Tx) error { return tx.Bucket([]byte("subscriptions")).Put(key(1), []byte("x")) },
		"all events are missing": func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("subscriptions")) },
	} {
		t.Run(name, func(t *testing.T) {
			o := mixedStore(t, bolt.Options{}, 20)
			change(t, o.Dir, damage)
			wantCorrupt(t, "Open()", second(bolt.Open(t.Context(), o)), "")
		})
	}
}
