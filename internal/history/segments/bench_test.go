package segments_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

func benchRecord(n int64) *history.Record {
	return &history.Record{
		ID:     fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-%012d", n),
		Topics: []string{fmt.Sprintf("https://example.com/topics/%d", n%1000)},
		Event:  make([]byte, 300),
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("driver=segments/writers=%d", writers), func(b *testing.B) {
			log := mustOpen(b, segments.Options{Dir: b.TempDir()})
			var n atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range writers {
				wg.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						if _, err := log.Append(context.Background(), benchRecord(i)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// filled makes a store with so many small records.
func filled(b *testing.B, count int) segments.Options {
	b.Helper()
	o := segments.Options{Dir: b.TempDir()}
	log := mustOpen(b, o)
	const writers = 2000
	done := make(chan error, writers)
	for w := range writers {
		go func() {
			for n := w; n < count; n += writers {
				if _, err := log.Append(context.Background(), benchRecord(int64(n))); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	return o
}

func BenchmarkOpen(b *testing.B) {
	const count = 1_000_000
	b.Run(fmt.Sprintf("driver=segments/entries=%d", count), func(b *testing.B) {
		o := filled(b, count)
		for b.Loop() {
			log := mustOpen(b, o)
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	const count = 200_000
	o := filled(b, count)
	log := mustOpen(b, o)
	b.Cleanup(func() { _ = log.Close() })
	b.Run("op=seek", func(b *testing.B) {
		b.ReportAllocs()
		for n := int64(0); b.Loop(); n++ {
			if _, err := log.Seek(b.Context(), benchRecord(n*7919%count).ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=replay/entries=100", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page, err := log.Replay(b.Context(), history.Query{After: count - 101, UpTo: count - 1})
			if err != nil || len(page.Entries) != 100 {
				b.Fatal(len(page.Entries), err)
			}
		}
	})
	b.Run(fmt.Sprintf("op=scan/entries=%d", count), func(b *testing.B) {
		for b.Loop() {
			page, err := log.Replay(b.Context(), history.Query{Select: history.Selection{Exact: []string{"none"}}})
			if err != nil || page.Through != count {
				b.Fatal(page.Through, err)
			}
		}
	})
}
