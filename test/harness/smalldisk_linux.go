package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// SmallDisk is a file system of a few megabytes, in memory, that only the programs started on it see: it is mounted in a mount
// namespace of its own, which ends with the test, so nothing is left mounted whatever happens.
type SmallDisk struct {
	Path string // where programs on it find it

	enter   []string // the command that starts a program in the namespace
	outside string   // where the test finds it
}

// NewSmallDisk makes a file system of so many bytes. A test on a machine where nobody may do that is left out.
func NewSmallDisk(tb testing.TB, bytes int) *SmallDisk {
	tb.Helper()
	unshare, nsenter := needs.Program(tb, "unshare"), needs.Program(tb, "nsenter")
	flags, enter := needs.Namespaces(tb, "-m"), []string{nsenter, "-m"}
	if flags[0] == "-r" {
		enter = []string{nsenter, "-U", "--preserve-credentials", "-m"}
	}
	d := &SmallDisk{Path: filepath.Join(tb.TempDir(), "disk")}
	if err := os.Mkdir(d.Path, 0o700); err != nil {
		tb.Fatal(err)
	}
	script := fmt.Sprintf(`mount -t tmpfs -o size=%d,mode=0700 tmpfs "$1" && echo mounted && exec cat`, bytes)
	cmd := exec.Command(unshare, append(flags, "sh", "-c", script, "sh", d.Path)...)
	hold, err := cmd.StdinPipe() // its end is that of the holder, even when nobody is left to stop it
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = hold.Close() })
	holder := Run(tb, "small disk", cmd)
	if !holder.Out.WaitFor("mounted", Patience) {
		select {
		case <-holder.Done:
			tb.Skipf("needs the right to mount a file system: %s", holder.Out)
		case <-time.After(time.Second):
			tb.Fatalf("mounting a file system did not end within %v: %s", Patience, holder.Out)
		}
	}
	pid := strconv.Itoa(holder.Cmd.Process.Pid)
	d.enter = append(enter, "-t", pid)
	d.outside = filepath.Join("/proc", pid, "root", d.Path)
	return d
}

// Start runs one of our programs where it sees the disk.
func (d *SmallDisk) Start(tb testing.TB, name string, args ...string) *Process {
	tb.Helper()
	return Run(tb, name, d.command(name, args...))
}

// Command runs one of our programs where it sees the disk, to its end.
func (d *SmallDisk) Command(tb testing.TB, stdin, name string, args ...string) (stdout, stderr string, code int) {
	tb.Helper()
	return finish(tb, stdin, name, d.command(name, args...), Patience)
}

func (d *SmallDisk) command(name string, args ...string) *exec.Cmd {
	all := append(append([]string{}, d.enter[1:]...), Program(name))
	return exec.Command(d.enter[0], append(all, args...)...)
}

// Fill leaves no byte free.
func (d *SmallDisk) Fill(tb testing.TB) {
	tb.Helper()
	f, err := os.OpenFile(filepath.Join(d.outside, "filler"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		_, err := f.Write(chunk)
		switch {
		case err == nil:
		case errors.Is(err, syscall.ENOSPC):
			chunk = chunk[:len(chunk)/2]
		default:
			tb.Fatal(err)
		}
	}
}

// Free takes away what Fill has written.
func (d *SmallDisk) Free(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(filepath.Join(d.outside, "filler")); err != nil {
		tb.Fatal(err)
	}
}
