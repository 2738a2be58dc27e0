//go:build unix

package segments

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

// mapFile maps the first bytes of f for reading.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var data []byte
	var mapErr error
	err = conn.Control(func(fd uintptr) {
		data, mapErr = unix.Mmap(int(fd), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	})
	if err = errors.Join(err, os.NewSyscallError("mmap", mapErr)); err != nil {
		return nil, nil, err
	}
	return data, func() error { return os.NewSyscallError("munmap", unix.Munmap(data)) }, nil
}

// syncDir makes a folder's names durable.
func syncDir(f *os.File) error { return f.Sync() }

// isNoSpace tells whether err says that the disk or a quota is full.
func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
