package segments

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// bruteForce is laterCommit as its comment describes it, at the price that hostile bytes make of it.
func bruteForce(b []byte, seed uint32, at history.Position) bool {
	limit := at + history.Position(len(b)/fixedSize) + 1
	for i := 1; i+fixedSize <= len(b); i++ {
		if !plausibleCommit(b[i:], at, limit) {
			continue
		}
		n, err := recordSize(b[i:])
		if err == nil && n <= len(b)-i && recordSum(seed, b[i:i+n]) == binary.LittleEndian.Uint32(b[i+4:]) {
			return true
		}
	}
	return false
}

func TestPrefixSums(t *testing.T) {
	b := make([]byte, 3*powerGrain+77)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	p := newPrefixSums(b)
	for from := 0; from < len(b); from += 37 {
		for _, n := range []int{0, 1, 7, 64, 65, 4095, 4096, 4097, 9000, len(b) - from} {
			if from+n > len(b) {
				continue
			}
			seed := uint32(from) * 2654435761
			if got, want := p.update(seed, from, from+n), crc32.Update(seed, castagnoli(), b[from:from+n]); got != want {
				t.Fatalf("update(%#x, %d, %d) = %#x, want %#x", seed, from, from+n, got, want)
			}
		}
	}
}

// torn returns what a crash may leave from an invalid record at position 8 on: noise and, when there is one, a later commit.
func torn(noise []byte, commit bool, position history.Position, event []byte) []byte {
	b := append([]byte{0xff}, noise...)
	if commit {
		b = appendRecord(b, 5, stamp{position: position, first: true}, &history.Record{ID: "id", Topics: []string{"t"}, Event: event})
	}
	return append(b, noise...)
}

func FuzzLaterCommit(f *testing.F) {
	f.Add([]byte("noise"), true, uint64(9), []byte("data: x\n\n"))
	f.Add([]byte{}, false, uint64(9), []byte{})
	f.Add(bytes.Repeat(hostile(), 20), true, uint64(9), bytes.Repeat(hostile(), 20))
	f.Fuzz(func(t *testing.T, noise []byte, commit bool, position uint64, event []byte) {
		if len(noise)+len(event) > 1<<16 {
			return
		}
		b := torn(noise, commit, history.Position(position), event)
		got := laterCommit(b, 5, 8)
		if want := bruteForce(b, 5, 8); got != want {
			t.Errorf("laterCommit() = %v, want %v", got, want)
		}
		if !got && commit && position > 8 && position < 8+uint64(len(b)/fixedSize) {
			t.Error("laterCommit() has not found the commit")
		}
	})
}

// hostile returns eight bytes that, repeated, look like the start of a record every eight of them: of version 1, the
// first of its commit, a bit more than 3 MiB long, at position 0x300301.
func hostile() []byte { return []byte{1, 3, 0x30, 0, 0, 0, 0, 0} }

// A publisher who fills a large update with what looks like records does not keep the hub from starting:
// walking each of these would take terabytes of checksums.
func TestLaterCommit_hostile(t *testing.T) {
	b := bytes.Repeat(hostile(), maxRecordBytes/2/len(hostile()))
	candidates, limit := 0, 3146497+history.Position(len(b)/fixedSize)
	for i := 1; i+fixedSize <= len(b); i++ {
		if plausibleCommit(b[i:], 3146496, limit) {
			candidates++
		}
	}
	if candidates < len(b)/10 {
		t.Fatalf("%d candidates in %d bytes: the test tests nothing", candidates, len(b))
	}
	if laterCommit(b, 5, 3146496) {
		t.Error("laterCommit() takes made-up bytes for a record")
	}
	last := appendRecord(nil, 5, stamp{position: 3146500, first: true}, &history.Record{ID: "id", Topics: []string{"t"}})
	if !laterCommit(append(b, last...), 5, 3146496) {
		t.Error("laterCommit() does not find a commit behind made-up bytes")
	}
}

// More behind an invalid record than the largest commit has proves damage by itself, without a search.
func TestOpen_tornTailIsNoLargerThanACommit(t *testing.T) {
	for extra, want := range map[int]bool{0: true, 1: false} {
		d := newDisk()
		log, err := openDisk(t, Options{}, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), powerRecord(1)); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		i := d.names[segmentName(1)]
		i.data = append(i.data, make([]byte, maxRecordBytes+extra)...)
		size := len(i.data)
		log, err = openDisk(t, Options{}, d)
		if (err == nil) != want {
			t.Errorf("open() = %v with %d bytes too much", err, maxRecordBytes+extra)
		}
		if err != nil {
			if len(i.data) != size {
				t.Errorf("open() left %d bytes of %d", len(i.data), size)
			}
			continue
		}
		_ = log.Close()
	}
}
