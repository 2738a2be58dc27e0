package memory_test

import (
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
)

func TestContract(t *testing.T) {
	historytest.Run(t, historytest.Options{VirtualTime: true}, func(t *testing.T, l historytest.Limits) historytest.Store {
		t.Helper()
		log, err := memory.Open(memory.Options{
			MaxEvents: l.MaxEvents, MaxSubscriptionEvents: l.MaxSubscriptionEvents, MaxBytes: l.MaxBytes, MaxAge: l.MaxAge,
			TailLagBytes: l.TailLagBytes, AppendPatience: l.AppendPatience,
		})
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		return historytest.Store{Log: log}
	})
}
