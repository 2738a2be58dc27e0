package segments

import "math/bits"

// bitmap is a set of records of a segment, by their numbers.
type bitmap []uint64

// sized returns an empty set for so many records, in the same memory where that suffices.
func (s bitmap) sized(count int) bitmap {
	n := (count + 63) / 64
	if cap(s) < n {
		return make(bitmap, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (s bitmap) add(n int) { s[n/64] |= 1 << (n % 64) }

// next returns the smallest number of the set from the given one on, or -1.
func (s bitmap) next(from int) int {
	for i := from / 64; i < len(s); i++ {
		w := s[i]
		if i == from/64 {
			w &= ^uint64(0) << (from % 64)
		}
		if w != 0 {
			return 64*i + bits.TrailingZeros64(w)
		}
	}
	return -1
}
