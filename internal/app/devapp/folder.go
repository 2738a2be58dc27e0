package devapp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cinnabar-hub/cinnabar/internal/datadir"
)

// marker says that a folder's contents are throw-away, so that what a killed ephemeral server left can be told from data.
const marker = "ephemeral"

// folder is the data folder in use.
type folder struct {
	*datadir.Dir

	unlock    func() error
	ephemeral bool
	made      bool // the folder itself was made here
	empty     bool // it held nothing before
}

// openFolder opens and locks the data folder. An ephemeral one must hold no data but what an earlier ephemeral server left.
func openFolder(path string, ephemeral bool) (*folder, error) {
	f := &folder{ephemeral: ephemeral}
	if ephemeral && path == "" {
		fresh, err := os.MkdirTemp("", "cinnabar-*") // 0700
		if err != nil {
			return nil, fmt.Errorf("make data folder: %w", err)
		}
		path, f.made = fresh, true
	} else if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		f.made = true
	}
	entries, err := os.ReadDir(path)
	f.empty = err == nil && len(entries) == 0
	if f.Dir, err = datadir.Create(path); err != nil {
		return nil, err
	}
	if f.unlock, err = f.Lock(); err != nil {
		return nil, err
	}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(err, f.unlock())
	}
	return f, nil
}

func (f *folder) prepare() error {
	_, err := os.Stat(f.Join(marker))
	left := err == nil
	switch {
	case left:
		if err := f.wipe(); err != nil { // a killed ephemeral server's remains
			return err
		}
	case f.ephemeral && f.HoldsStore():
		return fmt.Errorf("%w: %s; --ephemeral needs a folder of its own", datadir.ErrInUse, f.Path())
	}
	if f.ephemeral {
		return f.WriteFile(marker, []byte("Everything in this folder is removed when the server ends.\n"))
	}
	return f.CheckFiles()
}

// close releases the folder; an ephemeral one is emptied, and removed if it was made here.
func (f *folder) close() error {
	var err error
	if f.ephemeral {
		err = f.wipe()
	} else {
		for _, name := range []string{f.PublishHeaderFile(), f.SubscribeHeaderFile()} {
			err = errors.Join(err, remove(name)) // their tokens are for a running server
		}
	}
	err = errors.Join(err, f.unlock())
	switch {
	case f.ephemeral && f.made:
		err = errors.Join(err, os.RemoveAll(f.Path()))
	case f.ephemeral && f.empty:
		err = errors.Join(err, remove(f.Join(".gitignore")), remove(f.Join("lock")))
	}
	return err
}

// wipe removes what this program makes in a data folder, and nothing else.
func (f *folder) wipe() error {
	var errs []error
	for _, name := range []string{f.TLSDir(), f.HistoryDir()} {
		errs = append(errs, os.RemoveAll(name))
	}
	database, err := filepath.Glob(f.StoreFile() + "*")
	errs = append(errs, err)
	for _, name := range append(database, f.SecretFile(), f.HubConfigFile(), f.AuthzConfigFile(), f.Join(brokerKeySet),
		f.PublishHeaderFile(), f.SubscribeHeaderFile(), f.Join(marker)) {
		errs = append(errs, remove(name))
	}
	return errors.Join(errs...)
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
