package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func TestEnsure(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	file := filepath.Join(folder, "f")
	for range 2 { // made, then found
		if err := private.EnsureFolder(folder); err != nil {
			t.Fatal(err)
		}
		if err := private.EnsureFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := private.EnsureFile(file); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("the file holds %q (%v)", text, err)
	}
	if err := private.CheckFolder(file); !errors.Is(err, private.ErrKind) {
		t.Errorf("CheckFolder(file) = %v, want ErrKind", err)
	}
	if err := private.CheckFile(folder); !errors.Is(err, private.ErrKind) {
		t.Errorf("CheckFile(folder) = %v, want ErrKind", err)
	}
	for _, check := range []func(string) error{private.CheckFolder, private.CheckFile} {
		if err := check(file + "2"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("check of a missing path = %v, want fs.ErrNotExist", err)
		}
	}
}

func TestCheck_modes(t *testing.T) {
	needs.PermissionBits(t)
	folder := filepath.Join(t.TempDir(), "it's here")
	file := filepath.Join(folder, "f")
	if err := errors.Join(private.EnsureFolder(folder), private.EnsureFile(file)); err != nil {
		t.Fatal(err)
	}
	for bit := fs.FileMode(1); bit <= 0o400; bit <<= 1 {
		loose := bit < 0o100
		for path, c := range map[string]struct {
			mode  fs.FileMode
			check func(string) error
		}{folder: {0o700, private.CheckFolder}, file: {0o600, private.CheckFile}} {
			if err := os.Chmod(path, c.mode|bit); err != nil {
				t.Fatal(err)
			}
			err := c.check(path)
			if errors.Is(err, private.ErrLoose) != loose {
				t.Errorf("check of mode %04o = %v, want loose: %t", c.mode|bit, err, loose)
			}
			if loose && !strings.Contains(err.Error(), `it'\''s here`) {
				t.Errorf("%v cannot be pasted into a shell", err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCheckRights(t *testing.T) {
	needs.PermissionBits(t)
	path := filepath.Join(t.TempDir(), "it's here")
	if err := private.EnsureFile(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode, refused fs.FileMode
		change        string // empty: the mode is right
	}{
		{0o660, 0o007, ""},
		{0o775, 0o002, ""},
		{0o602, 0o002, "chmod o-w "},
		{0o604, 0o007, "chmod o-rwx "},
		{0o620, 0o022, "chmod g-w,o-w "},
	} {
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		err = private.CheckRights(path, info, c.refused)
		if errors.Is(err, private.ErrLoose) != (c.change != "") {
			t.Errorf("CheckRights of mode %04o without %04o = %v, want loose: %t", c.mode, c.refused, err, c.change != "")
		}
		if err != nil && !strings.Contains(err.Error(), c.change+`'`) {
			t.Errorf("CheckRights of mode %04o = %v, want %q", c.mode, err, c.change)
		}
	}
}
