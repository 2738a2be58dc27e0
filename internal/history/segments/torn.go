package segments

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// checkTorn decides about the last segment's records from the invalid one on. A commit is
// synced before the next one is written, and only then acknowledged. So a later commit in the file proves
// that the invalid record had been stored once and was acknowledged: that is damage.
// Without one the invalid record belongs to the last commit, which a crash cut short.
func (s *scanned) checkTorn(r *recordReader, end int64, reason error) error {
	later := end-r.start > maxRecordBytes // no commit is larger, so the file holds more than one from here on
	if !later {
		rest := make([]byte, end-r.start)
		if _, err := s.file.ReadAt(rest, r.start); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		later = laterCommit(rest, s.seed, s.last()+1)
	}
	if later {
		return s.damaged(r, s.last()+1, reason)
	}
	s.torn = reason
	return nil
}

// laterCommit tells whether b, which starts with an invalid record at the given position, holds, at any offset behind
// its start, a valid record of a greater position that starts a commit.
//
// Publishers choose most of these bytes, and may fill them with what looks like the start of a record every few of them. So the
// checksum of each is computed from those of two prefixes of b, in constant time, whatever length the record claims to have.
func laterCommit(b []byte, seed uint32, at history.Position) bool {
	limit := at + history.Position(len(b)/fixedSize) + 1
	var sums *prefixSums
	for i := 1; i+fixedSize <= len(b); i++ {
		if !plausibleCommit(b[i:], at, limit) {
			continue
		}
		n, err := recordSize(b[i:])
		if err != nil || n > len(b)-i {
			continue
		}
		if sums == nil {
			sums = newPrefixSums(b)
		}
		start := crc32.Update(seed, castagnoli(), b[i:i+4])
		if sums.update(start, i+prefixSize, i+n) == binary.LittleEndian.Uint32(b[i+4:]) {
			return true
		}
	}
	return false
}

// plausibleCommit tells whether b looks like a record that starts a commit, between the positions.
func plausibleCommit(b []byte, after, limit history.Position) bool {
	p := history.Position(binary.LittleEndian.Uint64(b[16:]))
	return p > after && p <= limit && b[8] == recordVersion && b[9]&flagCommit != 0
}

// prefixSums gives the checksum of any part of some bytes in constant time.
//
// A CRC is the remainder of a polynomial, so that of a concatenation follows from those of its parts: behind n more
// bytes, a sum c contributes c·x^(8n). Update(c, part) = (c + sum of what lies before the part)·x^(8·length) + sum of
// all up to its end, where + is exclusive or.
type prefixSums struct {
	b      []byte
	points []uint32 // sums of b[:k*sumGrain]
	low    []uint32 // x^(8i)
	high   []uint32 // x^(8i·len(low))
}

const (
	sumGrain   = 64
	powerGrain = 4096
)

func newPrefixSums(b []byte) *prefixSums {
	p := &prefixSums{b: b, low: make([]uint32, powerGrain), high: make([]uint32, len(b)/powerGrain+1)}
	var sum uint32
	for k := 0; k <= len(b); k += sumGrain {
		p.points = append(p.points, sum)
		sum = crc32.Update(sum, castagnoli(), b[k:min(k+sumGrain, len(b))])
	}
	p.low[0] = 1 << 31 // 1: the highest bit is the coefficient of x^0
	for i := 1; i < len(p.low); i++ {
		p.low[i] = multiply(p.low[i-1], 1<<(31-8))
	}
	p.high[0] = p.low[0]
	step := multiply(p.low[powerGrain-1], p.low[1])
	for i := 1; i < len(p.high); i++ {
		p.high[i] = multiply(p.high[i-1], step)
	}
	return p
}

// prefix returns the checksum of b[:n].
func (p *prefixSums) prefix(n int) uint32 {
	k := n / sumGrain
	return crc32.Update(p.points[k], castagnoli(), p.b[k*sumGrain:n])
}

// update returns crc32.Update(sum, castagnoli(), b[from:to]).
func (p *prefixSums) update(sum uint32, from, to int) uint32 {
	n := to - from
	power := multiply(p.high[n/powerGrain], p.low[n%powerGrain])
	return multiply(power, sum^p.prefix(from)) ^ p.prefix(to)
}

// multiply returns the product of two polynomials modulo that of CRC-32C, the highest bit being the coefficient of x^0.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}
