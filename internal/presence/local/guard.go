package local

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
)

var (
	// errDamaged says that the file is not what this package has written.
	errDamaged = errors.New("local: file is damaged")
	// errPanicked marks the error of a call in which bbolt has panicked: what it left locked stays locked.
	errPanicked = errors.New("the database is inconsistent")
)

// contain calls fn and makes an error of its panic. bbolt panics on pages that are not what they should be, and touching a page beyond the end
// of a file that was cut off is a fault of the memory, which would end the process.
func contain(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %v", errDamaged, errPanicked, p)
		}
	}()
	return fn()
}

// abandon closes the file of a database that cannot be closed any more. Its mapping stays until the process ends.
func abandon(f *os.File) error { return errors.Join(unlockFile(f), f.Close()) }
