package devapp

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/datadir"
)

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func TestFolder_ephemeralRefusesWhatIsNotItsOwn(t *testing.T) {
	for _, name := range []string{"hub.yaml", "authz.yaml", "tls/prod.key", "history/0.seg", "authz.db", "authz.secret", "publish.header", "ephemeral"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name))
			f, err := openFolder(dir, true)
			if !errors.Is(err, datadir.ErrInUse) {
				t.Errorf("got %v", err)
			}
			if err == nil {
				_ = f.close()
			}
			if !exists(filepath.Join(dir, name)) {
				t.Error("it is gone")
			}
			if exists(filepath.Join(dir, ".gitignore")) || exists(filepath.Join(dir, "lock")) {
				t.Error("something was made in a folder that was refused")
			}
		})
	}
}

func TestFolder_aFileOfTheMarkersNameIsNoMarker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	write(t, filepath.Join(dir, "ephemeral"))
	write(t, filepath.Join(dir, "authz.db"))
	write(t, filepath.Join(dir, "authz.secret"))
	f, err := openFolder(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(dir, "authz.db")) {
		t.Error("the database was removed")
	}
}

func TestFolder_closeRemovesWhatWasMadeAlone(t *testing.T) {
	parent := t.TempDir()
	// A path is no pattern: what it would match belongs to somebody else.
	foreign := filepath.Join(parent, "data1", "authz.db")
	write(t, foreign)
	dir := filepath.Join(parent, "data[1]")
	f, err := openFolder(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"authz.db", "authz.db-wal", "authz.db-shm", "authz.secret", "hub.yaml", "tls/ca.crt", "history/0.seg"} {
		write(t, f.Join(name))
	}
	note, backup := f.Join("note.txt"), f.Join("authz.db.bak")
	write(t, note)
	write(t, backup)
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{foreign, note, backup} {
		if !exists(name) {
			t.Errorf("%s is gone", name)
		}
	}
	for _, name := range []string{"authz.db", "authz.db-wal", "authz.secret", "hub.yaml", "tls", "history", "ephemeral", "lock", ".gitignore"} {
		if exists(f.Join(name)) {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestFolder_ephemeralLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	f, err := openFolder(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.Join("authz.db"))
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if exists(dir) {
		t.Error("the folder is still there")
	}
	t.Run("nor does a killed one, after the next", func(t *testing.T) {
		f, err := openFolder(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f.Join("authz.db"))
		if err := f.unlock(); err != nil {
			t.Fatal(err)
		}
		if f, err = openFolder(dir, false); err != nil {
			t.Fatal(err)
		}
		if exists(f.Join("authz.db")) || exists(f.Join(marker)) {
			t.Error("the remains were taken for data")
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFolder_ephemeralLeavesAFolderAsItWas(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "data")
		write(t, filepath.Join(dir, "note.txt"))
		f, err := openFolder(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if killed {
			if err := f.unlock(); err != nil {
				t.Fatal(err)
			}
			if f, err = openFolder(dir, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != "note.txt" {
			t.Errorf("killed = %v: left behind: %v, %v", killed, entries, err)
		}
	}
	t.Run("its own .gitignore too", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		write(t, filepath.Join(dir, ".gitignore"))
		f, err := openFolder(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
		if !exists(filepath.Join(dir, ".gitignore")) {
			t.Error("it is gone")
		}
	})
}

func TestFolder_keepsConfigurationThatItDidNotWrite(t *testing.T) {
	for _, name := range []string{"hub.yaml", "authz.yaml"} {
		dir := filepath.Join(t.TempDir(), "data")
		write(t, filepath.Join(dir, name))
		if f, err := openFolder(dir, false); !errors.Is(err, datadir.ErrInUse) {
			t.Errorf("%s: got %v", name, err)
			if err == nil {
				_ = f.close()
			}
		}
		write(t, filepath.Join(dir, "authz.secret")) // then it is the folder's own
		f, err := openFolder(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
	}
}
