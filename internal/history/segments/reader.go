package segments

import (
	"errors"
	"fmt"
	"io"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// readBytes is how much a reader asks the file for when it goes through many records.
const readBytes = 256 << 10

// recordReader reads the records of a part of a segment's file, in order.
type recordReader struct {
	file file
	seed uint32
	next int64 // offset of the next record
	end  int64 // where the part ends
	want int   // bytes to ask the file for

	buf   []byte // what was read and not yet consumed starts at pos
	pos   int
	start int64 // offset of the last record read
}

// read returns the next record, or io.EOF at the end of the part. The view is valid until the
// next call. Other errors are those of decodeRecord and of the file; the reader stays at the
// record then.
func (r *recordReader) read() (view, error) {
	r.start = r.next
	if r.next >= r.end {
		return view{}, io.EOF
	}
	if err := r.fill(4); err != nil {
		return view{}, err
	}
	n, err := recordSize(r.buf[r.pos:])
	if err != nil {
		return view{}, err
	}
	if err := r.fill(n); err != nil {
		return view{}, err
	}
	v, err := decodeRecord(r.buf[r.pos:], r.seed)
	if err != nil {
		return view{}, err
	}
	r.pos += v.size
	r.next += int64(v.size)
	return v, nil
}

// pass goes on to the record at the offset, which lies ahead.
func (r *recordReader) pass(offset int64) {
	r.pos = min(r.pos+int(offset-r.next), len(r.buf))
	r.next = offset
}

// fill makes sure that the buffer holds n bytes from the next record on.
func (r *recordReader) fill(n int) error {
	if len(r.buf)-r.pos >= n {
		return nil
	}
	if r.end-r.next < int64(n) {
		return errShort
	}
	size := int(min(max(int64(n), int64(r.want)), r.end-r.next))
	if cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	r.buf, r.pos = r.buf[:size], 0
	_, err := r.file.ReadAt(r.buf, r.next)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the file is shorter than it was
	}
	if err != nil {
		r.buf = r.buf[:0]
		return fmt.Errorf("read segment: %w", err)
	}
	return nil
}

// damaged says that a committed record, the one that r stands at, cannot be read.
func (s *segment) damaged(r *recordReader, p history.Position, err error) error {
	if errors.Is(err, io.EOF) {
		err = errShort // the end of the file is not that of the log, and nobody may take it for that
	}
	return fmt.Errorf("%w: %s: record %d at offset %d: %w", history.ErrCorrupt, s.name, p, r.start, err)
}
