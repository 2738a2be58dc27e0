package segments

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Format of an index file.
const (
	indexMagic      = "cbridx\r\n"
	indexVersion    = 2
	indexHeaderSize = 128
	hashSize        = 8
	numberSize      = 4
	nameSize        = 8 // where the text of a topic and its postings begin
)

// indexHeader is the head of an index file, beside what ties it to its segment.
type indexHeader struct {
	count          int   // records
	ids            int   // those of them that have an id
	events         int   // those of them that are subscription events, gone or not
	spare          int64 // bytes that hollowing would spare
	size           int64 // of the segment's file
	oldest, newest int64 // times of the first and the last record, milliseconds
	normal, others int   // topics in normal form, and others
	text, posts    int   // bytes of the topics' text, and of the postings
	sums           [sectionCount]uint32
}

// The sections of an index file, each with a checksum of its own that is looked at when the section is first used.
const (
	idSection = iota
	offsetSection
	topicSection
	sectionCount
)

// section returns where a section begins and ends.
func (h *indexHeader) section(i int) (from, to int64) {
	sizes := [sectionCount]int64{
		idSection:     int64(h.ids) * (hashSize + numberSize),
		offsetSection: int64(h.count) * numberSize,
		topicSection:  (int64(h.normal)+int64(h.others)+1)*nameSize + int64(h.text) + int64(h.posts),
	}
	from = indexHeaderSize
	for _, n := range sizes[:i] {
		from += n
	}
	return from, from + sizes[i]
}

// fileSize returns the size of the whole file.
func (h *indexHeader) fileSize() int64 {
	_, to := h.section(sectionCount - 1)
	return to
}

// image makes the index file of a full segment. It depends on the segment's contents alone.
func (x *growing) image(s *segment) []byte {
	h := indexHeader{
		count: s.count, ids: s.kept(), events: s.events, spare: s.spare, size: s.size, oldest: s.oldest, newest: s.newest, text: len(x.text),
	}
	order := x.sortedNames()
	for _, n := range order {
		if x.names[n].normal {
			h.normal++
		}
	}
	h.others = len(order) - h.normal
	b := make([]byte, indexHeaderSize, indexHeaderSize+s.count*(hashSize+2*numberSize)+len(order)*nameSize+len(x.text)+2*len(x.posts)+nameSize)
	b = x.appendIDs(b, s)
	for _, o := range x.offsets {
		b = binary.LittleEndian.AppendUint32(b, o)
	}
	b, h.posts = x.appendTopics(b, order)
	for i := range h.sums {
		from, to := h.section(i)
		h.sums[i] = crc32.Update(s.seed, castagnoli(), b[from:to])
	}
	h.encode(b[:indexHeaderSize], s)
	return b
}

// sortedNames returns the topics in the order of the file: those in normal form first, each kind by their bytes.
func (x *growing) sortedNames() []int {
	order := make([]int, len(x.names))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int {
		if x.names[a].normal != x.names[b].normal {
			if x.names[a].normal {
				return -1
			}
			return 1
		}
		return bytes.Compare(x.nameOf(a), x.nameOf(b))
	})
	return order
}

// appendIDs appends the hashes in order, and then the record of each; hollow records have none.
func (x *growing) appendIDs(b []byte, s *segment) []byte {
	type pair struct {
		hash   uint64
		record uint32
	}
	pairs := make([]pair, 0, len(x.hashes))
	for i, h := range x.hashes {
		if at := x.place(i, s.size); at.to-at.from > fixedSize {
			pairs = append(pairs, pair{h, uint32(i)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.record, b.record))
	})
	for _, p := range pairs {
		b = binary.LittleEndian.AppendUint64(b, p.hash)
	}
	for _, p := range pairs {
		b = binary.LittleEndian.AppendUint32(b, p.record)
	}
	return b
}

