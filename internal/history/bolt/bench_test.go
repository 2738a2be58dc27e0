package bolt_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
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
		b.Run(fmt.Sprintf("driver=bolt/writers=%d", writers), func(b *testing.B) {
			log := mustOpen(b, bolt.Options{Dir: b.TempDir()})
			defer mustClose(b, log)
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
		})
	}
}

// rare tells whether a record of a filled store is one of the ten with topics that no other one has.
func rare(n, count int) bool { return n%(count/10) == count/20 }

// filled makes a store with so many small records, ten of which have the topic ".../exact", and one of their own each that begins with
// ".../rare/".
func filled(b *testing.B, count int) bolt.Options {
	b.Helper()
	o := bolt.Options{Dir: b.TempDir(), MaxEvents: 2 * count}
	log := mustOpen(b, o)
	defer mustClose(b, log)
	n := 0
	err := log.Import(b.Context(), func() (history.Stamped, error) {
		if n == count {
			return history.Stamped{}, io.EOF
		}
		r := benchRecord(int64(n))
		if rare(n, count) {
			r.Topics = []string{"https://example.com/exact", fmt.Sprintf("https://example.com/rare/%d", n)}
		}
		n++
		return history.Stamped{Record: *r}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return o
}

func BenchmarkOpen(b *testing.B) {
	const count = 100_000
	o := filled(b, count)
	for b.Loop() {
		mustClose(b, mustOpen(b, o))
	}
}

func BenchmarkReplay(b *testing.B) {
	const count = 100_000
	log := mustOpen(b, filled(b, count))
	defer mustClose(b, log)
	for name, c := range map[string]struct {
		sel  history.Selection
		want int
	}{
		"select=all":   {history.Selection{All: true}, count},
		"select=exact": {history.Selection{Exact: []string{"https://example.com/exact"}}, 10},
		"select=prefix": {history.Selection{
			Pattern:  func(t string) bool { return len(t) > 24 && t[:24] == "https://example.com/rare" },
			Prefixes: []string{"https://example.com/rare/"},
		}, 10},
	} {
		b.Run("driver=bolt/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got := 0
				for after := history.Position(0); after < count; {
					page, err := log.Replay(b.Context(), history.Query{After: after, Select: c.sel})
					if err != nil {
						b.Fatal(err)
					}
					got += len(page.Entries)
					after = page.Through
				}
				if got != c.want {
					b.Fatalf("%d entries, want %d", got, c.want)
				}
			}
		})
	}
}

func BenchmarkSeek(b *testing.B) {
	const count = 100_000
	log := mustOpen(b, filled(b, count))
	defer mustClose(b, log)
	b.ReportAllocs()
	for n := int64(0); b.Loop(); n++ {
		if _, err := log.Seek(b.Context(), benchRecord(n*7919%count).ID); err != nil {
			b.Fatal(err)
		}
	}
}
