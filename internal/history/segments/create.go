package segments

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
)

// createSegment makes an empty segment whose name and header are durable, behind one with so many subscription events. A failure that leaves
// the folder as it was can be tried again; any other makes the log read-only.
func (l *Log) createSegment(base history.Position, before int) (*segment, error) {
	name := segmentName(base)
	temp := name + tempSuffix
	h := header{base: base, created: time.Now(), store: l.store, before: uint32(before)}
	_, _ = rand.Read(h.salt[:]) // never fails: crypto/rand aborts the program instead
	seed, err := l.writeHeader(temp, &h)
	if err == nil {
		err = l.install(temp, name)
	}
	if err != nil {
		return nil, l.undoCreate(err, temp)
	}
	if err := l.folder.Sync(); err != nil {
		return nil, l.health.Fail(fmt.Errorf("begin segment: %w", err))
	}
	f, err := l.folder.Open(name)
	if err != nil {
		return nil, l.undoCreate(err, name)
	}
	return &segment{base: base, name: name, header: h, seed: seed, key: h.key(), file: f, size: headerSize, growing: newGrowing()}, nil
}

// install gives a finished file its name, and overwrites nothing: whoever has put a file of that name there since the
// store was opened may need it.
func (l *Log) install(temp, name string) error {
	taken, err := l.folder.Exists(name)
	switch {
	case err != nil:
		return err
	case taken:
		return fmt.Errorf("%w: %s has appeared in the folder", history.ErrForeignFile, name)
	}
	return l.folder.Rename(temp, name)
}

// undoCreate removes what a failed attempt to create a segment has left. An empty segment must not
// stay: the current one may still grow, and their positions would overlap.
func (l *Log) undoCreate(cause error, name string) error {
	cause = fmt.Errorf("begin segment: %w", cause)
	if err := errors.Join(l.removeIfThere(name), l.folder.Sync()); err != nil {
		return l.health.Fail(errors.Join(cause, err))
	}
	if durable.IsNoSpace(cause) {
		return fmt.Errorf("%w: %w", history.ErrNoSpace, cause)
	}
	return cause
}

// writeHeader makes a durable file with a header and nothing else. The file is closed again, because
// some systems cannot rename open files.
func (l *Log) writeHeader(name string, h *header) (seed uint32, err error) {
	if err := l.removeIfThere(name); err != nil {
		return 0, err
	}
	b, seed := h.encode()
	f, err := l.folder.Create(name)
	if err != nil {
		return 0, err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	return seed, errors.Join(err, f.Close())
}

func (l *Log) removeIfThere(name string) error {
	if err := l.folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
