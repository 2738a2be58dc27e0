package segments

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// model is what the records of a segment are, beside its index.
type model struct {
	hashes []uint64
	topics [][]string
	places []place
}

// newModel makes a segment's index, growing, of records with the given hashes and topics.
func newModel(hashes []uint64, topics [][]string) (*model, *segment) {
	h := header{base: 1}
	_, seed := h.encode()
	s := &segment{base: 1, name: segmentName(1), header: h, seed: seed, key: h.key(), size: headerSize, growing: newGrowing()}
	m := &model{hashes: hashes, topics: topics}
	for i, hash := range hashes {
		r := &history.Record{ID: "x", Topics: topics[i], Event: make([]byte, i%7)}
		b := appendRecord(nil, seed, stamp{position: history.Position(i + 1)}, r)
		m.places = append(m.places, place{record: i, from: s.size, to: s.size + int64(len(b))})
		s.add(update, hash, int64(i), len(b), len(r.Topics), b[fixedSize+1:])
	}
	return m, s
}

// next is what the method of the indexes should return.
func (m *model) next(hash uint64, from int) (int, bool) {
	for i := from; i < len(m.hashes); i++ {
		if m.hashes[i] == hash {
			return i, true
		}
	}
	return 0, false
}

// with returns the records between two that have the topic.
func (m *model) with(t string, from, through int) (list []int) {
	for i := from; i <= through; i++ {
		if slices.Contains(m.topics[i], t) {
			list = append(list, i)
		}
	}
	return list
}

func (s bitmap) list() (list []int) {
	for n := s.next(0); n >= 0; n = s.next(n + 1) {
		list = append(list, n)
	}
	return list
}

func somePool() []string {
	return []string{"https://a.example/1", "https://a.example/2", "https://a.example/10", "https://b.example/", "urn:a", "urn:ab", "plain", "", "ünïcode", "https://A.example/1"}
}

// Both kinds of index agree with looking at every record.
func TestIndexes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOfN(rapid.Uint64Range(0, 5), 1, 150).Draw(t, "hashes")
		topics := make([][]string, len(hashes))
		for i := range topics {
			topics[i] = rapid.SliceOfN(rapid.SampledFrom(somePool()), 1, 4).Draw(t, "topics")
		}
		m, s := newModel(hashes, topics)
		x, err := newSealed(s.growing.image(s), s)
		if err != nil {
			t.Fatalf("newSealed() = %v", err)
		}
		m.checkIDs(t, s, x)
		m.checkTopics(t, s, x, rapid.IntRange(0, len(hashes)-1).Draw(t, "from"))
		for i, want := range m.places {
			if got, err := x.place(i); err != nil || got != want || s.growing.place(i, s.size) != want {
				t.Fatalf("place(%d) = %+v, %v and %+v, want %+v", i, got, err, s.growing.place(i, s.size), want)
			}
		}
	})
}

func (m *model) checkIDs(t *rapid.T, s *segment, x *sealed) {
	for hash := range uint64(7) {
		for from := range len(m.hashes) + 2 {
			want, ok := m.next(hash, from)
			if got, found := s.growing.next(hash, from); found != ok || ok && got != want {
				t.Fatalf("growing.next(%d, %d) = %d, %v, want %d, %v", hash, from, got, found, want, ok)
			}
			if got, found, err := x.next(hash, from); err != nil || found != ok || ok && got != want {
				t.Fatalf("sealed.next(%d, %d) = %d, %v, %v, want %d, %v", hash, from, got, found, err, want, ok)
			}
		}
	}
}

