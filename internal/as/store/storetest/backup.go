package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// testBackup copies a database that others write to, and opens the copy in another place.
func testBackup(t *testing.T, f *fixture) {
	ctx := t.Context()
	f.redeem(t, 1, "r1")
	check(t, "PutClient", f.PutClient(ctx, client(clientID)))
	check(t, "CreateAccount", f.CreateAccount(ctx, account(1)))
	check(t, "SaveKeys", f.SaveKeys(ctx, issuer, 0, []store.Key{key("k")}))
	check(t, "EndSession", endSession(ctx, f, "other sid", epoch()))

	path := filepath.Join(t.TempDir(), "copy.db")
	stop := f.keepWriting(t, 2)
	written := stop.wait(20)
	check(t, "Backup", f.Backup(ctx, path))
	after := stop.wait(20) // goes on
	stop.now()
	if after <= written {
		t.Error("nobody could write after the backup")
	}
	before, err := os.ReadFile(path) //nolint:gosec // a file of the test
	check(t, "read the copy", err)
	want(t, "Backup(to a file that is there)", f.Backup(ctx, path), fs.ErrExist)
	now, err := os.ReadFile(path) //nolint:gosec // a file of the test
	check(t, "read the copy", err)
	if !bytes.Equal(before, now) {
		t.Error("a backup that was refused changed the file that was there")
	}
	for range 3 {
		_, err = f.Revoke(ctx, revocation(store.RevokeToken, "after the backup"))
		check(t, "Revoke", err)
	}
	f.clock.advance(time.Second) // a restore takes a while
	testRestored(t, f, restore(t, f.open, f.file, path, f.clock.Now), written)
	testNoBackup(t, f)
}

// testRestored checks the copy, which is to hold what was acknowledged before the backup: the first tokens too.
func testRestored(t *testing.T, f *fixture, copied store.Store, written int64) {
	t.Helper()
	ctx := t.Context()
	check(t, "Ready", copied.Ready(ctx))
	for n := range written {
		_, err := copied.IssuedToken(ctx, writtenToken(n))
		check(t, "IssuedToken(acknowledged before the backup)", err)
	}
	c, err := copied.Client(ctx, clientID)
	check(t, "Client", err)
	same(t, "client", c, client(clientID))
	keys, _, err := copied.LoadKeys(ctx, issuer)
	check(t, "LoadKeys", err)
	same(t, "keys", keys, []store.Key{key("k")})
	r, err := copied.RefreshToken(ctx, "r1")
	check(t, "RefreshToken", err)
	same(t, "refresh token", r, refresh(1, "r1"))
	want(t, "RedeemCode(used before the backup)", copied.RedeemCode(ctx, "signature1", epoch(), issued(1, "t2"), nil), store.ErrConsumed)
	check(t, "UseRefreshToken", copied.UseRefreshToken(ctx, "r1", epoch(), epoch().Add(time.Hour), issued(1, "t3")))

	// A reader that followed the log of the original misses nothing of the copy's.
	log, err := f.RevocationsSince(ctx, 0, 1000)
	check(t, "RevocationsSince", err)
	seq, err := copied.Revoke(ctx, revocation(store.RevokeToken, "t"))
	check(t, "Revoke", err)
	if last := log[len(log)-1].Seq; seq <= last {
		t.Errorf("an entry after the restore has number %d, a reader may have seen %d", seq, last)
	}
}

// testNoBackup checks that a backup which fails leaves nothing behind.
func testNoBackup(t *testing.T, f *fixture) {
	t.Helper()
	folder := t.TempDir()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, "Backup(ended context)", f.Backup(ended, filepath.Join(folder, "copy.db")), context.Canceled)
	left, err := os.ReadDir(folder)
	check(t, "ReadDir", err)
	if len(left) != 0 {
		t.Errorf("a backup that failed left %v", left)
	}
	want(t, "Backup(no folder)", f.Backup(t.Context(), filepath.Join(folder, "no", "copy.db")), fs.ErrNotExist)
}

// restore puts a copy of the database into an empty location and opens that.
func restore(t *testing.T, open Opener, file, path string, now func() time.Time) store.Store {
	t.Helper()
	location := t.TempDir()
	target := filepath.Join(location, file)
	check(t, "MkdirAll", os.MkdirAll(filepath.Dir(target), 0o700))
	check(t, "Rename", os.Rename(path, target))
	s := open(t, location, now)
	t.Cleanup(func() { check(t, "close", s.Close()) })
	return s
}

func writtenToken(n int64) string { return fmt.Sprintf("written%d", n) }

// writers write to a database until they are told to stop.
type writers struct {
	t       *testing.T
	acked   atomic.Int64 // so many tokens are recorded, from the first one
	stopped atomic.Bool
	done    sync.WaitGroup
	mu      sync.Mutex // protects errs
	errs    []error
}

// keepWriting starts writers, each with an instance of its own. They record tokens one after the other, in turns.
func (f *fixture) keepWriting(t *testing.T, count int) *writers {
	t.Helper()
	w := &writers{t: t}
	var turn sync.Mutex
	for range count {
		s := f.another(t)
		w.done.Go(func() {
			for !w.stopped.Load() {
				turn.Lock()
				n := w.acked.Load()
				err := s.RecordToken(context.WithoutCancel(t.Context()), issued(1, writtenToken(n)))
				if err == nil {
					w.acked.Add(1)
				}
				turn.Unlock()
				if err != nil {
					w.mu.Lock()
					w.errs = append(w.errs, err)
					w.mu.Unlock()
					return
				}
			}
		})
	}
	t.Cleanup(w.now)
	return w
}

// wait waits for so many more tokens, and returns how many there are.
func (w *writers) wait(more int64) int64 {
	w.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for target := w.acked.Load() + more; ; {
		if n := w.acked.Load(); n >= target {
			return n
		}
		select {
		case <-ticker.C:
		case <-deadline:
			w.t.Fatal("writers do not get on")
		}
	}
}

// now stops the writers and fails the test if one of them failed.
func (w *writers) now() {
	w.stopped.Store(true)
	w.done.Wait()
	if err := errors.Join(w.errs...); err != nil {
		w.t.Error(err)
	}
}
