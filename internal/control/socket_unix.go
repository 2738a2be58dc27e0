//go:build unix

package control

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// restrict sets the mode of a socket before it gets its name. Linux gives the name that mode; others refuse or ignore
// it, and there the mode is set right afterwards.
func restrict(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), uint32(private.FileMode)) })
}

// isRefused tells whether err says that nobody listens.
func isRefused(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
