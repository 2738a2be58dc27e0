package local

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// unlockFile does nothing: closing the file gives up its locks.
func unlockFile(*os.File) error { return nil }

// syncDir does nothing: Windows cannot flush a folder, and NTFS journals its names.
func syncDir(*os.File) error { return nil }

// isNoSpace tells whether err says that the disk or a quota is full.
func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
