package historytest

import (
	"errors"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func (s *suite) testLifecycle(t *testing.T) {
	t.Run("a closed log refuses everything", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 3)
		c := f.tail(f.want[2].Position)
		if err := f.log.Ready(f.context()); err != nil {
			t.Errorf("Ready() = %v", err)
		}
		if err := f.log.Close(); err != nil {
			t.Fatalf("Close() = %v", err)
		}
		f.wantEnd(c, history.ErrClosed)
		ctx := f.context()
		_, appendErr := f.log.Append(ctx, record(9))
		_, seekErr := f.log.Seek(ctx, record(0).ID)
		_, replayErr := f.log.Replay(ctx, history.Query{})
		_, headErr := f.log.Head(ctx)
		for name, err := range map[string]error{
			"Append": appendErr, "Seek": seekErr, "Replay": replayErr, "Head": headErr, "Ready": f.log.Ready(ctx),
			"Tail": f.log.Tail(ctx, 0, func([]history.Entry) error { return nil }),
		} {
			if !errors.Is(err, history.ErrClosed) {
				t.Errorf("%s() = %v after Close, want ErrClosed", name, err)
			}
		}
		if err := f.log.Close(); err != nil {
			t.Errorf("Close() = %v the second time", err)
		}
	})
	t.Run("closing finishes appends or refuses them", s.testCloseUnderLoad)
	t.Run("a cancelled context stores nothing", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		if _, err := f.log.Append(cancelled(t), record(1)); !errors.Is(err, errCancelled) {
			t.Errorf("Append(cancelled) = %v", err)
		}
		f.wantUnknown(record(1).ID)
		if h := f.head(); h.Last != 0 {
			t.Errorf("Head().Last = %d, want 0", h.Last)
		}
	})
	if s.durable {
		t.Run("reopening keeps everything", s.testReopen)
	}
}

func (s *suite) testCloseUnderLoad(t *testing.T) {
	f := s.fixture(t, Limits{})
	type outcome struct {
		n   int
		err error
	}
	const count = 500
	outcomes := make(chan outcome, count)
	for n := range count {
		go func() {
			_, err := f.log.Append(t.Context(), record(n))
			outcomes <- outcome{n, err}
		}()
	}
	first := <-outcomes
	if err := f.log.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	stored := map[string]bool{}
	for o, left := first, count-1; ; o, left = <-outcomes, left-1 {
		switch {
		case o.err == nil:
			stored[record(o.n).ID] = true
		case !errors.Is(o.err, history.ErrClosed):
			t.Errorf("Append() = %v while closing, want ErrClosed", o.err)
		}
		if left == 0 {
			break
		}
	}
	if f.store.Reopen == nil {
		return
	}
	f.reopen()
	got := f.replayAll(0, 0, 0)
	for _, e := range got {
		if !stored[e.ID] {
			t.Errorf("%s was refused and is there", e.ID)
		}
	}
	if len(got) != len(stored) {
		t.Errorf("%d entries are there, want the %d acknowledged ones", len(got), len(stored))
	}
}

func (s *suite) testReopen(t *testing.T) {
	f := s.fixture(t, Limits{})
	empty := f.head()
	f.reopen()
	if got := f.head(); got != empty {
		t.Errorf("Head() = %+v after reopening an empty log, want %+v", got, empty)
	}
	for round := range 3 {
		f.fill(round*20, 20)
		before := f.head()
		f.reopen()
		if got := f.head(); got != before {
			t.Errorf("Head() = %+v after reopening, want %+v", got, before)
		}
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
		for _, e := range f.want {
			f.wantSeek(e.ID, e.Position)
		}
	}
	c := f.tail(f.want[0].Position)
	f.fill(100, 5)
	diffEntries(t, "Tail", f.want[1:], f.next(c, len(f.want)-1))
}
