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

	end    int64 // of the file
	lastID []byte
	torn   error // why the records end before the file does; nil if they do not
}

// scan reads the whole segment and makes its index. Only in the last segment of a store may
// records end before the file does.
func (s *scanned) scan(ctx context.Context, hash hashFunc, isLast bool) error {
	s.growing, s.count, s.size = newGrowing(), 0, headerSize
	r := &recordReader{file: s.file, seed: s.seed, next: headerSize, end: s.end, want: scanBytes}
	err := s.readAll(ctx, r, hash)
	var invalid recordError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && isLast:
		if err := s.checkTorn(r, s.end, err); err != nil {
			return err
		}
	case errors.As(err, &invalid):
		return s.damaged(r, s.last()+1, err)
	default:
		return err
	}
	return nil
}

// readHeader reads the header and takes note of the size of the file.
func (s *scanned) readHeader() error {
	end, err := s.file.Size()
	if err != nil {
		return err
	}
	b := make([]byte, min(end, headerSize))
	if _, err := s.file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	h, seed, err := decodeHeader(b)
	if err != nil {
		return err
	}
	if base, _ := parseSegmentName(s.name); base != h.base {
		return fmt.Errorf("%w: holds records from %d on", history.ErrForeignFile, h.base)
	}
	if end > maxSegmentBytes+maxRecordBytes {
		return fmt.Errorf("%w: segment larger than any", history.ErrForeignFile)
	}
	s.base, s.header, s.seed, s.key, s.end = h.base, h, seed, h.key(), end
	return nil
}

// readAll takes note of records until the end or an invalid one.
func (s *scanned) readAll(ctx context.Context, r *recordReader, hash hashFunc) error {
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
		s.add(hash(s.key, v.id), v.millis, v.size, v.topics, v.rest)
		s.lastID = append(s.lastID[:0], v.id...)
		if s.count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
