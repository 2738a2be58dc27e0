package segments

import (
	"hash/maphash"
	"slices"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// growing is the index of a segment that is being written, or was read as a whole: where its records are, the hashes of their
// ids, and the topics of each. It holds no pointers but those of its slices, so that it costs the garbage collector nothing.
//
// Records and topics are numbered from 0 in the order in which they came. All slices but newest only grow, and what is in them
// never changes: readers may copy their headers under the log's lock and look at them without it.
type growing struct {
	offsets []uint32 // by record
	hashes  []uint64 // by record, of its id
	ids     numbers  // the first record with each hash

	names   []name
	text    []byte // of all names
	byName  numbers
	newest  []uint32  // by topic: the newest of its posts, counted from 1
	posts   []posting // which record has which topic
	namesBy maphash.Seed
}

// name is a distinct topic.
type name struct {
	start, size, hash uint32
	normal            bool // topic.Normal
}

// posting says that a record has a topic, and where the one before it of the same topic is, counted from 1; 0 for the first.
type posting struct{ record, before uint32 }

func newGrowing() *growing { return &growing{namesBy: maphash.MakeSeed()} }

// add takes note of a record; rest starts with so many topics, as in a view.
func (x *growing) add(hash uint64, offset int64, topics int, rest []byte) {
	record := len(x.hashes)
	x.offsets = append(x.offsets, uint32(offset))
	x.hashes = append(x.hashes, hash)
	if x.ids.find(hash, func(n int) bool { return x.hashes[n] == hash }) < 0 {
		x.ids.insert(hash, record, func(n int) uint64 { return x.hashes[n] })
	}
	for range topics {
		var t []byte
		t, rest = cutTopic(rest)
		x.addTopic(t, uint32(record))
	}
}

func (x *growing) addTopic(t []byte, record uint32) {
	hash := uint32(maphash.Bytes(x.namesBy, t))
	n := x.byName.find(uint64(hash), func(n int) bool { return x.names[n].hash == hash && string(x.nameOf(n)) == string(t) })
	if n < 0 {
		n = len(x.names)
		x.names = append(x.names, name{start: uint32(len(x.text)), size: uint32(len(t)), hash: hash, normal: topic.Normal(string(t))})
		x.text = append(x.text, t...)
		x.newest = append(x.newest, 0)
		x.byName.insert(uint64(hash), n, func(n int) uint64 { return uint64(x.names[n].hash) })
	}
	before := x.newest[n]
	if before > 0 && x.posts[before-1].record == record {
		return // the record has the topic twice
	}
	x.posts = append(x.posts, posting{record, before})
	x.newest[n] = uint32(len(x.posts))
}

func (x *growing) nameOf(n int) []byte {
	at := &x.names[n]
	return x.text[at.start : at.start+at.size]
}

// find returns the number of a topic, -1 when no record has it.
func (x *growing) find(t string) int {
	hash := uint32(maphash.String(x.namesBy, t))
	return x.byName.find(uint64(hash), func(n int) bool { return x.names[n].hash == hash && string(x.nameOf(n)) == t })
}

// next returns the first record from the given one on whose id has the hash. It looks at the table, and walks only when the
// first record with the hash comes too early: when it was trimmed, or turned out to bear another id with the same
// hash. The size of a segment bounds the walk.
func (x *growing) next(hash uint64, from int) (record int, ok bool) {
	i := x.ids.find(hash, func(n int) bool { return x.hashes[n] == hash })
	if i < 0 || i >= from {
		return i, i >= 0
	}
	if from >= len(x.hashes) {
		return 0, false
	}
	i = slices.Index(x.hashes[from:], hash)
	return from + i, i >= 0
}

// numbers is a hash table of numbers, whose keys are elsewhere.
type numbers struct {
	slots []uint32 // numbers counted from 1, a power of two of them; 0 is free
	used  int
}

// find returns the number with the hash for which same is true, -1 when there is none.
func (t *numbers) find(hash uint64, same func(int) bool) int {
	if len(t.slots) == 0 {
		return -1
	}
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if n := int(t.slots[i] - 1); same(n) {
			return n
		}
	}
	return -1
}

// insert adds a number that is not there; hashOf returns the hashes of those that are.
func (t *numbers) insert(hash uint64, n int, hashOf func(int) uint64) {
	if 4*t.used >= 3*len(t.slots) {
		old := t.slots
		t.slots = make([]uint32, max(16, 2*len(old)))
		for _, v := range old {
			if v != 0 {
				t.put(hashOf(int(v-1)), v)
			}
		}
	}
	t.put(hash, uint32(n+1))
	t.used++
}

func (t *numbers) put(hash uint64, v uint32) {
	mask := uint64(len(t.slots) - 1)
	i := hash & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = v
}
