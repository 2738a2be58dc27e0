package segments_test

import (
	"context"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// When there is space again, the log goes on in a new segment.
func TestNoSpace_onARealDisk(t *testing.T) {
	historytest.NoSpace(t, historytest.Disk{Bytes: 512 << 10, Filler: 100 << 10}, func(ctx context.Context, dir string) (history.Log, error) {
		return segments.Open(ctx, segments.Options{Dir: dir, SegmentBytes: 64 << 10})
	})
}