func (m *model) checkTopics(t *rapid.T, s *segment, x *sealed, from int) {
	through := from + (len(m.hashes)-1-from)/2
	for _, name := range append(somePool(), "absent") {
		want := m.with(name, 0, len(m.hashes)-1)
		n, err := x.find(name)
		if err != nil || (n >= 0) != (len(want) > 0) || (s.growing.find(name) >= 0) != (len(want) > 0) {
			t.Fatalf("find(%q) = %d, %v and %d, and %d records have it", name, n, err, s.growing.find(name), len(want))
		}
		if n < 0 {
			continue
		}
		set := bitmap(nil).sized(len(m.hashes))
		if err := x.mark(set, n, from, through); err != nil || !slices.Equal(set.list(), m.with(name, from, through)) {
			t.Fatalf("mark(%q, %d to %d) = %v, %v, want %v", name, from, through, set.list(), err, m.with(name, from, through))
		}
	}
	prefixes := rapid.SliceOfN(rapid.SampledFrom([]string{"https://a.example/", "https://a.example/1", "urn:", "none", "https://"}), 0, 3).Draw(t, "prefixes")
	m.checkCandidates(t, x, prefixes)
}

// checkCandidates checks that exactly those topics are asked about that the prefixes leave, each once.
func (m *model) checkCandidates(t *rapid.T, x *sealed, prefixes []string) {
	want := map[string]bool{}
	for _, list := range m.topics {
		for _, name := range list {
			if prefixes == nil || !topic.Normal(name) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				want[name] = true
			}
		}
	}
	spans, err := x.candidates(prefixes)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x.use(topicSection)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, sp := range spans {
		for n := sp.from; n < sp.to; n++ {
			name := string(x.name(b, n))
			if got[name] || !want[name] {
				t.Fatalf("candidates(%q) has %q, twice: %v", prefixes, name, got[name])
			}
			got[name] = true
		}
	}
	if len(got) != len(want) {
		t.Fatalf("candidates(%q) = %v, want %v", prefixes, got, want)
	}
}

func TestMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []span
		want := map[int]bool{}
		for range rapid.IntRange(0, 6).Draw(t, "spans") {
			from := rapid.IntRange(0, 20).Draw(t, "from")
			sp := span{from, from + rapid.IntRange(0, 6).Draw(t, "length")}
			list = append(list, sp)
			for n := sp.from; n < sp.to; n++ {
				want[n] = true
			}
		}
		seen := map[int]bool{}
		for _, sp := range merged(list) {
			for n := sp.from; n < sp.to; n++ {
				if seen[n] || !want[n] {
					t.Fatalf("merged() has %d, twice: %v", n, seen[n])
				}
				seen[n] = true
			}
		}
		if len(seen) != len(want) {
			t.Fatalf("merged() has %d numbers, want %d", len(seen), len(want))
		}
	})
}

// fuzzModel is a segment with all kinds of topics.
func fuzzModel() (*model, *segment) {
	var hashes []uint64
	var topics [][]string
	for i := range 40 {
		hashes = append(hashes, uint64(i%30)*0x9E3779B97F4A7C15)
		topics = append(topics, []string{somePool()[i%10], fmt.Sprint("https://c.example/", i)})
	}
	return newModel(hashes, topics)
}

// agrees tells whether everything that the index says of a segment is an error or true.
func (m *model) agrees(x *sealed) bool {
	return guarded(func() error {
		for i, h := range m.hashes {
			want, _ := m.next(h, 0)
			if got, ok, err := x.next(h, 0); err == nil && (!ok || got != want) {
				return errShort
			}
			if got, err := x.place(i); err == nil && got != m.places[i] {
				return errShort
			}
		}
		for _, list := range m.topics {
			for _, name := range list {
				n, err := x.find(name)
				if err != nil {
					continue
				}
				set := bitmap(nil).sized(len(m.hashes))
				if n < 0 || x.mark(set, n, 0, len(m.hashes)-1) == nil && !slices.Equal(set.list(), m.with(name, 0, len(m.hashes)-1)) {
					return errShort
				}
			}
		}
		return nil
	}) == nil
}

// Whatever bits of an index are flipped, and wherever it is cut: that is noticed, and nothing is lost or invented.
func FuzzIndex_damage(f *testing.F) {
	m, s := fuzzModel()
	whole := s.growing.image(s)
	for at := 0; at < len(whole); at += 37 {
		f.Add(uint32(at), byte(1), uint32(0), byte(0), uint32(len(whole)))
	}
	f.Add(uint32(0), byte(0), uint32(0), byte(0), uint32(len(whole)-1))
	f.Fuzz(func(t *testing.T, at uint32, flip byte, at2 uint32, flip2 byte, size uint32) {
		b := bytes.Clone(whole[:min(int(size), len(whole))])
		if len(b) > 0 {
			b[int(at)%len(b)] ^= flip
			b[int(at2)%len(b)] ^= flip2
		}
		x, err := newSealed(b, s)
		if err != nil {
			return
		}
		if !m.agrees(x) {
			t.Fatalf("the damaged index tells something else")
		}
	})
}

