// Package needs is how tests say what a machine lacks. A test that cannot run is left out with a reason, which package report
// prints; where everything is required (CINNABAR_TEST_REQUIRE=all, as in CI) being left out is a failure. So nothing is skipped
// in silence, and luck is no reason.
package needs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Program gives the path of a program that the test cannot do without.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Skipf("needs %s, which is not on this machine", name)
	}
	return path
}

// Namespaces gives the flags of unshare that make these namespaces: the given ones, or with -r before them where only a user
// namespace gives the right.
func Namespaces(tb testing.TB, flags ...string) []string {
	tb.Helper()
	unshare := Program(tb, "unshare")
	if exec.CommandContext(tb.Context(), unshare, append(slices.Clone(flags), "true")...).Run() == nil {
		return flags
	}
	flags = append([]string{"-r"}, flags...)
	if out, err := exec.CommandContext(tb.Context(), unshare, append(slices.Clone(flags), "true")...).CombinedOutput(); err != nil {
		tb.Skipf("needs the right to make namespaces: unshare %s: %v: %s", strings.Join(flags, " "), err, bytes.TrimSpace(out))
	}
	return flags
}

// Checkout leaves a test out that asks git about the project, where the sources at root came without their repository. Whatever
// else git has to complain about is a failure.
func Checkout(tb testing.TB, root string) {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, fs.ErrNotExist) {
		tb.Skip("needs a git checkout")
	}
	cmd := exec.CommandContext(tb.Context(), Program(tb, "git"), "rev-parse", "--git-dir")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("git rev-parse: %v: %s", err, out)
	}
}

// NodePackage gives the path of node, for a test that uses a package of the npm project in a folder.
func NodePackage(tb testing.TB, dir, name string) string {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(dir, "node_modules", name)); err != nil {
		tb.Skipf("needs the npm package %s: run npm ci --prefix test/interop", name)
	}
	return Program(tb, "node")
}

// PermissionBits leaves a test of file modes out on Windows, where files have access control lists and no such bits.
func PermissionBits(tb testing.TB) {
	tb.Helper()
	if runtime.GOOS == "windows" {
		tb.Skip("needs permission bits, which Windows does not have")
	}
}

// SymbolicLinks leaves a test that makes links out on Windows, where that takes a privilege no test can count on.
func SymbolicLinks(tb testing.TB) {
	tb.Helper()
	if runtime.GOOS == "windows" {
		tb.Skip("needs the privilege to make symbolic links, which Windows gives to few")
	}
}

// RenamesInUse leaves a test that renames a folder with open files in it out on Windows, which refuses to.
func RenamesInUse(tb testing.TB) {
	tb.Helper()
	if runtime.GOOS == "windows" {
		tb.Skip("needs a system that renames folders in use, which Windows is not")
	}
}

// Shell gives the path of the shell for lines as the documentation has them. A test of those is left out on Windows: they are for a
// POSIX shell, which takes what Windows has for paths for something else.
func Shell(tb testing.TB) string {
	tb.Helper()
	if runtime.GOOS == "windows" {
		tb.Skip("needs a POSIX shell that takes this system's paths, which Windows does not have")
	}
	return Program(tb, "sh")
}

// Hangup gives what sends SIGHUP to the process of the test. Until the test ends the signal is caught here too, so that code which does
// not catch it fails its test, and does not end it; that also undoes an ignored SIGHUP, as nohup leaves it. A test is left
// out on Windows, where no process can send it.
func Hangup(tb testing.TB) (send func()) {
	tb.Helper()
	if runtime.GOOS == "windows" {
		tb.Skip("needs SIGHUP, which no process on Windows can send")
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		tb.Fatal(err)
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	tb.Cleanup(func() { signal.Stop(caught) })
	return func() {
		tb.Helper()
		if err := self.Signal(syscall.SIGHUP); err != nil {
			tb.Fatal(err)
		}
		<-caught
	}
}
