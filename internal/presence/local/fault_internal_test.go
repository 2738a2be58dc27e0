package local

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

func testDirectory(t *testing.T) (d *Directory, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), ".presence.db")
	d, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Put(t.Context(), []presence.Subscriber{{ID: "a"}, {ID: "b"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, path
}

// wantRefusal checks that nothing is changed any more, what was there can be reaped, and a reopened file is whole.
func wantRefusal(t *testing.T, d *Directory, path string) {
	t.Helper()
	if got, err := d.Reap(t.Context(), 1); err != nil || len(got) != 1 || got[0].ID != "a" {
		t.Errorf("Reap() = %v, %v", got, err)
	}
	for range 2 {
		if err := d.Put(t.Context(), []presence.Subscriber{{ID: "c"}}); !errors.Is(err, errDoubtful) {
			t.Errorf("Put() = %v, want errDoubtful", err)
		}
		if err := d.Remove(t.Context(), []string{"a"}); !errors.Is(err, errDoubtful) {
			t.Errorf("Remove() = %v, want errDoubtful", err)
		}
	}
	_ = d.Close() // its file may be closed already
	again, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if got, err := again.Reap(t.Context(), 9); err != nil || len(got) < 2 {
		t.Errorf("Reap() = %v, %v, want at least two", got, err)
	}
	if err := again.Put(t.Context(), []presence.Subscriber{{ID: "d"}}); err != nil {
		t.Errorf("Put() = %v after reopening", err)
	}
}

// After a write that failed, nobody can tell what is on the disk.
func TestPut_failedWrite(t *testing.T) {
	d, path := testDirectory(t)
	if err := errors.Join(unlockFile(d.file), d.file.Close()); err != nil { // the disk goes
		t.Fatal(err)
	}
	wantRefusal(t, d, path)
}

// A transaction in which bbolt panics ends the writing, not the process, and the file can be closed.
func TestPut_panic(t *testing.T) {
	d, path := testDirectory(t)
	err := d.update(func(*bbolt.Tx) error { panic("page 7 already freed") })
	if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "page 7 already freed") {
		t.Errorf("update() = %v, want errDamaged", err)
	}
	wantRefusal(t, d, path)
}

// A record that has become unreadable is not given, and keeps none of the others from being.
func TestReap_damagedMeanwhile(t *testing.T) {
	d, _ := testDirectory(t)
	err := d.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketName))
		d.gone = 5
		return errors.Join(b.Put(appendKey(nil, 3), []byte("x")), b.Put(appendKey(nil, 4), appendRecord(nil, 4, &presence.Subscriber{ID: "e"})))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := d.Reap(t.Context(), 10); err != nil || len(got) != 2 {
		t.Errorf("Reap() = %v, %v, want those before", got, err)
	}
	if got, err := d.Reap(t.Context(), 10); !errors.Is(err, errDamaged) || len(got) != 0 {
		t.Errorf("Reap() = %v, %v, want errDamaged", got, err)
	}
	if got, err := d.Reap(t.Context(), 10); err != nil || len(got) != 1 || got[0].ID != "e" {
		t.Errorf("Reap() = %v, %v, want the one behind", got, err)
	}
	if got, err := d.Reap(t.Context(), 10); err != nil || len(got) != 0 {
		t.Errorf("Reap() = %v, %v, want none", got, err)
	}
}
