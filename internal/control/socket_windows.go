package control

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/windows"
)

// restrict does nothing: sockets have no modes on Windows.
func restrict(string, string, syscall.RawConn) error { return nil }

// isRefused tells whether err says that nobody listens.
func isRefused(err error) bool {
	return errors.Is(err, windows.WSAECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
