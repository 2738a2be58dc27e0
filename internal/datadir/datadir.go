package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// ErrNoData says that a folder is not a data folder, or that nothing has been written to it yet.
var ErrNoData = errors.New("datadir: not a data folder")

// ErrInUse says that a folder already holds data, where an empty one was asked for.
var ErrInUse = errors.New("datadir: already holds data")

const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// Dir is a data folder.
type Dir struct{ path string }

// Open gives an existing data folder. It returns ErrNoData or private.ErrLoose.
func Open(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: %s", ErrNoData, path)
	}
	if err := private.Check(abs, info); err != nil {
		return nil, err
	}
	return &Dir{path: abs}, nil
}

// Create opens the data folder, and makes it first when there is none. It returns private.ErrLoose for a folder open to others.
func Create(path string) (*Dir, error) {
	if err := os.MkdirAll(path, dirMode); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(d.Join(".gitignore")); errors.Is(err, fs.ErrNotExist) {
		if err := d.WriteFile(".gitignore", []byte("*\n")); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Path is the absolute path of the folder.
func (d *Dir) Path() string { return d.path }

// Join gives the absolute path of a file in the folder.
func (d *Dir) Join(elem ...string) string { return filepath.Join(append([]string{d.path}, elem...)...) }

// HubConfigFile is the effective configuration of the hub, written at start.
func (d *Dir) HubConfigFile() string { return d.Join("hub.yaml") }

// AuthzConfigFile is the effective configuration of the authorization server, written at start.
func (d *Dir) AuthzConfigFile() string { return d.Join("authz.yaml") }

// StoreFile is the authorization server's database.
func (d *Dir) StoreFile() string { return d.Join("authz.db") }

// SecretFile seals what the database and the cookies hold.
func (d *Dir) SecretFile() string { return d.Join("authz.secret") }

// HistoryDir is the folder of the update history.
func (d *Dir) HistoryDir() string { return d.Join("history") }

// ControlSocket is the socket on which a running hub serves commands about its history.
func (d *Dir) ControlSocket() string { return d.Join("hub.sock") }

// TLSDir is the folder of the development certificate.
func (d *Dir) TLSDir() string { return d.Join("tls") }

// CAFile is the certificate authority that signed the development certificate.
func (d *Dir) CAFile() string { return d.Join("tls", "ca.crt") }

// PublishHeaderFile holds an Authorization header with a token that may publish, kept fresh while the server runs.
func (d *Dir) PublishHeaderFile() string { return d.Join("publish.header") }

// SubscribeHeaderFile holds an Authorization header with a token that may subscribe, kept fresh while the server runs.
func (d *Dir) SubscribeHeaderFile() string { return d.Join("subscribe.header") }

// CheckFiles refuses files in the folder, and in that of the certificate, that other users could read. It returns private.ErrLoose.
func (d *Dir) CheckFiles() error {
	if err := checkEntries(d.path); err != nil {
		return err
	}
	if _, err := os.Stat(d.TLSDir()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return checkEntries(d.TLSDir())
}

func checkEntries(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("read data folder: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // a temporary file of the database
		}
		if err != nil {
			return fmt.Errorf("read data folder: %w", err)
		}
		if err := private.Check(filepath.Join(folder, e.Name()), info); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile replaces a file in the folder, as a whole, 0600.
func (d *Dir) WriteFile(name string, data []byte) error {
	target := d.Join(name)
	if err := os.MkdirAll(filepath.Dir(target), dirMode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(name)+".*") // CreateTemp makes it 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// HubURL gives the hub URL that the folder's effective configuration names. It returns ErrNoData when there is none yet.
func (d *Dir) HubURL() (string, error) {
	raw, err := os.ReadFile(d.HubConfigFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrNoData, d.path)
	}
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	var c struct {
		PublicURL string `yaml:"public_url"`
	}
	if err := yaml.Unmarshal(raw, &c); err != nil || c.PublicURL == "" {
		return "", fmt.Errorf("%w: %s names no public_url", ErrNoData, d.HubConfigFile())
	}
	return c.PublicURL, nil
}
