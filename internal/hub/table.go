package hub

import "maps"

// tableMin is the size below which a table is not rebuilt.
const tableMin = 1024

// table is a map that gives its memory back: Go's maps keep what they once needed, so one that has shrunk to a
// quarter of its largest size is rebuilt.
type table[K comparable, V any] struct {
	m    map[K]V
	peak int
}

func newTable[K comparable, V any]() table[K, V] { return table[K, V]{m: map[K]V{}} }

func (t *table[K, V]) get(k K) V { return t.m[k] }

func (t *table[K, V]) set(k K, v V) {
	t.m[k] = v
	t.peak = max(t.peak, len(t.m))
}

func (t *table[K, V]) remove(k K) {
	delete(t.m, k)
	if t.peak < tableMin || len(t.m) >= t.peak/4 {
		return
	}
	rebuilt := make(map[K]V, len(t.m))
	maps.Copy(rebuilt, t.m)
	t.m, t.peak = rebuilt, len(rebuilt)
}
