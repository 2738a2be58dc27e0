package bolt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func record(n int) *history.Record {
	return &history.Record{
		ID: fmt.Sprint("id-", n), Topics: []string{fmt.Sprint("https://example.com/books/", n%10)},
		Event: fmt.Appendf(nil, "data: %d\n\n", n),
	}
}

// fill appends the records first to first+count-1 from many goroutines, which share syncs.
func fill(tb testing.TB, log history.Log, first, count int) {
	tb.Helper()
	const writers = 100
	errs := make(chan error, writers)
	for w := range writers {
		go func() {
			for n := first + w; n < first+count; n += writers {
				if _, err := log.Append(tb.Context(), record(n)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			tb.Fatal(err)
		}
	}
}

// store makes a store with so many records and closes it.
func store(t *testing.T, count int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "history")
	log := mustOpen(t, bolt.Options{Dir: dir})
	fill(t, log, 0, count)
	mustClose(t, log)
	return dir
}

func TestOpen_makesPrivateFiles(t *testing.T) {
	needs.PermissionBits(t)
	dir := filepath.Join(t.TempDir(), "a", "history")
	log := mustOpen(t, bolt.Options{Dir: dir})
	defer mustClose(t, log)
	for path, want := range map[string]fs.FileMode{
		"": 0o700, "history.db": 0o600, "EPOCH": 0o600, "LOCK": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %04o, want %04o", path, got, want)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 3 {
		t.Errorf("the folder holds %v, %v, want three files", names, err)
	}
}

func TestOpen_looseRights(t *testing.T) {
	needs.PermissionBits(t)
	for name, mode := range map[string]fs.FileMode{"": 0o707, "history.db": 0o604, "EPOCH": 0o602} {
		dir := store(t, 1)
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Open(t.Context(), bolt.Options{Dir: dir}); !errors.Is(err, private.ErrLoose) {
			t.Errorf("Open() = %v with %q of mode %04o, want ErrLoose", err, name, mode)
		}
	}
}

// What is not the store's own is refused, and left as it is.
func TestOpen_foreign(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"another file":        func(dir string) error { return os.WriteFile(filepath.Join(dir, "mercure.db"), nil, 0o600) },
		"a folder":            func(dir string) error { return os.Mkdir(filepath.Join(dir, "history.db"), 0o700) },
		"a segment":           func(dir string) error { return os.WriteFile(filepath.Join(dir, "0000000000000001.seg"), nil, 0o600) },
		"an unfinished copy":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "INCOMPLETE"), nil, 0o600) },
		"a text":              func(dir string) error { return os.WriteFile(filepath.Join(dir, "history.db"), []byte("hello"), 0o600) },
		"an empty file":       func(dir string) error { return os.WriteFile(filepath.Join(dir, "history.db"), nil, 0o600) },
		"somebody's database": func(dir string) error { return otherDatabase(filepath.Join(dir, "history.db"), "updates") },
		"another meta bucket": func(dir string) error { return otherDatabase(filepath.Join(dir, "history.db"), "meta") },
		"an executable's head": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "history.db"), make([]byte, 1<<17), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.Chmod(dir, 0o700), prepare(dir)); err != nil {
				t.Fatal(err)
			}
			for _, readOnly := range []bool{true, false} {
				if _, err := bolt.Open(t.Context(), bolt.Options{Dir: dir, ReadOnly: readOnly}); !errors.Is(err, history.ErrForeignFile) {
					t.Errorf("Open(ReadOnly: %t) = %v, want ErrForeignFile", readOnly, err)
				}
			}
		})
	}
	t.Run("a file in the place of the folder", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Open(t.Context(), bolt.Options{Dir: file}); !errors.Is(err, history.ErrForeignFile) {
			t.Errorf("Open() = %v, want ErrForeignFile", err)
		}
	})
	t.Run("a link", func(t *testing.T) {
		needs.SymbolicLinks(t)
		dir, other := store(t, 1), store(t, 1)
		path := filepath.Join(dir, "history.db")
		if err := errors.Join(os.Remove(path), os.Symlink(filepath.Join(other, "history.db"), path)); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Open(t.Context(), bolt.Options{Dir: dir}); !errors.Is(err, history.ErrForeignFile) {
			t.Errorf("Open() = %v, want ErrForeignFile", err)
		}
	})
}

