package bolt_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
)

// exercise does everything with a store and returns the errors.
func exercise(ctx context.Context, dir string, readOnly bool) error {
	log, err := bolt.Open(ctx, bolt.Options{Dir: dir, ReadOnly: readOnly})
	if err != nil {
		return err
	}
	var errs []error
	_, err = log.Verify(ctx)
	errs = append(errs, err)
	for _, s := range []history.Selection{{}, {Exact: record(3).Topics}, {Pattern: func(t string) bool { return strings.HasSuffix(t, "/7") }}} {
		for after := history.Position(0); ; {
			page, err := log.Replay(ctx, history.Query{After: after, Select: s})
			errs = append(errs, err)
			if err != nil || page.Through == after {
				break
			}
			after = page.Through
		}
	}
	for n := range 50 {
		if _, err := log.Seek(ctx, record(n*7).ID); !errors.Is(err, history.ErrUnknownID) {
			errs = append(errs, err)
		}
	}
	_, err = log.Stats(ctx)
	errs = append(errs, err)
	if !readOnly {
		for n := range 3 {
			_, err = log.Append(ctx, record(10_000+n))
			errs = append(errs, err)
		}
		_, err = log.Compact(ctx)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, log.Close())...)
}

// wantNoPanic checks that damage is an error that says so, if anything notices it at all.
func wantNoPanic(t *testing.T, dir, what string) (noticed bool) {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		err := exercise(t.Context(), dir, readOnly)
		if err == nil {
			continue
		}
		noticed = true
		if !errors.Is(err, history.ErrCorrupt) && !errors.Is(err, history.ErrForeignFile) && !errors.Is(err, history.ErrNewerFormat) {
			t.Errorf("%s: %v, want ErrCorrupt", what, err)
		}
	}
	return noticed
}

// A file that was cut off, as by a copy that was not finished, is refused.
func TestDamage_cutOff(t *testing.T) {
	t.Parallel()
	dir := store(t, 2000)
	path := filepath.Join(dir, "history.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(whole)
	for used > 0 && whole[used-1] == 0 { // the file is made larger than it has to be
		used--
	}
	for size := 1; size < used; size += 1 + size/2 {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if !wantNoPanic(t, dir, "cut off") {
			t.Errorf("nothing is wrong with the first %d bytes of %d", size, used)
		}
	}
}

// Whatever pages hold, nothing panics, faults or hangs.
func TestDamage_pages(t *testing.T) {
	t.Parallel()
	dir := mixedStore(t, bolt.Options{MaxSubscriptionEvents: 200}, 700).Dir
	path := filepath.Join(dir, "history.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	used := len(whole)
	for used > 0 && whole[used-1] == 0 {
		used--
	}
	used = (used + page - 1) / page * page
	r := rand.New(rand.NewPCG(1, 2))
	noticed := 0
	const rounds = 80
	for range rounds {
		damaged := append([]byte(nil), whole...)
		at := r.IntN(used/page) * page
		switch r.IntN(4) {
		case 0: // a page that was never written
			clear(damaged[at : at+page])
		case 1: // one that went somewhere else
			copy(damaged[at:at+page], whole[r.IntN(used/page)*page:])
		case 2: // one that is half old
			for i := at + 512*(1+r.IntN(6)); i < at+page; i++ {
				damaged[i] = byte(r.Uint32())
			}
		case 3: // a bit
			damaged[at+r.IntN(page)] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if wantNoPanic(t, dir, "a damaged page") {
			noticed++
		}
	}
	if noticed < rounds/3 {
		t.Errorf("damage was noticed %d times of %d", noticed, rounds)
	}
}

// Verify finds what only a comparison of records and indexes shows, and says where.
func TestVerify(t *testing.T) {
	position := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	first := func(b *bbolt.Bucket) []byte { k, _ := b.Cursor().First(); return k }
	for name, c := range map[string]struct {
		damage func(tx *bbolt.Tx) error
		want   string // in the error; empty for none
	}{
		"nothing": {func(*bbolt.Tx) error { return nil }, ""},
		"a record changed": {func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("entries"))
			v := append([]byte(nil), b.Get(position(7))...)
			v[len(v)-3]++
			return b.Put(position(7), v)
		}, "record 7: wrong checksum"},
		"records changed places": {func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("entries"))
			return b.Put(position(7), append([]byte(nil), b.Get(position(8))...))
		}, "record 7: wrong checksum"},
		"a record too short": {func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("entries")).Put(position(9), []byte("x"))
		}, "record 9: record too short"},
		"a record is missing": {func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("entries")).Delete(position(10))
		}, "record 10: an index has it, and it is missing"},
		"an id is missing": {func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("ids"))
			return b.Delete(first(b))
		}, "the index of ids lacks it"},
		"a topic is missing": {func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("topics"))
			return b.Delete(first(b))
		}, "the index of topics lacks it"},
		"an id too many": {func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("ids")).Put(append([]byte("somebody"), position(4)...), nil)
		}, "record 4: the index of ids has it under another key"},
		"a topic too many": {func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("topics")).Put(append([]byte("nhttps://example.com\x00\x01"), position(4)...), nil)
		}, "record 4: the index of topics has it under another key"},
		"an id of no record": {func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("ids")).Put(append([]byte("somebody"), position(200)...), nil)
		}, "record 200: an index has it, and it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := store(t, 30)
			change(t, dir, c.damage)
			log := mustOpen(t, bolt.Options{Dir: dir})
			defer mustClose(t, log)
			got, err := log.Verify(t.Context())
			if c.want == "" {
				s, failed := log.Stats(t.Context())
				if err != nil || failed != nil || got.Events != 30 || got.Bytes != s.Bytes || got.Segments != 1 || got.Indexes != 2 {
					t.Errorf("Verify() = %+v, %v, want the numbers of %+v, %v", got, err, s, failed)
				}
				return
			}
			wantCorrupt(t, "Verify()", err, c.want)
		})
	}
}

// A store whose ends are not where they should be is not opened.
func TestOpen_ends(t *testing.T) {
	position := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	for name, damage := range map[string]func(tx *bbolt.Tx) error{
		"the newest is missing": func(tx *bbolt.Tx) error { return tx.Bucket([]byte("entries")).Delete(position(30)) },
		"the oldest is missing": func(tx *bbolt.Tx) error { return tx.Bucket([]byte("entries")).Delete(position(1)) },
		"the oldest is damaged": func(tx *bbolt.Tx) error { return tx.Bucket([]byte("entries")).Put(position(1), []byte("x")) },
		"all are missing": func(tx *bbolt.Tx) error {
			return errors.Join(tx.DeleteBucket([]byte("entries")), second(tx.CreateBucket([]byte("entries"))))
		},
		"a bucket is missing": func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("ids")) },
		"no state":            func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("state")) },
		"no hash key":         func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("hash key")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := store(t, 30)
			change(t, dir, damage)
			if _, err := bolt.Open(t.Context(), bolt.Options{Dir: dir}); !errors.Is(err, history.ErrCorrupt) {
				t.Errorf("Open() = %v, want ErrCorrupt", err)
			}
		})
	}
}

// wantCorrupt checks that an error is history.ErrCorrupt, and what it says.
func wantCorrupt(t *testing.T, what string, err error, text string) {
	t.Helper()
	if !errors.Is(err, history.ErrCorrupt) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s = %v, want ErrCorrupt with %q", what, err, text)
	}
}

func second[T any](_ T, err error) error { return err }
