package local_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/presence/local"
)

const pageBytes = 4096

// used cuts off what was never written: the file is made larger than it has to be.
func used(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := len(bytes.TrimRight(b, "\x00"))
	return b[:min((n+pageBytes-1)/pageBytes*pageBytes, len(b))]
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that is not ours, or not any more, is kept beside a new one.
func TestOpen_damaged(t *testing.T) {
	whole := used(t, store(t, 300))
	meta := func(change func(meta []byte)) []byte {
		b := slices.Clone(whole)
		for page := range 2 {
			change(b[page*pageBytes : (page+1)*pageBytes])
		}
		return b
	}
	cases := map[string][]byte{
		"a text":                 []byte("hello"),
		"a long text":            bytes.Repeat([]byte("hello "), 10_000),
		"nothing but zeros":      make([]byte, 1<<17),
		"one byte":               {0},
		"no meta pages":          meta(func(meta []byte) { clear(meta) }),
		"other meta pages":       meta(func(meta []byte) { meta[60]++ }),
		"no pages but the metas": append(slices.Clone(whole[:2*pageBytes]), make([]byte, len(whole)-2*pageBytes)...),
		"somebody's database":    otherDatabase(t),
		"half of it":             whole[:len(whole)/2],
	}
	for size := 1; size < len(whole); size += 1 + size/3 {
		cases["cut off at "+strconv.Itoa(size)] = whole[:size]
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), ".presence.db")
			write(t, path, content)
			write(t, path+".damaged", []byte("an older one"))
			var said bytes.Buffer
			d, err := local.Open(local.Options{Path: path, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			if err != nil {
				t.Fatalf("Open() = %v", err)
			}
			wantReaped(t, d, nil)
			mustPut(t, d, subscribers(0, 3))
			mustClose(t, d)
			if moved, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.Equal(moved, content) {
				t.Errorf("%d bytes are kept aside, %v, want the %d that were there", len(moved), err, len(content))
			}
			if n := strings.Count(said.String(), "level=WARN"); n != 1 || strings.Contains(said.String(), "level=ERROR") {
				t.Errorf("the log says %s", &said)
			}
			d = mustOpen(t, path)
			wantReaped(t, d, subscribers(0, 3))
			mustClose(t, d)
		})
	}
}

func otherDatabase(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	change(t, path, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("updates"))
		return err
	})
	return used(t, path)
}

// change changes the database of a closed file.
func change(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A process that was killed before it had finished a new file has left one that is used.
func TestOpen_unfinished(t *testing.T) {
	for name, prepare := range map[string]func(path string){
		"an empty file": func(path string) { write(t, path, nil) },
		"no bucket":     func(path string) { change(t, path, func(*bbolt.Tx) error { return nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), ".presence.db")
			prepare(path)
			d := mustOpen(t, path)
			mustPut(t, d, subscribers(0, 3))
			mustClose(t, d)
			d = mustOpen(t, path)
			wantReaped(t, d, subscribers(0, 3))
			mustClose(t, d)
			if _, err := os.Stat(path + ".damaged"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Stat() = %v, want nothing moved aside", err)
			}
		})
	}
}

// One meta page is enough: that is how bbolt survives a write that was cut short.
func TestOpen_oneMetaPage(t *testing.T) {
	path := store(t, 300) // one transaction made the bucket, the next one put them
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for page := range 2 {
		b := slices.Clone(whole)
		clear(b[page*pageBytes : (page+1)*pageBytes])
		write(t, path, b)
		d := mustOpen(t, path)
		if n := len(reaped(t, d)); n != 0 && n != 300 {
			t.Errorf("%d subscribers without meta page %d, want all or those of the transaction before", n, page)
		}
		mustClose(t, d)
	}
}

