package segments

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// scanBytes is how much a scan reads at a time.
const scanBytes = 1 << 20

// scanned is a segment as Open found it.
type scanned struct {
	*segment

	store  storeID
	lastID string
	torn   error // why the records end before the file does; nil if they do not
}

// scan reads the whole segment and builds its index. Only in the last segment of a store may
// records end before the file does.
func (s *scanned) scan(ctx context.Context, hash func(string) uint64, isLast bool) error {
	end, err := s.readHeader()
	if err != nil {
		return err
	}
	s.growing = newGrowingIndex()
	s.ids = s.growing
	r := &recordReader{file: s.file, seed: s.seed, next: headerSize, end: end, want: scanBytes}
	err = s.readAll(ctx, r, hash)
	var invalid recordError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && isLast:
		if err := s.checkTorn(r, end, err); err != nil {
			return err
		}
	case errors.As(err, &invalid):
		return s.damaged(r, s.last()+1, err)
	default:
		return err
	}
	if !isLast {
		s.ids, s.growing = seal(s.growing.hashes), nil
	}
	return nil
}

// readHeader reads the header and returns the size of the file.
func (s *scanned) readHeader() (int64, error) {
	end, err := s.file.Size()
	if err != nil {
		return 0, err
	}
	b := make([]byte, min(end, headerSize))
	if _, err := s.file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	h, seed, err := decodeHeader(b)
	if err != nil {
		return 0, err
	}
	if base, _ := parseSegmentName(s.name); base != h.base {
		return 0, fmt.Errorf("%w: holds records from %d on", history.ErrForeignFile, h.base)
	}
	if end > maxSegmentBytes+maxRecordBytes {
		return 0, fmt.Errorf("%w: segment larger than any", history.ErrForeignFile)
	}
	s.base, s.seed, s.store, s.size = h.base, seed, h.store, headerSize
	return end, nil
}

// readAll takes note of records until the end or an invalid one.
func (s *scanned) readAll(ctx context.Context, r *recordReader, hash func(string) uint64) error {
	for {
		v, err := r.read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case v.position != s.last()+1:
			return recordError(fmt.Sprintf("position %d instead of %d", v.position, s.last()+1))
		}
		id := string(v.id)
		s.add(hash(id), v.millis, v.size)
		s.lastID = id
		if s.count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
