package segments_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// connect is a subscription event.
func connect(n int) *history.Record {
	return &history.Record{
		ID: fmt.Sprintf("urn:test:%d", n), Private: true, Subscription: true,
		Topics: []string{fmt.Sprintf("/.well-known/mercure/subscriptions/exact/https%%3A%%2F%%2Fexample.com%%2F1/urn%%3Auuid%%3A%d", n)},
		Event:  fmt.Appendf(nil, "data: %0300d\n\n", n),
	}
}

// storm appends so many subscription events, some of them together, and a numbered record before every so many.
func storm(t *testing.T, log *segments.Log, events, stride int) {
	t.Helper()
	const some = 50
	for n := 0; n < events; n += some {
		var together []*history.Record
		if n%stride == 0 {
			together = append(together, numbered(1+n/stride))
		}
		for i := range some {
			together = append(together, connect(n+i))
		}
		if _, err := log.Append(t.Context(), together...); err != nil {
			t.Fatalf("Append() = %v", err)
		}
	}
}

// wantStorm checks that all updates of a storm are there, and the newest subscription events, at least so many and at most so many more.
func wantStorm(t *testing.T, log *segments.Log, events, stride, least, more int) history.Stats {
	t.Helper()
	updates, kept := 0, 0
	err := log.Export(t.Context(), func(s history.Stamped) error {
		want := numbered(updates + 1).ID
		if s.Subscription {
			if kept == 0 {
				if _, err := fmt.Sscanf(s.ID, "urn:test:%d", &kept); err != nil {
					return err
				}
			}
			want = connect(kept).ID
			kept++
		} else {
			updates++
		}
		if s.ID != want {
			return fmt.Errorf("%s where %s should be", s.ID, want)
		}
		return nil
	})
	stats, statsErr := log.Stats(t.Context())
	got := int(stats.SubscriptionEvents)
	if err != nil || statsErr != nil || updates != events/stride || kept != events || got < least || got > least+more || int(stats.Events) != updates {
		t.Errorf("Export() = %v, up to event %d, with %d updates; Stats() = %+v, %v; want %d updates, %d events and at most %d more",
			err, kept, updates, stats, statsErr, events/stride, least, more)
	}
	return stats
}

// A storm of readers who come and go pushes no update out, whatever else reads at the time.
func TestStorm(t *testing.T) {
	t.Parallel()
	const events, stride, keep, segment = 20_000, 1000, 200, 512 << 10
	o := segments.Options{Dir: t.TempDir(), MaxEvents: 8192, MaxSubscriptionEvents: keep, MaxBytes: 8 * segment}
	log := mustOpen(t, o)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 { // so that hardly a moment passes in which no segment is read
		readers.Go(func() {
			for ctx.Err() == nil {
				if _, err := log.Seek(ctx, "none"); !errors.Is(err, history.ErrUnknownID) && ctx.Err() == nil {
					t.Errorf("Seek() = %v", err)
					return
				}
			}
		})
	}
	storm(t, log, events, stride)
	stop()
	readers.Wait()
	mustCompact(t, log)
	stats := wantStorm(t, log, events, stride, keep, 2*segment/500)
	if stats.Bytes > o.MaxBytes {
		t.Errorf("%d bytes, want at most %d", stats.Bytes, o.MaxBytes)
	}
	mustClose(t, log)
	log = mustOpen(t, o)
	defer mustClose(t, log)
	wantStorm(t, log, events, stride, keep, 2*segment/500)
	if _, err := log.Verify(t.Context()); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

// Where a storm holds no update at all, its segments go altogether, and who was in the midst of them can go on.
func TestStorm_eventsAlone(t *testing.T) {
	o := segments.Options{Dir: t.TempDir(), MaxEvents: 8192, MaxSubscriptionEvents: 100}
	log := mustOpen(t, o)
	for n := 0; n < 10_000; n += 50 {
		var together []*history.Record
		for i := range 50 {
			together = append(together, connect(n+i))
		}
		if _, err := log.Append(t.Context(), together...); err != nil {
			t.Fatal(err)
		}
	}
	compactUntil(t, log, func() bool { return len(names(t, o.Dir)) <= 3 })
	page, err := log.Replay(t.Context(), history.Query{After: 5000, MaxBytes: 1 << 30})
	if n := len(page.Entries); err != nil || n < 100 || n > 3*1024 || page.Entries[n-1].ID != connect(9999).ID {
		t.Errorf("Replay() = %d entries, %v after one that has gone with its segment", n, err)
	}
	got := 0
	err = log.Export(t.Context(), func(history.Stamped) error { got++; return nil })
	if err != nil || got != len(page.Entries) {
		t.Errorf("Export() = %v with %d entries, want %d", err, got, len(page.Entries))
	}
	mustClose(t, log)
}

// hollowed returns a closed store with hollow segments and others.
func hollowed(t *testing.T) segments.Options {
	t.Helper()
	o := segments.Options{Dir: filepath.Join(t.TempDir(), "history"), SegmentBytes: 32 << 10, MaxSubscriptionEvents: 100}
	log := mustOpen(t, o)
	storm(t, log, 1000, 100)
	mustCompact(t, log)
	mustClose(t, log)
	if hollow := hollowFiles(t, o.Dir); len(hollow) < 3 {
		t.Fatalf("only %q are hollow", hollow)
	}
	return o
}

func hollowFiles(t *testing.T, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, dir), func(name string) bool { return !strings.Contains(name, ".hollow") })
}

