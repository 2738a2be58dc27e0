package secretfile

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/as/store/newfile"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// Bytes is the size of a secret.
const Bytes = 32

const (
	prefix  = "cinnabar-secret-v1:"
	maxSize = 256 // far more than a well-formed file has
)

// ErrFormat says that a file is not a secret file.
var ErrFormat = errors.New("secretfile: not a secret file")

// LoadOrCreate returns the secret in path, and makes a new one there, and missing folders, when the file does not exist. Errors wrap ErrFormat,
// private.ErrLoose or an error of the file system; they name the file and never contain what is in it.
func LoadOrCreate(path string) ([]byte, error) {
	secret, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create secret file: %w", err)
	}
	return Load(path) // whoever won: what is in the file is the secret
}

// Load returns the secret in path; fs.ErrNotExist when there is no such file. Other errors are those of LoadOrCreate.
func Load(path string) ([]byte, error) {
	if err := private.CheckFile(path); err != nil {
		return nil, fmt.Errorf("load secret file: %w", err)
	}
	f, err := os.Open(path) //nolint:gosec // the operator says where the secret is
	if err != nil {
		return nil, fmt.Errorf("load secret file: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("load secret file: %w", err)
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("load secret file: %s: %w", path, ErrFormat)
	}
	secret, err := decode(string(text))
	if err != nil {
		return nil, fmt.Errorf("load secret file: %s: %w", path, err)
	}
	return secret, nil
}

func decode(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), prefix)
	if !ok {
		return nil, ErrFormat
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(secret) != Bytes {
		return nil, ErrFormat // the decoder's error would quote the secret
	}
	return secret, nil
}

// create writes a whole new secret beside path and puts it into place, so that nobody ever reads half a secret and nobody's secret
// is replaced.
func create(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), private.FolderMode); err != nil {
		return err
	}
	secret := make([]byte, Bytes)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // CreateTemp gives mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(prefix + base64.RawURLEncoding.EncodeToString(secret) + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return newfile.Place(f.Name(), path, private.FileMode)
}
