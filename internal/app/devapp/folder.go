package devapp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cinnabar-hub/cinnabar/internal/datadir"
)

// marker names the file that says that a folder's contents are throw-away, so that what a killed ephemeral server left can be
// told from data. Only a file with this very text says so: the name alone could be anybody's.
const (
	marker     = "ephemeral"
	markerText = "What hub dev made in this folder is removed when it ends.\n"
)

// folder is the data folder in use.
type folder struct {
	*datadir.Dir

	unlock    func() error
	ephemeral bool
	made      bool     // the folder itself was made here
	strays    []string // files beside the data that were not there before
}

// openFolder opens and locks the data folder. An ephemeral one must hold nothing that has the name of a file made here, but what
// an earlier ephemeral server left; nothing is made in a folder that is refused.
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
	if !f.made {
		if err := checkForeign(path, ephemeral); err != nil {
			return nil, err
		}
	}
	f.strays = strays(path)
	var err error
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

// checkForeign refuses a folder that holds somebody's files where this program would write or remove its own.
func checkForeign(path string, ephemeral bool) error {
	d, err := datadir.Open(path)
	if err != nil {
		return err
	}
	f := &folder{Dir: d}
	if isMarked(path) {
		return nil
	}
	if ephemeral {
		for _, name := range append(f.owned(), f.Join(marker)) {
			if there(name) {
				return fmt.Errorf("%w: %s; --ephemeral needs a folder of its own", datadir.ErrInUse, name)
			}
		}
		return nil
	}
	for _, name := range []string{f.HubConfigFile(), f.AuthzConfigFile()} {
		if there(name) && !there(f.SecretFile()) {
			return fmt.Errorf("%w: %s is there without %s, so it may be somebody's own; move it away, or use another --data folder",
				datadir.ErrInUse, name, f.SecretFile())
		}
	}
	return nil
}

// strays names the files beside the data that opening the folder will make, and those that a killed ephemeral server made.
func strays(path string) []string {
	marked := isMarked(path)
	var names []string
	for name, ours := range map[string]string{".gitignore": "*\n", "lock": ""} {
		file := filepath.Join(path, name)
		if !there(file) || marked && holds(file, ours) {
			names = append(names, name)
		}
	}
	return names
}

func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// isMarked says whether an ephemeral server was killed in a folder, or runs there.
func isMarked(path string) bool { return holds(filepath.Join(path, marker), markerText) }

func holds(name, want string) bool {
	text, err := os.ReadFile(name) //nolint:gosec // a file of the data folder
	return err == nil && string(text) == want
}

func (f *folder) prepare() error {
	if isMarked(f.Path()) {
		if err := f.wipe(); err != nil { // a killed ephemeral server's remains
			return err
		}
	}
	if f.ephemeral {
		return f.WriteFile(marker, []byte(markerText))
	}
	return f.CheckFiles()
}

// close releases the folder; an ephemeral one is emptied of what was made here, and removed if it was made here and nobody
// put anything else into it.
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
	if !f.ephemeral {
		return err
	}
	for _, name := range f.strays {
		err = errors.Join(err, remove(f.Join(name)))
	}
	if left, rerr := os.ReadDir(f.Path()); f.made && rerr == nil && len(left) == 0 {
		err = errors.Join(err, remove(f.Path()))
	}
	return err
}

// owned names what this program makes in a data folder, but for the marker, the lock and .gitignore.
func (f *folder) owned() []string {
	names := []string{
		f.TLSDir(), f.HistoryDir(), f.SecretFile(), f.HubConfigFile(), f.AuthzConfigFile(), f.Join(brokerKeySet),
		f.PublishHeaderFile(), f.SubscribeHeaderFile(), f.ControlSocket(),
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		names = append(names, f.StoreFile()+suffix)
	}
	return names
}

// wipe removes what this program makes in a data folder, and nothing else; the marker last, so that a wipe that was interrupted
// is done again.
func (f *folder) wipe() error {
	var errs []error
	for _, name := range f.owned() {
		if name == f.TLSDir() || name == f.HistoryDir() {
			errs = append(errs, os.RemoveAll(name))
			continue
		}
		errs = append(errs, remove(name))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return remove(f.Join(marker))
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
