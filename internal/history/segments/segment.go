package segments

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	segmentSuffix = ".seg"
	hollowSuffix  = ".hollow" // before the others
	indexSuffix   = ".idx"
	tempSuffix    = ".tmp"
)

// segment is one file of the log and its index. The log's lock protects the fields below the
// mark; the committer alone changes those of the last segment.
type segment struct {
	base   history.Position
	name   string
	hollow bool // its subscription events have gone
	header header
	seed   uint32  // checksum of the header, from which those of the records continue
	key    hashKey // of its ids
	file   file

	// Protected by Log.mu.
	count   int      // records
	events  int      // those of them that are subscription events, gone or not
	size    int64    // bytes, header included; what lies beyond is not committed
	spare   int64    // those of them that hollowing would spare; 0 for a full segment that has had no index since the store was opened
	oldest  int64    // time of the first record, milliseconds
	newest  int64    // time of the last record, milliseconds; for a full segment without an index perhaps a later one
	growing *growing // while the segment is being written, and until it has an index
	index   *sealed  // nil while it is growing, and when there is no good one yet
	indexed int64    // size of the index file, as far as it counts for the limit by bytes

	readers atomic.Int32 // running reads, begun under the log's lock; they keep the file open and there
	trimmed atomic.Bool  // no longer part of the log, or a hollow one has taken its place

	unstored   atomic.Bool // its index file could not be written, and the operator was told
	stubborn   atomic.Bool // it could not be made hollow, and the operator was told
	unreadable atomic.Bool // it cannot be made hollow, because it is damaged

	// building is held while the index is made from the records, or replaced. It comes before Log.mu.
	building sync.Mutex
	broken   error     // why the index cannot be made; protected by building
	retired  []*sealed // damaged indexes, which readers may still look at; protected by building
}

// last returns the position of the newest record, base-1 if there is none. The caller holds the log's lock.
func (s *segment) last() history.Position { return s.base + history.Position(s.count) - 1 }

// live returns how many subscription events have not gone. The caller holds the log's lock.
func (s *segment) live() int {
	if s.hollow {
		return 0
	}
	return s.events
}

// kept returns the number of entries in the segment. The caller holds the log's lock.
func (s *segment) kept() int { return s.count - s.events + s.live() }

// add takes note of a record at the end of the segment; rest starts with so many topics. The caller holds the log's
// lock, or is alone.
func (s *segment) add(k kind, hash uint64, millis int64, size, topics int, rest []byte) {
	s.growing.add(hash, s.size, topics, rest)
	if s.count == 0 {
		s.oldest = millis
	}
	if k != update {
		s.events++
		s.spare += int64(size - fixedSize) // of a hollow one 0
	}
	s.newest = millis
	s.count++
	s.size += int64(size)
}

// indexName returns the name of the index file.
func (s *segment) indexName() string { return strings.TrimSuffix(s.name, segmentSuffix) + indexSuffix }

// close closes what is open of the segment. Nobody reads it any more.
func (s *segment) close() error {
	s.building.Lock()
	defer s.building.Unlock()
	errs := []error{s.index.close()}
	for _, x := range s.retired {
		errs = append(errs, x.close())
	}
	s.index, s.retired = nil, nil
	if s.file != nil {
		errs = append(errs, s.file.Close())
		s.file = nil
	}
	return errors.Join(errs...)
}

func segmentName(base history.Position) string {
	return fmt.Sprintf("%016x", uint64(base)) + segmentSuffix
}

func hollowName(base history.Position) string {
	return fmt.Sprintf("%016x", uint64(base)) + hollowSuffix + segmentSuffix
}

// parseSegmentName returns the base that the name of a segment stands for.
func parseSegmentName(name string) (history.Position, bool) { return parseName(name, segmentSuffix) }

// parseName returns the base that the name of a file with the suffix stands for, be its segment hollow or not.
func parseName(name, suffix string) (history.Position, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	digits = strings.TrimSuffix(digits, hollowSuffix)
	if !ok || len(digits) != 16 || strings.ToLower(digits) != digits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return history.Position(n), err == nil && n > 0
}