func TestHollow_files(t *testing.T) {
	const more = 2 * (32 << 10) / 500
	check := func(t *testing.T, o segments.Options) {
		t.Helper()
		log := mustOpen(t, o)
		wantStorm(t, log, 1000, 100, 100, more)
		if v, err := log.Verify(t.Context()); err != nil || v.Segments == 0 {
			t.Errorf("Verify() = %+v, %v", v, err)
		}
		if _, err := log.Seek(t.Context(), ""); !errors.Is(err, history.ErrUnknownID) {
			t.Errorf("Seek() of nothing = %v", err)
		}
		mustClose(t, log)
	}
	t.Run("are what is left", func(t *testing.T) {
		o := hollowed(t)
		check(t, o)
		for _, name := range hollowFiles(t, o.Dir) {
			if info, err := os.Stat(name); err != nil || info.Size() > 8<<10 {
				t.Errorf("Stat() = %+v, %v, want a small file", info, err)
			}
		}
	})
	t.Run("have indexes as the documentation says", func(t *testing.T) {
		o := hollowed(t)
		hollow, all := hollowFiles(t, o.Dir), names(t, o.Dir)
		wantCounts(t, hollow[0], false)
		wantCounts(t, all[len(hollow)], true)
	})
	t.Run("without indexes", func(t *testing.T) {
		for _, readOnly := range []bool{true, false} {
			o := hollowed(t)
			for _, name := range indexFiles(t, o.Dir) {
				remove(t, name)
			}
			o.ReadOnly = readOnly
			check(t, o)
		}
	})
	t.Run("are read only", func(t *testing.T) {
		o := hollowed(t)
		before := snapshot(t, o.Dir)
		o.ReadOnly = true
		check(t, o)
		if after := snapshot(t, o.Dir); !maps.Equal(before, after) {
			t.Error("the store has changed")
		}
	})
	t.Run("take the place of others", func(t *testing.T) {
		o := hollowed(t)
		name := hollowFiles(t, o.Dir)[1]
		old, index := strings.Replace(name, ".hollow", "", 1), strings.Replace(strings.Replace(name, ".hollow", "", 1), ".seg", ".idx", 1)
		writeFile(t, old, []byte("as a crash leaves it"))
		writeFile(t, index, []byte("and its index"))
		o.ReadOnly = true
		check(t, o)
		if got := readFile(t, old); len(got) == 0 {
			t.Error("the old file was changed when opened for reading alone")
		}
		o.ReadOnly = false
		check(t, o)
		for _, file := range []string{old, index} {
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Stat() = %v of %s", err, file)
			}
		}
	})
	t.Run("are never the last", func(t *testing.T) {
		o := hollowed(t)
		for _, name := range names(t, o.Dir) {
			if !strings.Contains(name, ".hollow") {
				remove(t, name)
			}
		}
		wantRefused(t, o, history.ErrCorrupt)
	})
	t.Run("are damaged", func(t *testing.T) {
		o := hollowed(t)
		name := hollowFiles(t, o.Dir)[0]
		b := readFile(t, name)
		b[headerSize+recordSize+40] ^= 1 // in a hollow record
		writeFile(t, name, b)
		wantDamaged(t, o, name)
	})
	t.Run("are missing", func(t *testing.T) {
		o := hollowed(t)
		remove(t, hollowFiles(t, o.Dir)[1])
		wantRefused(t, o, history.ErrCorrupt)
	})
}

