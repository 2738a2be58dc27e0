package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/shell"
)

// Modes of what this package makes.
const (
	FolderMode fs.FileMode = 0o700
	FileMode   fs.FileMode = 0o600
)

const othersMask fs.FileMode = 0o077

// Errors of this package.
var (
	// ErrLoose says that users other than the owner have rights on a folder or file.
	ErrLoose = errors.New("private: open to other users")
	// ErrKind says that a path is not the folder or regular file it should be.
	ErrKind = errors.New("private: wrong kind of file")
)

// EnsureFolder makes path and missing parents with mode 0700, or checks that path is a folder that only its owner can use.
func EnsureFolder(path string) error {
	if err := os.MkdirAll(path, FolderMode); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return CheckFolder(path)
}

// CheckFolder returns nil for a folder that only its owner can use. Symbolic links are followed. The error of a looser folder wraps
// ErrLoose and names the command that mends it; the error of a missing one wraps fs.ErrNotExist.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("check folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("check folder: %s: %w: not a folder", path, ErrKind)
	}
	return checkMode(path, "folder", info.Mode(), FolderMode)
}

// CheckFile returns nil for a regular file that only its owner can use; errors are those of CheckFolder.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("check file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("check file: %s: %w: not a regular file", path, ErrKind)
	}
	return checkMode(path, "file", info.Mode(), FileMode)
}

// EnsureFile makes an empty file with mode 0600, or checks that path is a file that only its owner can use.
func EnsureFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, FileMode) //nolint:gosec // the caller says where its own file goes
	if errors.Is(err, fs.ErrExist) {
		return CheckFile(path)
	}
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	return nil
}

// Check judges what has been looked at already: info is that of path. Errors are those of CheckFolder.
func Check(path string, info fs.FileInfo) error {
	if info.IsDir() {
		return checkMode(path, "folder", info.Mode(), FolderMode)
	}
	return checkMode(path, "file", info.Mode(), FileMode)
}

// CheckRights is Check for what is shared with some users: the error wraps ErrLoose when others have one of the refused rights, which
// are bits of 0077, and its command takes these alone away.
func CheckRights(path string, info fs.FileInfo, refused fs.FileMode) error {
	mode := info.Mode().Perm()
	if runtime.GOOS == "windows" || mode&refused == 0 {
		return nil
	}
	letters := refused.Perm().String() // as in -rwxrwxrwx
	var changes []string
	for _, change := range []string{"g-" + strings.ReplaceAll(letters[4:7], "-", ""), "o-" + strings.ReplaceAll(letters[7:], "-", "")} {
		if len(change) > len("g-") {
			changes = append(changes, change)
		}
	}
	return fmt.Errorf("%w: %s has mode %04o; run: chmod %s %s", ErrLoose, path, mode, strings.Join(changes, ","), shell.Quote(path))
}

func checkMode(path, kind string, mode, want fs.FileMode) error {
	if runtime.GOOS == "windows" || mode.Perm()&othersMask == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s %s has mode %04o; run: chmod %04o %s", ErrLoose, kind, path, mode.Perm(), want, shell.Quote(path))
}
