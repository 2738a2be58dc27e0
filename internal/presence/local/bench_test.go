package local_test

import (
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkPut measures batches on a file that holds 10,000 subscribers beside them.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("subscribers=%d", size), func(b *testing.B) {
			d := mustOpen(b, filepath.Join(b.TempDir(), ".presence.db"))
			defer mustClose(b, d)
			mustPut(b, d, subscribers(0, 10_000))
			n := 10_000
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				all := subscribers(n, size)
				n += size
				b.StartTimer()
				mustPut(b, d, all)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "µs/subscriber")
		})
	}
}

// BenchmarkRemove measures the removal of batches, the oldest first.
func BenchmarkRemove(b *testing.B) {
	for _, size := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("subscribers=%d", size), func(b *testing.B) {
			d := mustOpen(b, filepath.Join(b.TempDir(), ".presence.db"))
			defer mustClose(b, d)
			mustPut(b, d, subscribers(0, 10_000))
			b.ReportAllocs()
			for n := 0; b.Loop(); n += size {
				b.StopTimer()
				all := subscribers(n, size)
				mustPut(b, d, subscribers(n+10_000, size))
				b.StartTimer()
				mustRemove(b, d, all)
			}
		})
	}
}

// BenchmarkOpen measures how long a hub waits for the file that a process with many subscribers has left.
func BenchmarkOpen(b *testing.B) {
	path := store(b, 10_000)
	for b.Loop() {
		mustClose(b, mustOpen(b, path))
	}
}