// wantCounts checks what the index of a segment of a storm says about its subscription events, and with it the header of the next segment.
func wantCounts(t *testing.T, name string, whole bool) {
	t.Helper()
	seg, b := readFile(t, name), readFile(t, strings.TrimSuffix(name, ".seg")+".idx")
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	count, events, spare, ids := uint32(0), uint32(0), uint32(0), uint32(0)
	for at := uint32(headerSize); int(at) < len(seg); count++ {
		size := 8 + binary.LittleEndian.Uint32(seg[at:])
		if seg[at+9]&4 != 0 {
			events++
			spare += size - 32
		}
		if size > 32 {
			ids++
		}
		at += size
	}
	if events == 0 || u32(52) != count || u32(108) != events || u32(112) != spare || whole != (spare > 0) || whole != (ids == count) {
		t.Errorf("the index of %s says %d records, %d events and %d bytes, want %d, %d and %d", name, u32(52), u32(108), u32(112), count, events, spare)
	}
	topics := u32(80) + u32(84)
	if want := 128 + 12*ids + 4*count + 8*(topics+1) + u32(88) + u32(92); len(b) != int(want) {
		t.Errorf("the index of %s has %d bytes, want %d", name, len(b), want)
	}
	all := names(t, filepath.Dir(name))
	next := readFile(t, all[slices.Index(all, name)+1])
	if got := binary.LittleEndian.Uint32(next[12:]); got != events {
		t.Errorf("the segment behind %s says that there are %d events before it, want %d", name, got, events)
	}
}

// A copy of a store with hollow segments is such a store.
func TestHollow_backup(t *testing.T) {
	o := hollowed(t)
	log := mustOpen(t, o)
	dir := backup(t, log)
	mustClose(t, log)
	if got, want := len(hollowFiles(t, dir)), len(hollowFiles(t, o.Dir)); got != want {
		t.Errorf("%d segments of the copy are hollow, want %d", got, want)
	}
	o.Dir = dir
	log = mustOpen(t, o)
	defer mustClose(t, log)
	wantStorm(t, log, 1000, 100, 100, 2*(32<<10)/500)
	storm(t, log, 1000, 100)
	mustCompact(t, log)
	if _, err := log.Verify(t.Context()); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

// A segment that becomes hollow before its turn is copied as that, and the older ones with it.
func TestHollow_backupMeanwhile(t *testing.T) {
	o := segments.Options{Dir: t.TempDir(), SegmentBytes: 32 << 10, MaxSubscriptionEvents: 400}
	log := mustOpen(t, o)
	defer mustClose(t, log)
	storm(t, log, 400, 100) // none of which have to go yet
	var c collector
	c.created = func(string) error {
		if len(c.files) > 0 {
			return nil
		}
		for n := range 600 {
			if _, err := log.Append(t.Context(), connect(400+n)); err != nil {
				return err
			}
		}
		mustCompact(t, log)
		if len(hollowFiles(t, o.Dir)) < 2 {
			t.Error("nothing has become hollow meanwhile")
		}
		return nil
	}
	if err := log.Backup(t.Context(), c.create); err != nil {
		t.Fatalf("Backup() = %v", err)
	}
	other := mustOpen(t, segments.Options{Dir: c.folder(t)})
	defer mustClose(t, other)
	s, err := other.Stats(t.Context())
	if err != nil || s.Events != 4 || s.First != 1 || s.Last != 404 {
		t.Errorf("Stats() = %+v, %v of the copy, want all 4 updates of what was there when it began", s, err)
	}
	if _, err := other.Verify(t.Context()); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

// Subscription events do not count for the limit of updates, before and after the store is opened again, with indexes and without.
func TestMaxEvents_besideSubscriptionEvents(t *testing.T) {
	o := segments.Options{Dir: t.TempDir(), MaxEvents: 1100, MaxSubscriptionEvents: 100_000, SegmentBytes: 64 << 10}
	log := mustOpen(t, o)
	for n := 1; n <= 3000; n++ {
		if _, err := log.Append(t.Context(), numbered(n), connect(n)); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		updates := 0
		if err := log.Export(t.Context(), func(s history.Stamped) error {
			if !s.Subscription {
				updates++
			}
			return nil
		}); err != nil || updates < 1100 || updates > 1100+(64<<10)/500 {
			t.Errorf("Export() = %v, with %d updates, want 1100 and at most a segment more", err, updates)
		}
		if s, err := log.Stats(t.Context()); err != nil || s.Events != 1100 {
			t.Errorf("Stats() = %+v, %v", s, err)
		}
	}
	check()
	for _, indexed := range []bool{true, false} {
		mustCompact(t, log)
		mustClose(t, log)
		for _, name := range indexFiles(t, o.Dir) {
			if !indexed {
				remove(t, name)
			}
		}
		log = mustOpen(t, o)
		check()
	}
	mustClose(t, log)
}
