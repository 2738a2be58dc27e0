//go:build unix

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// lockFile takes an exclusive lock on f, which ends with the process or the file, or returns
// history.ErrLocked.
func lockFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			lockErr = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
			if !errors.Is(lockErr, unix.EINTR) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return err
	case errors.Is(lockErr, unix.EWOULDBLOCK):
		return history.ErrLocked
	}
	return os.NewSyscallError("flock", lockErr)
}

// Unlock gives up a lock (flock) that is held on f, by whoever in this process took it. Closing f does not while a mapping of it, or a copy of
// its descriptor, keeps it open. On Windows it does nothing: there closing the file gives up its locks.
func Unlock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) { lockErr = unix.Flock(int(fd), unix.LOCK_UN) })
	return errors.Join(err, os.NewSyscallError("flock", lockErr))
}

// syncNames makes a folder's names durable.
func syncNames(f *os.File) error { return f.Sync() }

// IsNoSpace tells whether err says that the disk or a quota is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
