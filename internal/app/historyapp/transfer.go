package historyapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// apart returns ErrSamePlace when two paths name one folder, whether it is there yet or not, or the target is a folder inside of the source: it
// would be a foreign file there.
func apart(source, target string) error {
	s, errS := whole(source)
	t, errT := whole(target)
	if errS != nil || errT != nil {
		return errors.Join(errS, errT)
	}
	if s == t {
		return ErrSamePlace
	}
	info, missing := os.Stat(s) // what is not there holds nothing
	for at := t; missing == nil; at = filepath.Dir(at) {
		switch here, err := os.Stat(at); {
		case err != nil || !os.SameFile(info, here):
		case at == t:
			return ErrSamePlace
		default:
			return fmt.Errorf("%w: %s is inside of %s", ErrSamePlace, target, source)
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return nil
}

// whole returns the absolute path without links, of which the end need not be there.
func whole(path string) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		if plain, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(plain, rest), nil
		}
		if at == filepath.Dir(at) {
			return filepath.Join(at, rest), nil
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
}

// transfer lets one history import what the other one exports. It returns when both have ended.
func transfer(ctx context.Context, source history.Exporter, target history.Importer, r *Imported) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records := make(chan history.Stamped, 16) // closed by the exporting goroutine; it waits when the target is slower. A record may have 16 MiB
	exported := make(chan error, 1)
	go func() {
		defer close(records)
		exported <- source.Export(ctx, func(s history.Stamped) error {
			select {
			case records <- s:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	var sourceErr error
	imported := target.Import(ctx, func() (history.Stamped, error) {
		s, ok := <-records
		if ok {
			r.Events++
			return s, nil
		}
		if err := <-exported; err != nil {
			sourceErr = &SourceError{err}
			return s, sourceErr
		}
		return s, io.EOF
	})
	cancel()
	for range records { // until the source has ended
	}
	if sourceErr != nil {
		return sourceErr
	}
	return imported
}
