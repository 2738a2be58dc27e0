package segments

import (
	"cmp"
	"slices"
	"sort"
)

// Grain of the sparse offsets: one per so many bytes or records, whichever comes first.
const (
	grainBytes   = 64 << 10
	grainRecords = 256
)

// idIndex finds the records of one segment by the hash of their ids. Records are numbered
// from 0 in the order of their positions.
type idIndex interface {
	// next returns the first record from the given one on whose id has the hash.
	next(hash uint64, from int) (record int, ok bool)
}

// growingIndex is the index of a segment that is being written.
type growingIndex struct {
	hashes []uint64
	first  map[uint64]int
}

func newGrowingIndex() *growingIndex {
	return &growingIndex{first: make(map[uint64]int)}
}

func (x *growingIndex) add(hash uint64) {
	if _, ok := x.first[hash]; !ok {
		x.first[hash] = len(x.hashes)
	}
	x.hashes = append(x.hashes, hash)
}

// next looks at the map, and walks only when the first record with the hash comes too early: when
// it was trimmed, or turned out to bear another id with the same hash. The size of a segment
// bounds the walk.
func (x *growingIndex) next(hash uint64, from int) (int, bool) {
	i, ok := x.first[hash]
	if !ok || i >= from {
		return i, ok
	}
	if from >= len(x.hashes) {
		return 0, false
	}
	i = slices.Index(x.hashes[from:], hash)
	return from + i, i >= 0
}

// sealedIndex is the index of a full segment: the hashes in order, and the record of each.
type sealedIndex struct {
	hashes  []uint64
	records []uint32
}

// seal makes the index of records with the given hashes.
func seal(hashes []uint64) *sealedIndex {
	type pair struct {
		hash   uint64
		record uint32
	}
	pairs := make([]pair, len(hashes))
	for i, h := range hashes {
		pairs[i] = pair{h, uint32(i)}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.record, b.record))
	})
	x := &sealedIndex{hashes: make([]uint64, len(pairs)), records: make([]uint32, len(pairs))}
	for i, p := range pairs {
		x.hashes[i], x.records[i] = p.hash, p.record
	}
	return x
}

func (x *sealedIndex) next(hash uint64, from int) (int, bool) {
	i := sort.Search(len(x.hashes), func(i int) bool {
		return x.hashes[i] > hash || x.hashes[i] == hash && int(x.records[i]) >= from
	})
	if i == len(x.hashes) || x.hashes[i] != hash {
		return 0, false
	}
	return int(x.records[i]), true
}

// offsets finds where records lie in a segment's file, to within a grain.
type offsets struct {
	points []point
}

// point says that the record with the number lies at the offset.
type point struct{ record, offset uint32 }

// add takes note of the next record. Records must be added in order.
func (x *offsets) add(record int, offset int64) {
	if n := len(x.points); n > 0 {
		last := x.points[n-1]
		if record-int(last.record) < grainRecords && offset-int64(last.offset) < grainBytes {
			return
		}
	}
	x.points = append(x.points, point{uint32(record), uint32(offset)})
}

// before returns the last point that is not after the record, which must be one of the segment's.
func (x *offsets) before(record int) (at int, offset int64) {
	i := sort.Search(len(x.points), func(i int) bool { return int(x.points[i].record) > record })
	p := x.points[i-1]
	return int(p.record), int64(p.offset)
}
