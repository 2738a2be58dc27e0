package segments_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/historytest"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// Segments fill and are trimmed often.
func TestKill(t *testing.T) {
	dir := historytest.Kill(t, historytest.Crash{
		Open: func(ctx context.Context, dir string) (history.Log, error) {
			return segments.Open(ctx, segments.Options{Dir: dir, SegmentBytes: 32 << 10, MaxEvents: 3000, MaxSubscriptionEvents: 500})
		},
		Events: 500, Appends: 100, More: 300, Damage: damageIndexes,
	})
	if oldest := names(t, dir)[0]; filepath.Base(oldest) == "0000000000000001.seg" {
		t.Error("no file was ever removed: the test says nothing about retention")
	}
}

// damageIndexes makes of the index files what a loss of power could have made of them, and more: another thing each round, beside
// what the kill has left.
func damageIndexes(t *testing.T, dir string, round int) {
	t.Helper()
	files := indexFiles(t, dir)
	for i, name := range files {
		b := readFile(t, name)
		switch (i + round) % 6 {
		case 0:
			remove(t, name)
		case 1:
			writeFile(t, name, b[:len(b)/2])
		case 2:
			b[len(b)-1-i%len(b)] ^= 1
			writeFile(t, name, b)
		case 3:
			writeFile(t, name, readFile(t, files[0]))
		}
	}
}
