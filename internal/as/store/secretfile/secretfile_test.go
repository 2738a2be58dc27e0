package secretfile_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as/store/secretfile"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

func TestLoadOrCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if _, err := secretfile.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Load(missing) = %v, want fs.ErrNotExist", err)
	}
	first, err := secretfile.LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != secretfile.Bytes || bytes.Equal(first, make([]byte, secretfile.Bytes)) {
		t.Fatalf("LoadOrCreate gave %d bytes that are not random", len(first))
	}
	for _, load := range []func(string) ([]byte, error){secretfile.LoadOrCreate, secretfile.Load} {
		again, err := load(path)
		if err != nil || !bytes.Equal(again, first) {
			t.Errorf("the secret changed (%v)", err)
		}
	}
	other, err := secretfile.LoadOrCreate(path + "2")
	if err != nil || bytes.Equal(other, first) {
		t.Errorf("two files have one secret (%v)", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "cinnabar-secret-v1:" + base64.RawURLEncoding.EncodeToString(first) + "\n"; string(text) != want {
		t.Error("the file does not have the documented format")
	}
	if err := private.CheckFile(path); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("%d files, want 2 (%v)", len(left), err)
	}
}

func TestLoadOrCreate_makesFolders(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "deep")
	if _, err := secretfile.LoadOrCreate(filepath.Join(folder, "secret")); err != nil {
		t.Fatal(err)
	}
	if err := private.CheckFolder(folder); err != nil {
		t.Error(err)
	}
}

func TestLoadOrCreate_together(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	secrets, errs := make([][]byte, 16), make([]error, 16)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() { secrets[i], errs[i] = secretfile.LoadOrCreate(path) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range secrets {
		if !bytes.Equal(secrets[i], secrets[0]) {
			t.Fatal("two processes that start at once have different secrets")
		}
	}
}

func TestLoad_refuses(t *testing.T) {
	good := base64.RawURLEncoding.EncodeToString(make([]byte, secretfile.Bytes))
	for name, text := range map[string]string{
		"an empty file":    "",
		"no prefix":        good,
		"a later version":  "cinnabar-secret-v2:" + good,
		"a short secret":   "cinnabar-secret-v1:" + good[:40],
		"a long secret":    "cinnabar-secret-v1:" + good + "AAAA",
		"padding":          "cinnabar-secret-v1:" + good + "=",
		"the other base64": "cinnabar-secret-v1:" + strings.Replace(good, "AA", "++", 1),
		"stray bits":       "cinnabar-secret-v1:" + good[:len(good)-1] + "B",
		"two lines":        "cinnabar-secret-v1:" + good + "\n" + good,
		"a large file":     "cinnabar-secret-v1:" + good + strings.Repeat("\n", 10_000),
	} {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := secretfile.LoadOrCreate(path)
		if !errors.Is(err, secretfile.ErrFormat) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: LoadOrCreate = %v, want ErrFormat that names the file", name, err)
		}
		if err != nil && strings.Contains(err.Error(), good[:20]) {
			t.Errorf("%s: the error holds the secret", name)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	path := filepath.Join(t.TempDir(), "secret")
	if _, err := secretfile.LoadOrCreate(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := secretfile.LoadOrCreate(path); !errors.Is(err, private.ErrLoose) || !strings.Contains(err.Error(), "chmod 0600 "+path) {
		t.Errorf("LoadOrCreate(0644) = %v, want private.ErrLoose and advice", err)
	}
}
