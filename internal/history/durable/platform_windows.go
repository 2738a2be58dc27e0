package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// lockFile takes an exclusive lock on f, which ends with the process or the file, or returns
// history.ErrLocked.
func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return history.ErrLocked
	}
	return os.NewSyscallError("LockFileEx", err)
}

// Unlock does nothing: closing the file gives up its locks.
func Unlock(*os.File) error { return nil }

// syncNames does nothing: Windows cannot flush a folder, and NTFS journals its names.
func syncNames(*os.File) error { return nil }

// IsNoSpace tells whether err says that the disk or a quota is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