// Not even an index with the right checksums makes the program panic.
func FuzzIndex_forged(f *testing.F) {
	_, s := fuzzModel()
	whole := s.growing.image(s)
	for at := 52; at < len(whole); at += 23 {
		f.Add(uint32(at), uint32(1), byte(0xff))
	}
	f.Fuzz(func(t *testing.T, at, at2 uint32, value byte) {
		b := bytes.Clone(whole)
		b[int(at)%len(b)] = value
		b[int(at2)%len(b)] ^= value
		h := indexHeader{
			count: int(binary.LittleEndian.Uint32(b[52:])), normal: int(binary.LittleEndian.Uint32(b[80:])), others: int(binary.LittleEndian.Uint32(b[84:])),
			text: int(binary.LittleEndian.Uint32(b[88:])), posts: int(binary.LittleEndian.Uint32(b[92:])),
		}
		for i := range sectionCount {
			if from, to := h.section(i); to <= int64(len(b)) {
				binary.LittleEndian.PutUint32(b[96+4*i:], crc32.Update(s.seed, castagnoli(), b[from:to]))
			}
		}
		binary.LittleEndian.PutUint32(b[indexHeaderSize-4:], crc32.Update(s.seed, castagnoli(), b[:indexHeaderSize-4]))
		x, err := newSealed(b, s)
		if err != nil {
			return
		}
		set := bitmap(nil).sized(x.count)
		for n := range x.count {
			_, _, _ = x.next(uint64(n), 0)
			_, _ = x.place(n)
		}
		_, _ = x.find("urn:a")
		spans, err := x.candidates([]string{"https://"})
		if err != nil {
			return
		}
		for _, sp := range spans {
			for n := sp.from; n < sp.to; n++ {
				_ = x.mark(set, n, 0, x.count-1)
			}
		}
	})
}

// What repeats costs no allocation while an index grows, but for that of growing now and then.
func TestGrowing_allocations(t *testing.T) {
	x := newGrowing()
	b := appendRecord(nil, 0, stamp{}, &history.Record{ID: "x", Topics: []string{"https://example.com/a/topic/that/is/somewhat/long"}})
	n := uint64(0)
	if got := testing.AllocsPerRun(10_000, func() { n++; x.add(n, 64, 1, b[fixedSize+1:]) }); got > 0 {
		t.Errorf("add() allocates %v times", got)
	}
}

func TestSealed_allocations(t *testing.T) {
	m, s := fuzzModel()
	x, err := newSealed(s.growing.image(s), s)
	if err != nil {
		t.Fatal(err)
	}
	set := bitmap(nil).sized(len(m.hashes))
	if got := testing.AllocsPerRun(100, func() {
		_, _, _ = x.next(m.hashes[7], 0)
		n, _ := x.find("https://c.example/7")
		_ = x.mark(set, n, 0, 39)
		_, _ = x.place(7)
	}); got > 0 {
		t.Errorf("looking something up allocates %v times", got)
	}
}

// Topics in normal form come first, and each kind is in the order of its bytes.
func TestGrowing_order(t *testing.T) {
	_, s := fuzzModel()
	order := s.growing.sortedNames()
	normal := sort.Search(len(order), func(i int) bool { return !s.growing.names[order[i]].normal })
	for i, n := range order {
		name := string(s.growing.nameOf(n))
		if topic.Normal(name) != (i < normal) {
			t.Errorf("topic %d is %q, and %d are in normal form", i, name, normal)
		}
		if i > 0 && i != normal && string(s.growing.nameOf(order[i-1])) >= name {
			t.Errorf("topic %d is %q after %q", i, name, s.growing.nameOf(order[i-1]))
		}
	}
}
