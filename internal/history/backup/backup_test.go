package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/backup"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// source is a history.Backupper made of a function.
type source func(ctx context.Context, create history.CreateFile) error

func (s source) Backup(ctx context.Context, create history.CreateFile) error { return s(ctx, create) }

// file is what a source writes.
type file struct {
	name, content string
	announced     int64 // -1: as long as it is
}

func files(list ...file) source {
	return func(_ context.Context, create history.CreateFile) error {
		for _, f := range list {
			size := f.announced
			if size < 0 {
				size = int64(len(f.content))
			}
			w, err := create(f.name, size)
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, f.content)
			if err = errors.Join(err, w.Close()); err != nil {
				return err
			}
		}
		return nil
	}
}

func noCheck(context.Context, string) (history.Stats, error) { return history.Stats{}, nil }

// left returns what is in a folder.
func left(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func readSegments(ctx context.Context, dir string) (history.Stats, error) {
	log, err := segments.Open(ctx, segments.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		return history.Stats{}, err
	}
	s, err := log.Stats(ctx)
	return s, errors.Join(err, log.Close())
}

// openLog makes a log with so many records, in several files.
func openLog(t *testing.T, count int) *segments.Log {
	t.Helper()
	log, err := segments.Open(t.Context(), segments.Options{Dir: filepath.Join(t.TempDir(), "history"), SegmentBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	for n := range count {
		if _, err := log.Append(t.Context(), &history.Record{ID: fmt.Sprint("id-", n), Topics: []string{"t"}, Event: []byte("data: x\n\n")}); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func TestWrite(t *testing.T) {
	log := openLog(t, 100)
	parent := t.TempDir()
	dir := filepath.Join(parent, "copy")
	r, err := backup.Write(t.Context(), backup.Options{Dir: dir, Source: log, Check: readSegments})
	if err != nil {
		t.Fatal(err)
	}
	names := left(t, dir)
	if r.Dir != dir || r.Files != len(names) || r.Files < 3 || r.Stats.Events != 100 || r.Stats.LastID != "id-99" {
		t.Errorf("Write() = %+v, and the folder holds %q", r, names)
	}
	var size int64
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size != r.Bytes {
		t.Errorf("the files have %d bytes, Write() says %d", size, r.Bytes)
	}
	if got := left(t, parent); !slices.Equal(got, []string{"copy"}) {
		t.Errorf("beside the copy there is %q", got)
	}
}

func TestWrite_modes(t *testing.T) {
	needs.PermissionBits(t)
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := backup.Write(t.Context(), backup.Options{Dir: dir, Source: openLog(t, 3), Check: readSegments}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, filepath.Join(dir, left(t, dir)[0]): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("Stat(%s) = %v, %v, want mode %v", name, info.Mode(), err, want)
		}
	}
}

// The whole round: a copy, taken while the log goes on, put where a hub's history was.
func TestWrite_restore(t *testing.T) {
	place := filepath.Join(t.TempDir(), "history")
	o := segments.Options{Dir: place, SegmentBytes: 2000}
	appendTo := func(log history.Log, from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			if _, err := log.Append(t.Context(), &history.Record{ID: fmt.Sprint("id-", n), Topics: []string{"t"}, Event: []byte("data: x\n\n")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func() *segments.Log {
		t.Helper()
		log, err := segments.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	log := open()
	appendTo(log, 0, 50)
	lost, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if _, err := backup.Write(t.Context(), backup.Options{Dir: copied, Source: log, Check: readSegments}); err != nil {
		t.Fatal(err)
	}
	appendTo(log, 50, 70) // after the copy: lost by restoring it
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(place, place+".old"), os.Rename(copied, place)); err != nil {
		t.Fatal(err)
	}
	log = open()
	defer func() { _ = log.Close() }()
	h, err := log.Head(t.Context())
	if err != nil || h.Last != 50 || h.LastID != "id-49" || h.Epoch == lost.Epoch {
		t.Errorf("Head() = %+v, %v, want the 50 of the copy and another epoch than %s", h, err, lost.Epoch)
	}
	if p, err := log.Seek(t.Context(), "id-20"); err != nil || p != 21 {
		t.Errorf("Seek() = %d, %v for a cursor that the copy knows", p, err)
	}
	if _, err := log.Seek(t.Context(), "id-60"); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("Seek() = %v for a cursor from after the copy, want ErrUnknownID", err)
	}
	appendTo(log, 100, 110)
	if h, err := log.Head(t.Context()); err != nil || h.Last != 60 {
		t.Errorf("Head() = %+v, %v, want 60", h, err)
	}
}

func TestWrite_place(t *testing.T) {
	good := files(file{"a.seg", "hello", -1})
	t.Run("an empty folder is taken", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := backup.Write(t.Context(), backup.Options{Dir: dir, Source: good, Check: noCheck}); err != nil {
			t.Errorf("Write() = %v", err)
		}
		if got := left(t, dir); !slices.Equal(got, []string{"a.seg"}) {
			t.Errorf("the folder holds %q", got)
		}
	})
	refused := map[string]func(t *testing.T, dir string) error{
		"a folder that holds something": func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, ".hidden"), nil, 0o600))
		},
		"a file": func(_ *testing.T, dir string) error { return os.WriteFile(dir, []byte("x"), 0o600) },
	}
	for name, occupy := range refused {
		t.Run(name+" is refused", func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "copy")
			if err := occupy(t, dir); err != nil {
				t.Fatal(err)
			}
			asked := source(func(context.Context, history.CreateFile) error {
				t.Error("the history is asked for a copy")
				return nil
			})
			if _, err := backup.Write(t.Context(), backup.Options{Dir: dir, Source: asked, Check: noCheck}); !errors.Is(err, backup.ErrNotEmpty) {
				t.Errorf("Write() = %v, want ErrNotEmpty", err)
			}
			if got := left(t, parent); !slices.Equal(got, []string{"copy"}) {
				t.Errorf("the parent holds %q", got)
			}
		})
	}
	t.Run("a missing parent is an error", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "missing", "copy")
		if _, err := backup.Write(t.Context(), backup.Options{Dir: dir, Source: good, Check: noCheck}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Write() = %v, want ErrNotExist", err)
		}
	})
	t.Run("a folder that got something meanwhile is left alone", func(t *testing.T) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "copy")
		late := source(func(ctx context.Context, create history.CreateFile) error {
			return errors.Join(good(ctx, create), os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o600))
		})
		if _, err := backup.Write(t.Context(), backup.Options{Dir: dir, Source: late, Check: noCheck}); err == nil {
			t.Error("Write() succeeds")
		}
		if a, b := left(t, parent), left(t, dir); !slices.Equal(a, []string{"copy"}) || !slices.Equal(b, []string{"theirs"}) {
			t.Errorf("there is %q with %q", a, b)
		}
	})
}

