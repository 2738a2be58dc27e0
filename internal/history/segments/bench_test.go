package segments_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
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

// rare tells whether a record of a filled store is one of the ten with topics that no other one has.
func rare(n, count int) bool { return n%(count/10) == count/20 }

// filled makes a store with so many small records, ten of which have the topic ".../exact", and one of their own each that begins with
// ".../rare/".
func filled(b *testing.B, count int) segments.Options {
	b.Helper()
	o := segments.Options{Dir: b.TempDir(), MaxEvents: 2 * count}
	log := mustOpen(b, o)
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
	if _, err := log.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	mustClose(b, log)
	return o
}

func entries(count int) string { return fmt.Sprintf("driver=segments/entries=%d", count) }

// BenchmarkOpen opens a store that was closed a moment after it was written, and one whose indexes are gone.
func BenchmarkOpen(b *testing.B) {
	const count = 1_000_000
	o := filled(b, count)
	b.Run(entries(count), func(b *testing.B) {
		for b.Loop() {
			mustClose(b, mustOpen(b, o))
		}
	})
	b.Run(entries(count)+"/indexes=missing", func(b *testing.B) {
		o := o
		o.ReadOnly = true // so that none are made
		for _, name := range indexFiles(b, o.Dir) {
			if err := os.Remove(name); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			mustClose(b, mustOpen(b, o))
		}
	})
}

func BenchmarkSeek(b *testing.B) {
	for _, count := range []int{100_000, 1_000_000} {
		log := mustOpen(b, filled(b, count))
		b.Run(entries(count), func(b *testing.B) {
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				if _, err := log.Seek(b.Context(), benchRecord(n*7919%int64(count)).ID); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(entries(count)+"/unknown", func(b *testing.B) {
			for b.Loop() {
				if _, err := log.Seek(b.Context(), "none"); err == nil {
					b.Fatal("found")
				}
			}
		})
		mustClose(b, log)
	}
}

// replayAll reads all pages of a selection after a position and returns the number of entries.
func replayAll(b *testing.B, log *segments.Log, q history.Query) (n int) {
	b.Helper()
	h, err := log.Head(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for q.After < h.Last {
		page, err := log.Replay(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		n, q.After = n+len(page.Entries), page.Through
	}
	return n
}

func benchReplay(b *testing.B, want func(count int) int, query func(count int) history.Query) {
	b.Helper()
	for _, count := range []int{100_000, 1_000_000} {
		log := mustOpen(b, filled(b, count))
		b.Run(entries(count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := replayAll(b, log, query(count)); n != want(count) {
					b.Fatalf("%d entries, want %d", n, want(count))
				}
			}
			b.ReportMetric(float64(want(count))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
		mustClose(b, log)
	}
}

// BenchmarkReplayExact finds the ten entries of a rare topic from the earliest on.
func BenchmarkReplayExact(b *testing.B) {
	benchReplay(b, func(int) int { return 10 }, func(int) history.Query {
		return history.Query{Select: history.Selection{Exact: []string{"https://example.com/exact"}}}
	})
}

// BenchmarkReplayPrefix finds the ten entries that a pattern with a literal beginning selects, from the earliest on.
func BenchmarkReplayPrefix(b *testing.B) {
	pattern := func(t string) bool { return strings.HasPrefix(t, "https://example.com/rare/") }
	benchReplay(b, func(int) int { return 10 }, func(int) history.Query {
		return history.Query{Select: history.Selection{Pattern: pattern, Prefixes: []string{"https://example.com/rare/"}}}
	})
}

// BenchmarkReplayPattern finds the same ten without being told how they begin.
func BenchmarkReplayPattern(b *testing.B) {
	pattern := func(t string) bool { return strings.HasPrefix(t, "https://example.com/rare/") }
	benchReplay(b, func(int) int { return 10 }, func(int) history.Query {
		return history.Query{Select: history.Selection{Pattern: pattern}}
	})
}

// BenchmarkReplayAll reads everything.
func BenchmarkReplayAll(b *testing.B) {
	benchReplay(b, func(count int) int { return count }, func(int) history.Query { return history.Query{} })
}

// BenchmarkReplayNearHead reads the last ten entries, with a selection and without.
func BenchmarkReplayNearHead(b *testing.B) {
	pattern := func(t string) bool { return strings.HasPrefix(t, "https://example.com/topics/") }
	for name, sel := range map[string]history.Selection{
		"all": {}, "pattern": {Pattern: pattern, Prefixes: []string{"https://example.com/topics/"}},
	} {
		b.Run("select="+name, func(b *testing.B) {
			benchReplay(b, func(int) int { return 10 }, func(count int) history.Query {
				return history.Query{After: history.Position(count - 10), Select: sel}
			})
		})
	}
}
