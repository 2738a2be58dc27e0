package segments

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes a file's contents and size durable, but not its times.
func syncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = conn.Control(func(fd uintptr) {
		for {
			syncErr = unix.Fdatasync(int(fd))
			if !errors.Is(syncErr, unix.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync", syncErr)
}
