//go:build unix

package bolt

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

// unlockFile gives up a lock that bbolt holds on f. Closing f would not: a mapping of it, which is out of reach, keeps it open.
func unlockFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) { lockErr = unix.Flock(int(fd), unix.LOCK_UN) })
	return errors.Join(err, os.NewSyscallError("flock", lockErr))
}

// syncDir makes a folder's names durable.
func syncDir(f *os.File) error { return f.Sync() }

// isNoSpace tells whether err says that the disk or a quota is full.
func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