// appendTopics appends where each topic's text and postings begin, a last pair where they end, the text, and the postings:
// for each topic its first record, and then how far it is to the next one, as varints.
func (x *growing) appendTopics(b []byte, order []int) (_ []byte, postBytes int) {
	table := len(b)
	b = append(b, make([]byte, (len(order)+1)*nameSize)...)
	for i, n := range order {
		binary.LittleEndian.PutUint32(b[table+i*nameSize:], uint32(len(b)-table-(len(order)+1)*nameSize))
		b = append(b, x.nameOf(n)...)
	}
	text := len(b) - table - (len(order)+1)*nameSize
	start := len(b)
	var records []uint32
	for i, n := range order {
		binary.LittleEndian.PutUint32(b[table+i*nameSize+numberSize:], uint32(len(b)-start))
		records = records[:0]
		for p := x.newest[n]; p != 0; p = x.posts[p-1].before {
			records = append(records, x.posts[p-1].record)
		}
		last := uint32(0)
		for _, r := range slices.Backward(records) {
			b = binary.AppendUvarint(b, uint64(r-last))
			last = r
		}
	}
	binary.LittleEndian.PutUint32(b[table+len(order)*nameSize:], uint32(text))
	binary.LittleEndian.PutUint32(b[table+len(order)*nameSize+numberSize:], uint32(len(b)-start))
	return b, len(b) - start
}

// encode writes the header of the index of a segment to b.
func (h *indexHeader) encode(b []byte, s *segment) {
	clear(b)
	copy(b, indexMagic)
	binary.LittleEndian.PutUint16(b[8:], indexVersion)
	binary.LittleEndian.PutUint16(b[10:], indexHeaderSize)
	binary.LittleEndian.PutUint64(b[16:], uint64(s.base))
	copy(b[24:], s.header.store[:])
	copy(b[40:], s.header.salt[:])
	binary.LittleEndian.PutUint32(b[52:], uint32(h.count))
	binary.LittleEndian.PutUint64(b[56:], uint64(h.size))
	binary.LittleEndian.PutUint64(b[64:], uint64(h.oldest))
	binary.LittleEndian.PutUint64(b[72:], uint64(h.newest))
	for i, n := range [...]int{h.normal, h.others, h.text, h.posts} {
		binary.LittleEndian.PutUint32(b[80+4*i:], uint32(n))
	}
	for i, sum := range h.sums {
		binary.LittleEndian.PutUint32(b[96+4*i:], sum)
	}
	binary.LittleEndian.PutUint32(b[108:], uint32(h.events))
	binary.LittleEndian.PutUint32(b[112:], uint32(h.spare))
	binary.LittleEndian.PutUint32(b[indexHeaderSize-4:], crc32.Update(s.seed, castagnoli(), b[:indexHeaderSize-4]))
}

// indexError says why bytes are not the index of a segment.
type indexError string

func (e indexError) Error() string { return "index: " + string(e) }

// decodeIndexHeader reads the head of an index file of the given size. The error is an indexError.
func decodeIndexHeader(b []byte, size int64, s *segment) (indexHeader, error) {
	var h indexHeader
	switch {
	case len(b) < indexHeaderSize:
		return h, indexError("cut short")
	case string(b[:len(indexMagic)]) != indexMagic:
		return h, indexError("no index")
	case binary.LittleEndian.Uint16(b[8:]) != indexVersion || binary.LittleEndian.Uint16(b[10:]) != indexHeaderSize:
		return h, indexError("of another version")
	case binary.LittleEndian.Uint64(b[16:]) != uint64(s.base) || string(b[24:40]) != string(s.header.store[:]) || string(b[40:52]) != string(s.header.salt[:]):
		return h, indexError("of another segment")
	case binary.LittleEndian.Uint32(b[indexHeaderSize-4:]) != crc32.Update(s.seed, castagnoli(), b[:indexHeaderSize-4]):
		return h, indexError("header has a wrong checksum")
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	h = indexHeader{
		count: number(52), normal: number(80), others: number(84), text: number(88), posts: number(92),
		events: number(108), spare: int64(number(112)),
		size:   int64(binary.LittleEndian.Uint64(b[56:])),
		oldest: int64(binary.LittleEndian.Uint64(b[64:])),
		newest: int64(binary.LittleEndian.Uint64(b[72:])),
	}
	for i := range h.sums {
		h.sums[i] = binary.LittleEndian.Uint32(b[96+4*i:])
	}
	h.ids = h.count
	if s.hollow {
		h.ids -= h.events
	}
	if h.ids < 0 || h.events > h.count || h.fileSize() != size || h.count == 0 || h.count > maxSegmentRecords {
		return h, indexError("of another size")
	}
	return h, nil
}
