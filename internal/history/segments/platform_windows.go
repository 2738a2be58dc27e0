package segments

import (
	"errors"
	"os"
	"unsafe"

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

// mapFile maps the first bytes of f for reading.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	m, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateFileMapping", err)
	}
	at, err := windows.MapViewOfFile(m, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	// The view keeps the mapping.
	if err = errors.Join(os.NewSyscallError("MapViewOfFile", err), windows.CloseHandle(m)); err != nil {
		return nil, nil, err
	}
	// The address is no object of Go's, so converting it is fine; this way of writing it is one that vet can follow.
	data := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size)
	return data, func() error { return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(at)) }, nil
}

// syncDir does nothing: Windows cannot flush a folder, and NTFS journals its names.
func syncDir(*os.File) error { return nil }

// isNoSpace tells whether err says that the disk or a quota is full.
func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
