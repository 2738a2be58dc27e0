package datadir

import (
	"errors"
	"fmt"
	"os"
)

// ErrLocked says that another process uses the folder.
var ErrLocked = errors.New("datadir: in use by another process")

// Lock makes this process the folder's only server; commands do not lock. The lock ends with unlock, or with the process.
// It returns ErrLocked when another process has it.
func (d *Dir) Lock() (unlock func() error, err error) {
	f, err := os.OpenFile(d.Join("lock"), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, d.path), f.Close())
	}
	return f.Close, nil
}