// What begins with a dot belongs to somebody else, such as a store of another kind in the same folder: it is neither looked at nor copied nor removed,
// whatever it is.
func TestOpen_hidden(t *testing.T) {
	dir := store(t, 1)
	hidden := map[string]string{".presence.db": "somebody writes here", ".presence.db.tmp": "", ".gitignore": "*", ".history.db.tmp": "x"}
	for name, text := range hidden {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o606)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		log := mustOpen(t, bolt.Options{Dir: dir, ReadOnly: readOnly})
		files := copied{}
		if err := log.Backup(t.Context(), files.create); err != nil || len(files) != 2 || files["history.db"] == nil || files["EPOCH"] == nil {
			t.Errorf("Backup(ReadOnly: %t) = %v, with %d files, want history.db and EPOCH", readOnly, err, len(files))
		}
		if _, err := log.Verify(t.Context()); err != nil {
			t.Errorf("Verify() = %v", err)
		}
		if _, err := log.Compact(t.Context()); (err != nil) != readOnly {
			t.Errorf("Compact() = %v", err)
		}
		mustClose(t, log)
	}
	for name, text := range hidden {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, text)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, ".folder")); err != nil || !info.IsDir() {
		t.Errorf("Stat() = %v of a hidden folder", err)
	}
}

// A folder that holds nothing but hidden files is an empty place for a store, and holds no history.
func TestOpen_hiddenAlone(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, ".presence.db"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(t.Context(), bolt.Options{Dir: dir, ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open() = %v, want ErrNotExist", err)
	}
	mustClose(t, mustOpen(t, bolt.Options{Dir: dir}))
	if got, err := os.ReadFile(filepath.Join(dir, ".presence.db")); err != nil || string(got) != "x" {
		t.Errorf("the hidden file holds %q, %v", got, err)
	}
}

// otherDatabase makes a database that is not ours.
func otherDatabase(path, bucket string) error {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte(bucket))
		return err
	})
	return errors.Join(err, db.Close())
}

// change changes the database of a closed store.
func change(t *testing.T, dir string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "history.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_newerFormat(t *testing.T) {
	dir := store(t, 1)
	change(t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{0, 2}) })
	if _, err := bolt.Open(t.Context(), bolt.Options{Dir: dir}); !errors.Is(err, history.ErrNewerFormat) {
		t.Errorf("Open() = %v, want ErrNewerFormat", err)
	}
}

func TestOpen_locked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	log := mustOpen(t, bolt.Options{Dir: dir})
	for _, readOnly := range []bool{true, false} {
		if _, err := bolt.Open(t.Context(), bolt.Options{Dir: dir, ReadOnly: readOnly}); !errors.Is(err, history.ErrLocked) {
			t.Errorf("Open(ReadOnly: %t) = %v, want ErrLocked", readOnly, err)
		}
	}
	mustClose(t, log)
	mustClose(t, mustOpen(t, bolt.Options{Dir: dir}))
}

// A successor gets the store as soon as its owner has closed it.
func TestOpen_waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := bolt.Options{Dir: filepath.Join(t.TempDir(), "history"), Wait: time.Hour}
		log := mustOpen(t, o)
		opened := make(chan *bolt.Log)
		go func() {
			next, err := bolt.Open(t.Context(), o)
			if err != nil {
				t.Error(err)
			}
			opened <- next
		}()
		synctest.Wait()
		fill(t, log, 0, 3)
		mustClose(t, log)
		next := <-opened
		if h, err := next.Head(t.Context()); err != nil || h.Last != 3 {
			t.Errorf("Head() = %+v, %v", h, err)
		}
		mustClose(t, next)
		patience := bolt.Options{Dir: o.Dir, Wait: time.Minute}
		log = mustOpen(t, o)
		if _, err := bolt.Open(t.Context(), patience); !errors.Is(err, history.ErrLocked) {
			t.Errorf("Open() = %v after its patience, want ErrLocked", err)
		}
		mustClose(t, log)
	})
}

