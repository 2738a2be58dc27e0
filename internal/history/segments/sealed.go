package segments

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
)

// sealed is the index of a full segment: the contents of its index file, most often mapped into memory. It never changes.
// Its methods are called within guarded, except where they say otherwise.
type sealed struct {
	indexHeader

	data   []byte
	free   func() error // gives the mapping back; nil for data on the heap
	stored bool         // data is what the file holds
	seed   uint32       // of the segment
	checks [sectionCount]check
}

// check remembers whether a section is sound.
type check struct {
	once sync.Once
	err  error
}

// newSealed reads an index file. The error is an indexError.
func newSealed(data []byte, s *segment) (*sealed, error) {
	h, err := decodeIndexHeader(data[:min(len(data), indexHeaderSize)], int64(len(data)), s)
	if err != nil {
		return nil, err
	}
	return &sealed{indexHeader: h, data: data, seed: s.seed}, nil
}

// close gives the mapping back. Nobody uses the index any more. It needs no guard.
func (x *sealed) close() error {
	if x == nil || x.free == nil {
		return nil
	}
	return x.free()
}

// guarded calls fn, which looks at a mapped file: when the file cannot be read, because the disk fails or somebody has cut it short, the
// system tells so by a fault. That is an indexError then.
func guarded(fn func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
			err = indexError("cannot be read")
		}
	}()
	return fn()
}

// use returns a section, which it checks the first time.
func (x *sealed) use(i int) ([]byte, error) {
	from, to := x.section(i)
	b := x.data[from:to]
	c := &x.checks[i]
	c.once.Do(func() {
		c.err = indexError("cannot be read") // unless what follows comes to its end
		c.err = x.checkSection(i, b)
	})
	return b, c.err
}

// check checks all of the index of a segment, whatever was found sound before.
func (x *sealed) check(s *segment) error {
	if h, err := decodeIndexHeader(x.data[:indexHeaderSize], int64(len(x.data)), s); err != nil || h != x.indexHeader {
		return cmp.Or(err, error(indexError("header has changed")))
	}
	for i := range sectionCount {
		from, to := x.section(i)
		if err := x.checkSection(i, x.data[from:to]); err != nil {
			return err
		}
	}
	return nil
}

func (x *sealed) checkSection(i int, b []byte) error {
	if crc32.Update(x.seed, castagnoli(), b) != x.sums[i] {
		return indexError("wrong checksum")
	}
	// What follows holds for every index that this program has written: it keeps a wrong one from doing worse.
	switch i {
	case offsetSection:
		last := int64(headerSize - 1)
		for ; len(b) > 0; b = b[numberSize:] {
			o := int64(binary.LittleEndian.Uint32(b))
			if o <= last || o >= x.size {
				return indexError("offsets out of order")
			}
			last = o
		}
	case topicSection:
		text, posts := uint32(0), uint32(0)
		for n := range x.topics() + 1 {
			t, p := binary.LittleEndian.Uint32(b[n*nameSize:]), binary.LittleEndian.Uint32(b[n*nameSize+numberSize:])
			if t < text || p < posts || int64(t) > int64(x.text) || int64(p) > int64(x.posts) {
				return indexError("topics out of order")
			}
			text, posts = t, p
		}
	}
	return nil
}

// topics returns the number of distinct topics.
func (x *sealed) topics() int { return x.normal + x.others }

// next returns the first record from the given one on whose id has the hash.
func (x *sealed) next(hash uint64, from int) (record int, ok bool, err error) {
	b, err := x.use(idSection)
	if err != nil {
		return 0, false, err
	}
	hashes, records := b[:x.ids*hashSize], b[x.ids*hashSize:]
	number := func(i int) int { return int(binary.LittleEndian.Uint32(records[i*numberSize:])) }
	i := sort.Search(x.ids, func(i int) bool {
		h := binary.LittleEndian.Uint64(hashes[i*hashSize:])
		return h > hash || h == hash && number(i) >= from
	})
	if i == x.ids || binary.LittleEndian.Uint64(hashes[i*hashSize:]) != hash {
		return 0, false, nil
	}
	if record = number(i); record >= x.count {
		return 0, false, indexError("record beyond the segment's end")
	}
	return record, true, nil
}

// place returns where a record begins and ends.
func (x *sealed) place(record int) (place, error) {
	b, err := x.use(offsetSection)
	if err != nil {
		return place{}, err
	}
	p := place{record: record, from: int64(binary.LittleEndian.Uint32(b[record*numberSize:])), to: x.size}
	if record+1 < x.count {
		p.to = int64(binary.LittleEndian.Uint32(b[(record+1)*numberSize:]))
	}
	return p, nil
}

// place is where a record lies in its segment's file.
type place struct {
	record   int
	from, to int64
}

// name returns the bytes of topic n, which lie in the section.
func (x *sealed) name(section []byte, n int) []byte {
	text := section[(x.topics()+1)*nameSize:]
	return text[binary.LittleEndian.Uint32(section[n*nameSize:]):binary.LittleEndian.Uint32(section[(n+1)*nameSize:])]
}

// find returns the number of a topic, -1 when no record has it.
func (x *sealed) find(t string) (int, error) {
	b, err := x.use(topicSection)
	if err != nil {
		return -1, err
	}
	for _, list := range [...]span{{0, x.normal}, {x.normal, x.topics()}} {
		n := list.from + sort.Search(list.to-list.from, func(i int) bool { return string(x.name(b, list.from+i)) >= t })
		if n < list.to && string(x.name(b, n)) == t {
			return n, nil
		}
	}
	return -1, nil
}

// span is a range of topics.
type span struct{ from, to int }

// candidates returns the topics that a pattern must be asked about: those in normal form that begin with one of the prefixes, or all of
// them when there are none, and all others.
func (x *sealed) candidates(prefixes []string) ([]span, error) {
	b, err := x.use(topicSection)
	if err != nil {
		return nil, err
	}
	list := []span{{x.normal, x.topics()}}
	if prefixes == nil {
		return []span{{0, x.topics()}}, nil
	}
	for _, p := range prefixes {
		prefix := []byte(p)
		from := sort.Search(x.normal, func(i int) bool { return bytes.Compare(x.name(b, i), prefix) >= 0 })
		to := from + sort.Search(x.normal-from, func(i int) bool { return !bytes.HasPrefix(x.name(b, from+i), prefix) })
		list = append(list, span{from, to})
	}
	return merged(list), nil
}

// merged returns spans that hold the same topics, each once, and none that is empty.
func merged(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// mark sets the bits of those records with topic n that lie between two, both included.
func (x *sealed) mark(set bitmap, n, from, through int) error {
	section, err := x.use(topicSection)
	if err != nil {
		return err
	}
	posts := section[(x.topics()+1)*nameSize+x.text:]
	b := posts[binary.LittleEndian.Uint32(section[n*nameSize+numberSize:]):binary.LittleEndian.Uint32(section[(n+1)*nameSize+numberSize:])]
	for record := uint64(0); len(b) > 0; {
		step, size := binary.Uvarint(b)
		if record += step; size <= 0 || step >= uint64(x.count) || record >= uint64(x.count) {
			return indexError("record beyond the segment's end")
		}
		b = b[size:]
		if int(record) > through {
			return nil
		}
		if int(record) >= from {
			set.add(int(record))
		}
	}
	return nil
}
