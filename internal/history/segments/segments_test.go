package segments_test

import (
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

func mustOpen(tb testing.TB, o segments.Options) *segments.Log {
	tb.Helper()
	log, err := segments.Open(tb.Context(), o)
	if err != nil {
		tb.Fatalf("Open() = %v", err)
	}
	return log
}

func testContract(t *testing.T, segmentBytes int64, many int) {
	t.Helper()
	historytest.Run(t, historytest.Options{VirtualTime: true, Many: many, Block: 1024}, func(t *testing.T, l historytest.Limits) historytest.Store {
		t.Helper()
		o := segments.Options{
			Dir: t.TempDir(), SegmentBytes: segmentBytes,
			MaxEvents: l.MaxEvents, MaxSubscriptionEvents: l.MaxSubscriptionEvents, MaxBytes: l.MaxBytes, MaxAge: l.MaxAge,
			TailBufferBytes: l.TailBufferBytes, TailLagBytes: l.TailLagBytes, AppendPatience: l.AppendPatience,
		}
		log := mustOpen(t, o)
		return historytest.Store{Log: log, Reopen: func(t *testing.T) history.Log {
			t.Helper()
			if err := log.Close(); err != nil {
				t.Fatalf("Close() = %v", err)
			}
			log = mustOpen(t, o)
			return log
		}}
	})
}

func TestContract(t *testing.T) {
	t.Parallel()
	testContract(t, 0, 60_000)
}

func TestContractWithSmallSegments(t *testing.T) {
	t.Parallel()
	testContract(t, 16<<10, 3000)
}