// Records that are changed, in another's place or under a key that is none are noticed.
func TestOpen_damagedRecords(t *testing.T) {
	key := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	for name, damage := range map[string]func(b *bbolt.Bucket) error{
		"changed": func(b *bbolt.Bucket) error {
			v := slices.Clone(b.Get(key(7)))
			v[len(v)-3]++
			return b.Put(key(7), v)
		},
		"another version":    func(b *bbolt.Bucket) error { v := slices.Clone(b.Get(key(7))); v[0]++; return b.Put(key(7), v) },
		"in another's place": func(b *bbolt.Bucket) error { return b.Put(key(7), slices.Clone(b.Get(key(8)))) },
		"empty":              func(b *bbolt.Bucket) error { return b.Put(key(7), nil) },
		"a short key":        func(b *bbolt.Bucket) error { return b.Put([]byte{1}, slices.Clone(b.Get(key(8)))) },
		"a huge key":         func(b *bbolt.Bucket) error { return b.Put(bytes.Repeat([]byte{255}, 8), slices.Clone(b.Get(key(8)))) },
		"a bucket":           func(b *bbolt.Bucket) error { _, err := b.CreateBucket(key(1000)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			path := store(t, 30)
			change(t, path, func(tx *bbolt.Tx) error { return damage(tx.Bucket([]byte("subscribers"))) })
			d := mustOpen(t, path)
			wantReaped(t, d, nil)
			mustClose(t, d)
			if _, err := os.Stat(path + ".damaged"); err != nil {
				t.Error(err)
			}
		})
	}
}

// Whatever pages hold, a hub starts with the file, nothing panics, faults or hangs, and nobody is reaped who was not put.
func TestOpen_damagedPages(t *testing.T) {
	t.Parallel()
	path := store(t, 2000)
	d := mustOpen(t, path)
	if _, err := d.Reap(t.Context(), 2000); err != nil {
		t.Fatal(err)
	}
	mustRemove(t, d, subscribers(300, 900)) // so that there is a list of free pages
	mustClose(t, d)
	ever := map[string]presence.Subscriber{} // a page that was freed can come back, and those who were removed with it
	for _, s := range subscribers(0, 2000) {
		ever[s.ID] = s
	}
	whole := used(t, path)
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 100
	moved := 0
	for range rounds {
		damaged := slices.Clone(whole)
		at := r.IntN(len(whole)/pageBytes) * pageBytes
		switch r.IntN(5) {
		case 0: // a page that was never written
			clear(damaged[at : at+pageBytes])
		case 1: // one that went somewhere else
			copy(damaged[at:at+pageBytes], whole[r.IntN(len(whole)/pageBytes)*pageBytes:])
		case 2: // one that is half old
			for i := at + 512*(1+r.IntN(6)); i < at+pageBytes; i++ {
				damaged[i] = byte(r.Uint32())
			}
		case 3: // a bit
			damaged[at+r.IntN(pageBytes)] ^= 1 << r.IntN(8)
		case 4: // a bit where a page says what it holds
			damaged[at+r.IntN(64)] ^= 1 << r.IntN(8)
		}
		write(t, path, damaged)
		if exercise(t, path, ever) {
			moved++
		}
	}
	if moved < rounds/4 {
		t.Errorf("damage was noticed %d times of %d", moved, rounds)
	}
}

// exercise does everything with a file that may be damaged, and tells whether it was moved aside.
func exercise(t *testing.T, path string, ever map[string]presence.Subscriber) (moved bool) {
	t.Helper()
	if err := os.Remove(path + ".damaged"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := mustOpen(t, path)
	got, err := d.Reap(t.Context(), len(ever)+1)
	if err != nil {
		t.Errorf("Reap() = %v of a file that was looked through", err)
	}
	seen := map[string]bool{}
	for _, s := range got {
		if !reflect.DeepEqual(s, ever[s.ID]) || seen[s.ID] {
			t.Errorf("%+v was reaped, and never put or reaped before", s)
		}
		seen[s.ID] = true
	}
	// A list of free pages with others in it comes out now, if at all: that is an error.
	for n := range 3 {
		all := subscribers(10_000+100*n, 100)
		_ = d.Put(t.Context(), all)
		_ = d.Remove(t.Context(), ids(all[:50]))
	}
	mustClose(t, d)
	mustClose(t, mustOpen(t, path))
	_, err = os.Stat(path + ".damaged")
	return err == nil
}

// Of a database format that is not known yet nothing is lost.
func TestOpen_newerDatabase(t *testing.T) {
	path := store(t, 3)
	b := used(t, path)
	for page := range 2 {
		b[page*pageBytes+20]++ // the version
	}
	write(t, path, b)
	if _, err := local.Open(local.Options{Path: path}); !errors.Is(err, local.ErrNewerFormat) {
		t.Errorf("Open() = %v, want ErrNewerFormat", err)
	}
	if after := used(t, path); !bytes.Equal(b, after) {
		t.Error("the file was changed")
	}
}