func TestWrite_failsWithoutATrace(t *testing.T) {
	broken := errors.New("broken")
	good := file{"a.seg", "hello", -1}
	for name, tc := range map[string]struct {
		source source
		check  func(context.Context, string) (history.Stats, error)
		want   error // nil: any
	}{
		"the source fails": {source: func(ctx context.Context, create history.CreateFile) error {
			return errors.Join(files(good)(ctx, create), broken)
		}, want: broken},
		"the check fails": {source: files(good), check: func(context.Context, string) (history.Stats, error) {
			return history.Stats{}, broken
		}, want: broken},
		"the copy is empty":                 {source: files()},
		"a file is shorter than announced":  {source: files(file{"a.seg", "hello", 6})},
		"a file is longer than announced":   {source: files(file{"a.seg", "hello", 4})},
		"a file comes twice":                {source: files(good, good), want: fs.ErrExist},
		"a name goes up":                    {source: files(file{"../evil", "x", -1}), want: backup.ErrName},
		"a name goes down":                  {source: files(file{"a/b", "x", -1}), want: backup.ErrName},
		"a name goes down as on Windows":    {source: files(file{`a\b`, "x", -1}), want: backup.ErrName},
		"a name is absolute":                {source: files(file{"/tmp/evil", "x", -1}), want: backup.ErrName},
		"a name has a drive":                {source: files(file{"c:evil", "x", -1}), want: backup.ErrName},
		"a name is hidden":                  {source: files(file{".bashrc", "x", -1}), want: backup.ErrName},
		"a name is the folder":              {source: files(file{".", "x", -1}), want: backup.ErrName},
		"a name is empty":                   {source: files(file{"", "x", -1}), want: backup.ErrName},
		"a name has a NUL":                  {source: files(file{"a\x00b", "x", -1}), want: backup.ErrName},
		"a name is very long":               {source: files(file{strings.Repeat("a", 101), "x", -1}), want: backup.ErrName},
		"a name is that of the marker":      {source: files(file{"INCOMPLETE", "x", -1}), want: backup.ErrName},
		"a name is the marker's, in effect": {source: files(file{"incomplete", "x", -1}), want: backup.ErrName},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			if tc.check == nil {
				tc.check = noCheck
			}
			_, err := backup.Write(t.Context(), backup.Options{Dir: filepath.Join(parent, "copy"), Source: tc.source, Check: tc.check})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("Write() = %v, want %v", err, tc.want)
			}
			if got := left(t, parent); len(got) > 0 {
				t.Errorf("%q is left", got)
			}
		})
	}
}

// What a killed command leaves is recognised, by its name and by every history that is pointed to it.
func TestWrite_interrupted(t *testing.T) {
	log := openLog(t, 100)
	parent := t.TempDir()
	dir := filepath.Join(parent, "copy")
	seen := 0
	watched := source(func(ctx context.Context, create history.CreateFile) error {
		return log.Backup(ctx, func(name string, size int64) (io.WriteCloser, error) {
			found := left(t, parent)
			if len(found) != 1 || !strings.HasPrefix(found[0], "copy.partial-") {
				t.Fatalf("while the copy is taken there is %q", found)
			}
			partial := filepath.Join(parent, found[0])
			for _, readOnly := range []bool{false, true} {
				_, err := segments.Open(t.Context(), segments.Options{Dir: partial, ReadOnly: readOnly})
				if !errors.Is(err, history.ErrForeignFile) || !strings.Contains(err.Error(), "INCOMPLETE") {
					t.Errorf("Open() = %v for an incomplete copy, want ErrForeignFile", err)
				}
			}
			seen++
			return create(name, size)
		})
	})
	_, err := backup.Write(t.Context(), backup.Options{Dir: dir, Source: watched, Check: noCheck})
	if err != nil || seen < 3 {
		t.Errorf("Write() = %v after %d looks", err, seen)
	}
}

func TestWrite_context(t *testing.T) {
	log := openLog(t, 100)
	parent := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	stopping := source(func(ctx context.Context, create history.CreateFile) error {
		return log.Backup(ctx, func(name string, size int64) (io.WriteCloser, error) {
			cancel()
			return create(name, size)
		})
	})
	if _, err := backup.Write(ctx, backup.Options{Dir: filepath.Join(parent, "copy"), Source: stopping, Check: noCheck}); !errors.Is(err, context.Canceled) {
		t.Errorf("Write() = %v, want the context's error", err)
	}
	if got := left(t, parent); len(got) > 0 {
		t.Errorf("%q is left", got)
	}
}
