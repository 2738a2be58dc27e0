package newfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as/store/newfile"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPlace(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from"), filepath.Join(folder, "to")
	if err := newfile.Place(from, to, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Place(missing) = %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failure took the name: %v", err)
	}
	write(t, from, "new")
	if err := newfile.Place(from, to, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "new" {
		t.Errorf("the file holds %q (%v)", text, err)
	}
	other := filepath.Join(folder, "other")
	write(t, other, "other")
	if err := newfile.Place(other, to, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Place(taken) = %v, want fs.ErrExist", err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "new" {
		t.Errorf("the file that was there holds %q (%v)", text, err)
	}
}

func TestPlace_together(t *testing.T) {
	folder := t.TempDir()
	to := filepath.Join(folder, "to")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		from := filepath.Join(folder, strconv.Itoa(i))
		write(t, from, strconv.Itoa(i))
		wg.Go(func() { errs[i] = newfile.Place(from, to, 0o600) })
	}
	wg.Wait()
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		if won := string(text) == strconv.Itoa(i); won != (err == nil) || (err != nil && !errors.Is(err, fs.ErrExist)) {
			t.Errorf("Place of file %d = %v, and the name went to file %s", i, err, text)
		}
	}
}
