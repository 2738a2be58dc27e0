package bolt_test

import (
	"context"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
)

func TestNoSpace_onARealDisk(t *testing.T) {
	historytest.NoSpace(t, historytest.Disk{Bytes: 2 << 20, Filler: 600 << 10}, func(ctx context.Context, dir string) (history.Log, error) {
		return bolt.Open(ctx, bolt.Options{Dir: dir})
	})
}
