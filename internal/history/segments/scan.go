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
	open   int64 // where the first record of an Append begins that has not ended yet; 0 if there is none
}

// errUnfinished says that the records of an Append are not all there.
const errUnfinished = recordError("the records that were appended together end")

// scan reads the whole segment and makes its index. Only in the last segment of a store may
// records end before the file does.
func (s *scanned) scan(ctx context.Context, hash hashFunc, isLast bool) error {
	r, err := s.readTo(ctx, s.end, hash)
	if err == nil && s.open > 0 {
		err = errUnfinished
	}
	var invalid recordError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && isLast:
		if err := s.checkTorn(r, s.end, err); err != nil {
			return err
		}
		if s.open > 0 { // nothing of what was appended together is shown unless all is there
			_, err := s.readTo(ctx, s.open, hash)
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

// readTo takes note of the records up to an offset.
func (s *scanned) readTo(ctx context.Context, end int64, hash hashFunc) (*recordReader, error) {
	s.growing, s.count, s.events, s.spare, s.size, s.lastID, s.open = newGrowing(), 0, 0, 0, headerSize, nil, 0
	r := &recordReader{file: s.file, seed: s.seed, next: headerSize, end: end, want: scanBytes}
	return r, s.readAll(ctx, r, hash)
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
		switch {
		case !v.more:
			s.open = 0
		case s.open == 0:
			s.open = r.start
		}
		s.add(v.kind(), hash(s.key, v.id), v.millis, v.size, v.topics, v.rest)
		s.lastID = append(s.lastID[:0], v.id...)
		if s.count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