// A store that is read alone is not changed, and nothing is made where there is none.
func TestOpen_readOnly(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := bolt.Open(t.Context(), bolt.Options{Dir: missing, ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open() = %v, want ErrNotExist", err)
	}
	empty := t.TempDir()
	if _, err := bolt.Open(t.Context(), bolt.Options{Dir: empty, ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open() = %v, want ErrNotExist", err)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("%v was made, %v", left, err)
	}
	dir := store(t, 50)
	path := filepath.Join(dir, "history.db")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log := mustOpen(t, bolt.Options{Dir: dir, ReadOnly: true, MaxEvents: 3})
	if page, err := log.Replay(t.Context(), history.Query{}); err != nil || len(page.Entries) != 50 {
		t.Errorf("Replay() = %d entries, %v, want all", len(page.Entries), err)
	}
	if _, err := log.Append(t.Context(), record(99)); err == nil {
		t.Error("Append() succeeded")
	}
	if _, err := log.Compact(t.Context()); err == nil {
		t.Error("Compact() succeeded")
	}
	mustClose(t, log)
	after, err := os.ReadFile(path)
	if err != nil || string(before) != string(after) {
		t.Errorf("the file was changed, %v", err)
	}
}

func TestValidate(t *testing.T) {
	for _, o := range []bolt.Options{
		{}, {Dir: "x", MaxEvents: -1}, {Dir: "x", MaxSubscriptionEvents: -1}, {Dir: "x", MaxBytes: -1}, {Dir: "x", MaxAge: -1}, {Dir: "x", Wait: -1}, {Dir: "x", MaxBytes: 1000},
	} {
		if _, err := bolt.Open(t.Context(), o); err == nil {
			t.Errorf("Open(%+v) succeeded", o)
		}
	}
}

func TestEpoch(t *testing.T) {
	dir := store(t, 5)
	log := mustOpen(t, bolt.Options{Dir: dir})
	before, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, log)
	// A database that comes without its epoch is a copy.
	if err := os.Remove(filepath.Join(dir, "EPOCH")); err != nil {
		t.Fatal(err)
	}
	log = mustOpen(t, bolt.Options{Dir: dir})
	after, err := log.Head(t.Context())
	if err != nil || after.Epoch == before.Epoch || after.Epoch == "" || after.Last != before.Last {
		t.Errorf("Head() = %+v, %v, want another epoch than %s", after, err, before.Epoch)
	}
	mustClose(t, log)
	log = mustOpen(t, bolt.Options{Dir: dir})
	if again, err := log.Head(t.Context()); err != nil || again != after {
		t.Errorf("Head() = %+v, %v after reopening, want %+v", again, err, after)
	}
	mustClose(t, log)
}

// A new database in the place of one that was removed has another epoch: it gives the same positions to other entries.
func TestEpoch_newDatabase(t *testing.T) {
	dir := store(t, 5)
	epoch := filepath.Join(dir, "EPOCH")
	before, err := os.ReadFile(epoch)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "history.db")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, bolt.Options{Dir: dir}))
	if after, err := os.ReadFile(epoch); err != nil || string(after) == string(before) {
		t.Errorf("the epoch is %s, %v, want another one", after, err)
	}
}

// Temporary files of a killed process are removed.
func TestOpen_leftovers(t *testing.T) {
	dir := store(t, 3)
	for _, name := range []string{"history.db.tmp", "EPOCH.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, mustOpen(t, bolt.Options{Dir: dir}))
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A limit far beyond what a process can map is a limit all the same.
func TestOpen_hugeLimit(t *testing.T) {
	for _, limit := range []int64{100_000 << 30, math.MaxInt64} {
		log := mustOpen(t, bolt.Options{Dir: t.TempDir(), MaxBytes: limit})
		if _, err := log.Append(t.Context(), record(1)); err != nil {
			t.Errorf("Append() = %v", err)
		}
		mustClose(t, log)
	}
}
