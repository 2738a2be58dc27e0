package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// Errors of this package, wrapped with the path.
var (
	// ErrInUse says that a running process listens on the socket.
	ErrInUse = errors.New("control: a running process has this socket")
	// ErrNotSocket says that the path is taken by something that is no socket.
	ErrNotSocket = errors.New("control: not a socket")
	// ErrPathTooLong says that the system cannot have a socket at a path of this length.
	ErrPathTooLong = errors.New("control: path of the socket is too long")
	// ErrNotRunning says that nobody listens on the socket.
	ErrNotRunning = errors.New("control: no hub is running")
	// ErrUnsupported says that the hub's history cannot do what was asked for.
	ErrUnsupported = errors.New("control: not supported by this history")
	// ErrBusy says that the hub already copies, verifies or compacts its history for somebody else.
	ErrBusy = errors.New("control: the hub is busy")
	// ErrProtocol says that the other side speaks another version of the protocol, or something else.
	ErrProtocol = errors.New("control: unexpected answer")
	// ErrIncomplete says that a copy ended before it was complete.
	ErrIncomplete = errors.New("control: the copy is not complete")
	// ErrFailed says that the hub could not do what was asked for, or ended before it had.
	ErrFailed = errors.New("control: the hub did not do it")
)

const (
	// othersWrite is the right that other users must not have on the folder of the socket.
	othersWrite fs.FileMode = 0o002

	// probeTimeout bounds the attempt to find out whether somebody listens.
	probeTimeout = 2 * time.Second
)

// listen binds the socket. It replaces one on which nobody listens.
func listen(ctx context.Context, path string) (*net.UnixListener, error) {
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := clearStale(ctx, path); err != nil {
		return nil, err
	}
	addr, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	lc := net.ListenConfig{Control: restrict}
	ln, err := lc.Listen(ctx, "unix", addr)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	unixLn, ok := ln.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("control socket %s: listener is a %T", path, ln), ln.Close())
	}
	unixLn.SetUnlinkOnClose(false) // by name; it may be a successor's by then
	if err := os.Chmod(path, private.FileMode); err != nil && runtime.GOOS != "windows" {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), ln.Close(), os.Remove(path))
	}
	return unixLn, nil
}

// checkFolder makes the folder of the socket, or refuses one in which other users could put a socket of their own.
func checkFolder(folder string) error {
	if err := os.MkdirAll(folder, private.FolderMode); err != nil {
		return fmt.Errorf("folder of the control socket: %w", err)
	}
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("folder of the control socket: %w", err)
	}
	if err := private.CheckRights(folder, info, othersWrite); err != nil {
		return fmt.Errorf("folder of the control socket: %w", err)
	}
	return nil
}

// shorten returns an address for the socket that systems take, which limit it to about a hundred bytes: the path, or a
// way to it through a link in the folder for temporary files. The caller calls done when the socket is bound or
// connected.
func shorten(path string) (addr string, done func(), err error) {
	most := len(syscall.RawSockaddrUnix{}.Path) - 1
	if len(path) <= most {
		return path, func() {}, nil
	}
	tooLong := fmt.Errorf("%w: %s has %d bytes, and this system allows %d; set control_socket to a shorter one", ErrPathTooLong, path, len(path), most)
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return "", nil, fmt.Errorf("%w (%w)", tooLong, err)
	}
	temp, err := os.MkdirTemp("", "hub-") // 0700
	if err != nil {
		return "", nil, fmt.Errorf("%w (%w)", tooLong, err)
	}
	link := filepath.Join(temp, "d")
	done = func() { _, _ = os.Remove(link), os.Remove(temp) }
	if err := os.Symlink(folder, link); err != nil {
		done()
		return "", nil, fmt.Errorf("%w (%w)", tooLong, err)
	}
	addr = filepath.Join(link, filepath.Base(path))
	if len(addr) > most {
		done()
		return "", nil, tooLong
	}
	return addr, done, nil
}

// clearStale removes a socket on which nobody listens.
func clearStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("control socket: %w", err)
	case !isSocket(info):
		return fmt.Errorf("%w: %s is something else, which was left alone; set control_socket to another path", ErrNotSocket, path)
	}
	switch conn, err := dialUnix(ctx, path); {
	case err == nil:
		return errors.Join(fmt.Errorf("%w: %s; stop it, or set control_socket to another path", ErrInUse, path), conn.Close())
	case !isRefused(err):
		return fmt.Errorf("control socket %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace the control socket of a process that has ended: %w", err)
	}
	return nil
}

// dialUnix connects to the socket at path.
func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	addr, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	d := net.Dialer{Timeout: probeTimeout}
	return d.DialContext(ctx, "unix", addr)
}

// isSocket tells whether a file may be a socket. Not every version of Windows says so of one.
func isSocket(info fs.FileInfo) bool {
	return info.Mode()&fs.ModeSocket != 0 || runtime.GOOS == "windows" && info.Mode()&fs.ModeIrregular != 0
}
