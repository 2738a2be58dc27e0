package bolt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// The files of a store.
const (
	fileName  = "history.db"
	epochName = "EPOCH"
	// tempSuffix marks what is being made, and is removed when it is found.
	tempSuffix = ".tmp"
)

// folder is the place of a store, locked for this process.
type folder struct {
	*durable.Folder

	sync func() error // makes names durable; that of Folder, but in tests of its failure
}

// openFolder opens and locks the store's folder, and makes it if it is missing, unless it is for reading alone. What is not ours is left alone.
func openFolder(ctx context.Context, o Options) (*folder, error) {
	f, err := durable.Open(ctx, durable.Options{Path: o.Dir, ReadOnly: o.ReadOnly, Wait: o.Wait, Check: checkFiles, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &folder{Folder: f, sync: f.Sync}, nil
}

// checkFiles refuses a folder that holds something else than a store.
func checkFiles(f *durable.Folder) error {
	files, err := f.List()
	if err != nil {
		return fmt.Errorf("look at store: %w", err)
	}
	for _, file := range files {
		name := file.Name()
		if name == "lost+found" || strings.HasPrefix(name, ".") {
			continue
		}
		plain := strings.TrimSuffix(name, tempSuffix)
		ours := name == durable.LockName || plain == fileName || plain == epochName
		if !ours || !file.Type().IsRegular() {
			return fmt.Errorf("%w: %s", history.ErrForeignFile, name)
		}
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // a temporary file of the store's owner, if there is one
		}
		if err != nil {
			return fmt.Errorf("look at store: %w", err)
		}
		if err := durable.CheckFile(f.File(name), info); err != nil {
			return err
		}
	}
	return nil
}

// settle removes what was never finished.
func (f *folder) settle() error {
	for _, name := range []string{fileName, epochName} {
		if err := f.Root().Remove(name + tempSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove unfinished file: %w", err)
		}
	}
	return nil
}

// install gives a finished file its name, for good.
func (f *folder) install(name string) error {
	if err := f.rename(name); err != nil {
		return err
	}
	return f.sync()
}

// rename gives a finished file its name, which is not durable yet.
func (f *folder) rename(name string) error {
	if err := f.Root().Rename(name+tempSuffix, name); err != nil {
		return fmt.Errorf("install %s: %w", f.File(name), err)
	}
	return nil
}

// epoch returns the store's epoch, and makes one where there is none: a database that came here without its epoch is a copy.
func (f *folder) epoch(readOnly bool) (string, error) {
	text, err := f.Root().ReadFile(epochName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read epoch: %w", err)
	}
	epoch := strings.TrimSuffix(string(text), "\n")
	if raw, err := hex.DecodeString(epoch); err == nil && len(raw) == epochBytes {
		return epoch, nil
	}
	epoch = newEpoch()
	if readOnly {
		return epoch, nil
	}
	file, err := f.Root().OpenFile(epochName+tempSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, private.FileMode)
	if err != nil {
		return "", fmt.Errorf("write epoch: %w", err)
	}
	_, err = file.WriteString(epoch + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = f.install(epochName)
	}
	if err != nil {
		return "", fmt.Errorf("write epoch: %w", err)
	}
	return epoch, nil
}

const epochBytes = 16

func newEpoch() string {
	b := make([]byte, epochBytes)
	_, _ = rand.Read(b) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b)
}
