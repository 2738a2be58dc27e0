package bolt_test

import (
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
)

func mustOpen(tb testing.TB, o bolt.Options) *bolt.Log {
	tb.Helper()
	log, err := bolt.Open(tb.Context(), o)
	if err != nil {
		tb.Fatalf("Open() = %v", err)
	}
	return log
}

func mustClose(tb testing.TB, log history.Log) {
	tb.Helper()
	if err := log.Close(); err != nil {
		tb.Fatalf("Close() = %v", err)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	historytest.Run(t, historytest.Options{VirtualTime: true, Many: 20_000}, func(t *testing.T, l historytest.Limits) historytest.Store {
		t.Helper()
		o := bolt.Options{
			Dir: t.TempDir(), MaxEvents: l.MaxEvents, MaxSubscriptionEvents: l.MaxSubscriptionEvents, MaxBytes: l.MaxBytes, MaxAge: l.MaxAge,
			TailBufferBytes: l.TailBufferBytes, TailLagBytes: l.TailLagBytes, AppendPatience: l.AppendPatience,
		}
		log := mustOpen(t, o)
		return historytest.Store{Log: log, Reopen: func(t *testing.T) history.Log {
			t.Helper()
			mustClose(t, log)
			log = mustOpen(t, o)
			return log
		}}
	})
}
