package sqlstore_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/sqlstore"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func options(path string) sqlstore.Options {
	return sqlstore.Options{Path: path, Secret: secret(), SecretFile: "data/secret", Migrate: true}
}

func mustOpen(t *testing.T, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustPut(t *testing.T, s store.Store, id string) {
	t.Helper()
	if err := s.PutClient(t.Context(), store.Client{ID: id}); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_options(t *testing.T) {
	for name, o := range map[string]sqlstore.Options{
		"no path":        {Secret: secret()},
		"no secret":      {Path: "x.db"},
		"a short secret": {Path: "x.db", Secret: secret()[1:]},
	} {
		if s, err := sqlstore.Open(t.Context(), o); err == nil {
			t.Errorf("%s: Open succeeded", name)
			_ = s.Close()
		}
	}
}

func TestOpen_modes(t *testing.T) {
	needs.PermissionBits(t)
	t.Run("makes folder 0700 and all files 0600", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new", "deep", "authz.db")
		s := mustOpen(t, options(path))
		mustPut(t, s, "app")
		for name, want := range map[string]fs.FileMode{
			filepath.Dir(path): fs.ModeDir | 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
		} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != want {
				t.Errorf("%s has mode %v, want %v", filepath.Base(name), info.Mode(), want)
			}
		}
	})
	for _, looser := range []struct {
		name, file string
		mode       fs.FileMode
		advice     string
	}{
		{"a folder that others can list", ".", 0o750, "chmod 0700"},
		{"a folder that others can enter", ".", 0o711, "chmod 0700"},
		{"a file that others can read", "authz.db", 0o640, "chmod 0600"},
		{"a log that others can write", "authz.db-wal", 0o602, "chmod 0600"},
	} {
		t.Run("refuses "+looser.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			path := filepath.Join(folder, "authz.db")
			s := mustOpen(t, options(path)) // stays open, so that the log is there
			mustPut(t, s, "app")
			target := filepath.Join(folder, looser.file)
			if err := os.Chmod(target, looser.mode); err != nil {
				t.Fatal(err)
			}
			for _, migrate := range []bool{true, false} {
				o := options(path)
				o.Migrate = migrate
				_, err := sqlstore.Open(t.Context(), o)
				if !errors.Is(err, private.ErrLoose) || !strings.Contains(err.Error(), looser.advice+" "+target) {
					t.Errorf("Open = %v, want advice to %s", err, looser.advice)
				}
			}
		})
	}
}

func TestOpen_links(t *testing.T) {
	needs.SymbolicLinks(t)
	root := t.TempDir()
	path := filepath.Join(root, "data", "authz.db")
	mustPut(t, mustOpen(t, options(path)), "app")
	link := filepath.Join(root, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, options(link)) // root is open to others: what counts is where the file is
	if _, err := s.Client(t.Context(), "app"); err != nil {
		t.Error(err)
	}
}

func TestOpen_oddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b", "100%41?mode=memory&x#y.db")
	if runtime.GOOS == "windows" {
		path = filepath.Join(t.TempDir(), "a b", "100%41&x#y.db")
	}
	mustPut(t, mustOpen(t, options(path)), "app")
	if err := private.CheckFile(path); err != nil {
		t.Error(err)
	}
}

func TestOpen_missing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	o := options(filepath.Join(folder, "authz.db"))
	o.Migrate = false
	if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a command made the folder: %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want fs.ErrNotExist", err)
	}
	if made, err := os.ReadDir(folder); err != nil || len(made) != 0 {
		t.Errorf("a command made %v (%v)", made, err)
	}
}

func TestOpen_wrongSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "authz.db")
	mustOpen(t, options(path))
	for _, migrate := range []bool{true, false} {
		o := options(path)
		o.Secret, o.Migrate = bytes.Repeat([]byte{8}, 32), migrate
		_, err := sqlstore.Open(t.Context(), o)
		if !errors.Is(err, store.ErrSecret) || !strings.Contains(err.Error(), "data/secret") {
			t.Errorf("Open = %v, want store.ErrSecret that names the secret file", err)
		}
	}
}

func TestStore_privateKeysAreSealed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	s := mustOpen(t, options(filepath.Join(folder, "authz.db")))
	private := []byte("a private part that must not be found in any file")
	key := store.Key{ID: "k", Issuer: "https://auth.example.com", Algorithm: "ES256", Private: private}
	if err := s.SaveKeys(t.Context(), key.Issuer, 0, []store.Key{key}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	issuerFound := false
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, private) || bytes.Contains(data, secret()) {
			t.Errorf("%s holds a secret", file.Name())
		}
		issuerFound = issuerFound || bytes.Contains(data, []byte(key.Issuer))
	}
	if !issuerFound {
		t.Error("the test looked into the wrong files")
	}
}
