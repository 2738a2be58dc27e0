package historytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// testTogether is about several records in one Append.
func (s *suite) testTogether(t *testing.T) {
	t.Run("they lie behind one another, whoever else appends", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		const writers, rounds, count = 8, 20, 7
		var mu sync.Mutex
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for round := range rounds {
					var records []*history.Record
					for i := range count {
						records = append(records, record(((w*rounds)+round)*count+i))
					}
					last, err := f.log.Append(t.Context(), records...)
					if err != nil {
						t.Errorf("Append() = %v", err)
						return
					}
					mu.Lock()
					for i, r := range records {
						f.want = append(f.want, history.Entry{Position: last - count + 1 + history.Position(i), Record: *r})
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		sortEntries(f.want)
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
		if s.durable {
			f.reopen()
			diffEntries(t, "Replay after reopening", f.want, f.replayAll(0, 0, 0))
		}
	})
	t.Run("they become visible together", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 1)
		const rounds, count = 100, 5
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			for ctx.Err() == nil {
				h, err := f.log.Head(t.Context())
				if err != nil || (h.Last-f.want[0].Position)%count != 0 {
					t.Errorf("Head() = %+v, %v in the middle of an Append", h, err)
					return
				}
			}
		})
		for round := range rounds {
			var records []*history.Record
			for i := range count {
				records = append(records, record(1+round*count+i))
			}
			if _, err := f.log.Append(f.context(), records...); err != nil {
				t.Errorf("Append() = %v", err)
			}
		}
		stop()
		watching.Wait()
	})
	t.Run("one that cannot be stored refuses all", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 2)
		before := f.head()
		if _, err := f.log.Append(f.context(), record(2), &history.Record{ID: "x"}); err == nil {
			t.Error("Append() of a record without topics succeeded")
		}
		if _, err := f.log.Append(f.context()); err == nil {
			t.Error("Append() of nothing succeeded")
		}
		half := sized(3, history.MaxAppendBytes/2)
		if _, err := f.log.Append(f.context(), half, half); !errors.Is(err, history.ErrTooLarge) {
			t.Errorf("Append() of too much = %v, want ErrTooLarge", err)
		}
		if h := f.head(); h != before {
			t.Errorf("Head() = %+v after refusals, want %+v", h, before)
		}
		f.append(sized(3, history.MaxAppendBytes/3), sized(4, history.MaxAppendBytes/3))
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
	})
	t.Run("a tail gets them in order", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.append(record(0), record(1), record(2))
		f.append(record(3))
		f.append(record(4), record(5))
		diffEntries(t, "Tail", f.want, f.next(f.tail(0), len(f.want)))
		diffEntries(t, "Tail from within", slices.Clone(f.want[2:]), f.next(f.tail(f.want[1].Position), len(f.want)-2))
	})
}
