//go:build unix

package segments

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

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
