package bolt_test

import (
	"context"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
)

// Compactions change the file under the appends.
func TestKill(t *testing.T) {
	t.Parallel()
	historytest.Kill(t, historytest.Crash{
		Open: func(ctx context.Context, dir string) (history.Log, error) {
			return bolt.Open(ctx, bolt.Options{Dir: dir, MaxEvents: 700, MaxSubscriptionEvents: 300})
		},
		Events: 300, Appends: 40, More: 60, Compact: true, Verify: true,
	})
}
