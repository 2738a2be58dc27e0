package segments

import (
	"testing"

	"pgregory.net/rapid"
)

// Both indexes agree with looking at every record.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOfN(rapid.Uint64Range(0, 5), 0, 60).Draw(t, "hashes")
		growing := newGrowingIndex()
		for _, h := range hashes {
			growing.add(h)
		}
		sealed := seal(hashes)
		for hash := range uint64(7) {
			for from := range len(hashes) + 2 {
				want, ok := 0, false
				for i := from; i < len(hashes) && !ok; i++ {
					want, ok = i, hashes[i] == hash
				}
				for name, x := range map[string]idIndex{"growing": growing, "sealed": sealed} {
					got, found := x.next(hash, from)
					if found != ok || ok && got != want {
						t.Fatalf("%s.next(%d, %d) = %d, %v, want %d, %v", name, hash, from, got, found, want, ok)
					}
				}
			}
		}
	})
}

func TestOffsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(fixedSize, 3*grainBytes), 1, 600).Draw(t, "sizes")
		if rapid.Bool().Draw(t, "small") {
			for i := range sizes {
				sizes[i] = fixedSize + sizes[i]%100
			}
		}
		var x offsets
		at := make([]int64, len(sizes))
		offset := int64(headerSize)
		for i, size := range sizes {
			at[i] = offset
			x.add(i, offset)
			offset += int64(size)
		}
		for i := range sizes {
			record, o := x.before(i)
			if record > i || at[record] != o || i-record >= grainRecords || at[i]-o >= grainBytes {
				t.Fatalf("before(%d) = %d at %d, want at most %d records and bytes before %d", i, record, o, grainRecords, at[i])
			}
		}
	})
}
