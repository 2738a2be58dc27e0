package historytest

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Rare is how many entries of a store that Fill has filled have topics that no other one has.
const Rare = 10

// benchRecord is record n of a benchmark.
func benchRecord(n int64) *history.Record {
	return &history.Record{
		ID:     fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-%012d", n),
		Topics: []string{"https://example.com/topics/" + strconv.FormatInt(n%1000, 10)},
		Event:  make([]byte, 300),
	}
}

// BenchmarkAppend measures appends, in a new log for each number of writers, which append at the same time. The names of the
// benchmarks have the driver's and that number in them.
func BenchmarkAppend(b *testing.B, driver string, open Opener, writers ...int) {
	b.Helper()
	for _, count := range writers {
		b.Run(fmt.Sprintf("driver=%s/writers=%d", driver, count), func(b *testing.B) {
			log, err := open(b.Context(), b.TempDir())
			if err != nil {
				b.Fatalf("Open() = %v", err)
			}
			benchAppend(b, log, count)
			if err := log.Close(); err != nil {
				b.Fatalf("Close() = %v", err)
			}
		})
	}
}

func benchAppend(b *testing.B, log history.Log, writers int) {
	b.Helper()
	ctx := context.Background()
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
				if _, err := log.Append(ctx, benchRecord(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// Fill imports so many small records into an empty log, a multiple of Rare. Rare of them, evenly spread, are those that Exact, Prefix
// and Pattern select.
func Fill(b *testing.B, log history.Importer, entries int) {
	b.Helper()
	n := 0
	err := log.Import(b.Context(), func() (history.Stamped, error) {
		if n == entries {
			return history.Stamped{}, io.EOF
		}
		r := benchRecord(int64(n))
		if n%(entries/Rare) == entries/Rare/2 {
			r.Topics = []string{rareTopic, rarePrefix + strconv.Itoa(n)}
		}
		n++
		return history.Stamped{Record: *r}, nil
	})
	if err != nil {
		b.Fatalf("Import() = %v", err)
	}
}

const (
	rareTopic  = "https://example.com/exact"
	rarePrefix = "https://example.com/rare/"
)

// Exact selects the rare entries by the topic that they have in common.
func Exact() history.Selection { return history.Selection{Exact: []string{rareTopic}} }

// Pattern selects the rare entries by the topic that each has to itself, with a pattern that says nothing about its beginning.
func Pattern() history.Selection {
	return history.Selection{Pattern: func(topic string) bool { return strings.HasPrefix(topic, rarePrefix) }}
}

// Prefix selects what Pattern does, and says how the topics begin.
func Prefix() history.Selection {
	s := Pattern()
	s.Prefixes = []string{rarePrefix}
	return s
}

// Common selects all entries but the rare ones, with a pattern that says how their topics begin.
func Common() history.Selection {
	const prefix = "https://example.com/topics/"
	return history.Selection{Pattern: func(topic string) bool { return strings.HasPrefix(topic, prefix) }, Prefixes: []string{prefix}}
}

// BenchmarkSeek measures how ids are found, from all over a log that Fill has filled with so many entries.
func BenchmarkSeek(b *testing.B, log history.Log, entries int) {
	b.Helper()
	b.ReportAllocs()
	for n := int64(0); b.Loop(); n++ {
		if _, err := log.Seek(b.Context(), benchRecord(n*7919%int64(entries)).ID); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplay measures how all pages of a query are read, which must have so many entries.
func BenchmarkReplay(b *testing.B, log history.Log, q history.Query, want int) {
	b.Helper()
	upTo := q.UpTo
	if upTo == 0 {
		h, err := log.Head(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		upTo = h.Last
	}
	b.ReportAllocs()
	for b.Loop() {
		got := 0
		for next := q; next.After < upTo; {
			page, err := log.Replay(b.Context(), next)
			if err != nil {
				b.Fatal(err)
			}
			got, next.After = got+len(page.Entries), page.Through
		}
		if got != want {
			b.Fatalf("%d entries, want %d", got, want)
		}
	}
	b.ReportMetric(float64(want)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
