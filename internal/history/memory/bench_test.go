package memory_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
)

func benchRecord(n int64) *history.Record {
	return &history.Record{
		ID:     fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-%012d", n),
		Topics: []string{"https://example.com/topics/" + strconv.FormatInt(n%1000, 10)},
		Event:  make([]byte, 300),
	}
}

func mustOpen(tb testing.TB, o memory.Options) *memory.Log {
	tb.Helper()
	log, err := memory.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = log.Close() })
	return log
}

// BenchmarkAppend has retention at work from the thousandth entry on.
func BenchmarkAppend(b *testing.B) {
	b.Run("driver=memory/writers=1", func(b *testing.B) {
		log := mustOpen(b, memory.Options{MaxEvents: 1000})
		b.ReportAllocs()
		for n := int64(0); b.Loop(); n++ {
			if _, err := log.Append(b.Context(), benchRecord(n)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	const count = 100_000
	log := mustOpen(b, memory.Options{MaxEvents: -1, MaxBytes: -1})
	for n := range int64(count) {
		if _, err := log.Append(b.Context(), benchRecord(n)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("driver=memory/op=seek", func(b *testing.B) {
		b.ReportAllocs()
		for n := int64(0); b.Loop(); n++ {
			if _, err := log.Seek(b.Context(), benchRecord(n*7919%count).ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("driver=memory/op=replay/entries=100", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page, err := log.Replay(b.Context(), history.Query{After: count - 101, UpTo: count - 1})
			if err != nil || len(page.Entries) != 100 {
				b.Fatal(len(page.Entries), err)
			}
		}
	})
}
