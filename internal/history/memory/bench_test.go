package memory_test

import (
	"context"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
)

// BenchmarkAppend has retention at work from the thousandth entry on.
func BenchmarkAppend(b *testing.B) {
	historytest.BenchmarkAppend(b, "memory", func(context.Context, string) (history.Log, error) {
		return memory.Open(memory.Options{MaxEvents: 1000})
	}, 1)
}

func BenchmarkRead(b *testing.B) {
	const count = 100_000
	log, err := memory.Open(memory.Options{MaxEvents: -1, MaxBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	historytest.Fill(b, log, count)
	b.Run("driver=memory/op=seek", func(b *testing.B) {
		historytest.BenchmarkSeek(b, log, count)
	})
	b.Run("driver=memory/op=replay/entries=100", func(b *testing.B) {
		historytest.BenchmarkReplay(b, log, history.Query{After: count - 101, UpTo: count - 1}, 100)
	})
}
