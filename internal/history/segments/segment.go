package segments

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	segmentSuffix = ".seg"
	tempSuffix    = ".tmp"
)

// segment is one file of the log and its index. The log's lock protects the fields below the
// mark; the committer alone changes those of the last segment.
type segment struct {
	base history.Position
	name string
	seed uint32 // checksum of the header, from which those of the records continue
	file file

	// Protected by Log.mu.
	count   int   // records
	size    int64 // bytes, header included; what lies beyond is not committed
	oldest  int64 // time of the first record, milliseconds
	newest  int64 // time of the last record, milliseconds
	offsets offsets
	ids     idIndex
	growing *growingIndex // ids, while the segment is being written; nil once it is sealed

	readers atomic.Int32 // running reads, begun under the log's lock; they keep the file open and there
	trimmed atomic.Bool  // no longer part of the log
}

// last returns the position of the newest record, base-1 if there is none. The caller holds the log's lock.
func (s *segment) last() history.Position { return s.base + history.Position(s.count) - 1 }

// add takes note of a record at the end of the segment. The caller holds the log's lock, or is alone.
func (s *segment) add(hash uint64, millis int64, size int) {
	s.offsets.add(s.count, s.size)
	s.growing.add(hash)
	if s.count == 0 {
		s.oldest = millis
	}
	s.newest = millis
	s.count++
	s.size += int64(size)
}

func segmentName(base history.Position) string {
	return fmt.Sprintf("%016x", uint64(base)) + segmentSuffix
}

// parseSegmentName returns the base that the name of a segment stands for.
func parseSegmentName(name string) (history.Position, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 16 || strings.ToLower(digits) != digits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return history.Position(n), err == nil && n > 0
}
