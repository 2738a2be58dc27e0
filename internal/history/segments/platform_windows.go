package segments

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

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
