package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cinnabar-hub/cinnabar/internal/as/store/newfile"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// Backup implements store.Database. The copy is made under another name, beginning with a dot, in the same folder, and gets its own
// name when it is complete and durable. A process that is killed meanwhile leaves the former behind.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.backup(ctx, path); err != nil {
		return fmt.Errorf("back up store: %w", s.dialect.classify(err))
	}
	return nil
}

func (s *Store) backup(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(f.Name() + suffix)
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.dialect.backup(ctx, s.db, f.Name()); err != nil {
		return err
	}
	return newfile.Place(f.Name(), path, private.FileMode)
}
