package bolt_test

import (
	"context"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
)

// benchEntries is the size of the stores that are read.
const benchEntries = 100_000

func BenchmarkAppend(b *testing.B) {
	historytest.BenchmarkAppend(b, "bolt", func(ctx context.Context, dir string) (history.Log, error) {
		return bolt.Open(ctx, bolt.Options{Dir: dir})
	}, 1, 16, 64)
}

// filled makes a store of benchEntries.
func filled(b *testing.B) bolt.Options {
	b.Helper()
	o := bolt.Options{Dir: b.TempDir(), MaxEvents: 2 * benchEntries}
	log := mustOpen(b, o)
	defer mustClose(b, log)
	historytest.Fill(b, log, benchEntries)
	return o
}

func BenchmarkOpen(b *testing.B) {
	o := filled(b)
	for b.Loop() {
		mustClose(b, mustOpen(b, o))
	}
}

func BenchmarkReplay(b *testing.B) {
	log := mustOpen(b, filled(b))
	defer mustClose(b, log)
	for _, c := range []struct {
		name string
		sel  history.Selection
		want int
	}{
		{"all", history.Selection{All: true}, benchEntries},
		{"exact", historytest.Exact(), historytest.Rare},
		{"prefix", historytest.Prefix(), historytest.Rare},
	} {
		b.Run("driver=bolt/select="+c.name, func(b *testing.B) {
			historytest.BenchmarkReplay(b, log, history.Query{Select: c.sel}, c.want)
		})
	}
}

func BenchmarkSeek(b *testing.B) {
	log := mustOpen(b, filled(b))
	defer mustClose(b, log)
	historytest.BenchmarkSeek(b, log, benchEntries)
}
