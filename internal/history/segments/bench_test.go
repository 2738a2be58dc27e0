package segments_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

func BenchmarkAppend(b *testing.B) {
	historytest.BenchmarkAppend(b, "segments", func(ctx context.Context, dir string) (history.Log, error) {
		return segments.Open(ctx, segments.Options{Dir: dir})
	}, 1, 16, 64)
}

// filled makes a store with so many records, and all indexes.
func filled(b *testing.B, count int) segments.Options {
	b.Helper()
	o := segments.Options{Dir: b.TempDir(), MaxEvents: 2 * count}
	log := mustOpen(b, o)
	historytest.Fill(b, log, count)
	mustCompact(b, log)
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
			historytest.BenchmarkSeek(b, log, count)
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

func benchReplay(b *testing.B, want func(count int) int, query func(count int) history.Query) {
	b.Helper()
	for _, count := range []int{100_000, 1_000_000} {
		log := mustOpen(b, filled(b, count))
		b.Run(entries(count), func(b *testing.B) {
			historytest.BenchmarkReplay(b, log, query(count), want(count))
		})
		mustClose(b, log)
	}
}

// benchRare finds the rare entries from the earliest on.
func benchRare(b *testing.B, sel history.Selection) {
	b.Helper()
	benchReplay(b, func(int) int { return historytest.Rare }, func(int) history.Query { return history.Query{Select: sel} })
}

// BenchmarkReplayExact finds the entries of a rare topic.
func BenchmarkReplayExact(b *testing.B) { benchRare(b, historytest.Exact()) }

// BenchmarkReplayPrefix finds the entries that a pattern with a literal beginning selects.
func BenchmarkReplayPrefix(b *testing.B) { benchRare(b, historytest.Prefix()) }

// BenchmarkReplayPattern finds the same without being told how their topics begin.
func BenchmarkReplayPattern(b *testing.B) { benchRare(b, historytest.Pattern()) }

// BenchmarkReplayAll reads everything.
func BenchmarkReplayAll(b *testing.B) {
	benchReplay(b, func(count int) int { return count }, func(int) history.Query { return history.Query{} })
}

// BenchmarkReplayNearHead reads the last ten entries, with a selection and without.
func BenchmarkReplayNearHead(b *testing.B) {
	for _, c := range []struct {
		name string
		sel  history.Selection
	}{
		{"all", history.Selection{}}, {"pattern", historytest.Common()},
	} {
		b.Run("select="+c.name, func(b *testing.B) {
			benchReplay(b, func(int) int { return 10 }, func(count int) history.Query {
				return history.Query{After: history.Position(count - 10), Select: c.sel}
			})
		})
	}
}
