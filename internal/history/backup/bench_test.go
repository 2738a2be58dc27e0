package backup_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/backup"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// appender appends from several goroutines.
type appender struct {
	b   *testing.B
	log history.Log
	n   atomic.Int64
}

// run appends so many records from so many goroutines and returns how long it took, and how long the slowest of them.
func (a *appender) run(count int64, writers int) (took, slowest time.Duration) {
	last := a.n.Load() + count
	var most atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range writers {
		wg.Go(func() {
			for i := a.n.Add(1); i <= last; i = a.n.Add(1) {
				at := time.Now()
				r := &history.Record{ID: fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-%012d", i), Topics: []string{"https://example.com/books/1"}, Event: make([]byte, 300)}
				if _, err := a.log.Append(context.Background(), r); err != nil {
					a.b.Error(err)
					return
				}
				for d, old := int64(time.Since(at)), most.Load(); d > old && !most.CompareAndSwap(old, d); old = most.Load() {
				}
			}
		})
	}
	wg.Wait()
	a.n.Store(last)
	return time.Since(began), time.Duration(most.Load())
}

// BenchmarkAppendDuringBackup tells what a copy costs publishers: the time that the same appends take while one copy is
// taken after the other, as a multiple of what they take without, in alternation.
func BenchmarkAppendDuringBackup(b *testing.B) {
	log, err := segments.Open(b.Context(), segments.Options{Dir: filepath.Join(b.TempDir(), "history")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	a := &appender{b: b, log: log}
	a.run(400_000, 500)
	var quiet, busy, quietMost, busyMost time.Duration
	copies, target := 0, b.TempDir()
	check := func(context.Context, string) (history.Stats, error) { return history.Stats{}, nil }
	for b.Loop() {
		took, most := a.run(4000, 16)
		quiet, quietMost = quiet+took, max(quietMost, most)
		ctx, stop := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ; ctx.Err() == nil; copies++ {
				dir := filepath.Join(target, strconv.Itoa(copies))
				if _, err := backup.Write(ctx, backup.Options{Dir: dir, Source: log, Check: check}); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
			}
		}()
		took, most = a.run(4000, 16)
		busy, busyMost = busy+took, max(busyMost, most)
		stop()
		<-done
	}
	b.ReportMetric(busy.Seconds()/quiet.Seconds(), "time-ratio")
	b.ReportMetric(float64(quietMost.Milliseconds()), "max-ms-quiet")
	b.ReportMetric(float64(busyMost.Milliseconds()), "max-ms-busy")
	b.ReportMetric(float64(copies), "copies")
}
