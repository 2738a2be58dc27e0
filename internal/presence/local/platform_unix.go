//go:build unix

package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

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
