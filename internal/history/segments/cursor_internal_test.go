package segments

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// follower is a tail that runs beside a test.
type follower struct {
	got  chan string
	done chan error
	stop context.CancelFunc
}

func (s *stage) follow() *follower {
	ctx, cancel := context.WithCancel(s.t.Context())
	f := &follower{got: make(chan string, 100), done: make(chan error, 1), stop: cancel}
	go func() {
		f.done <- s.Tail(ctx, 0, func(entries []history.Entry) error {
			for _, e := range entries {
				f.got <- e.ID
			}
			return nil
		})
	}()
	s.t.Cleanup(f.stop)
	return f
}

// take returns the next ids, as many as are wanted.
func (f *follower) take(n int) []string {
	var ids []string
	for range n {
		ids = append(ids, <-f.got)
	}
	return ids
}

// Whatever an append fails of, nothing of it can be seen: not by Head, Seek, Replay or Tail, and the next one that
// succeeds takes the position it would have had.
func TestFailedAppend_movesNoCursor(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		ops  []string
		heal bool // by reopening
	}{
		"a failed write":    {errBroken, []string{"write"}, true},
		"a failed sync":     {errBroken, []string{"sync"}, true},
		"a full disk":       {noSpace(t), []string{"write"}, false},
		"a failed rotation": {errBroken, []string{"create"}, false},
		"no file for it":    {noSpace(t), []string{"create"}, false},
		"no name for it":    {errBroken, []string{"rename"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{SegmentBytes: twoRecords})
			s.mustAppend(2) // the next one begins a segment
			f := s.follow()
			if got := f.take(2); !slices.Equal(got, []string{"id-1", "id-2"}) {
				t.Fatalf("Tail() gives %q", got)
			}
			before := s.head()
			if !slices.Contains(tc.ops, "create") && !slices.Contains(tc.ops, "rename") {
				s.mustAppend(1) // so that the failure is not that of beginning a segment
				f.take(1)
				before = s.head()
			}
			s.faults.on(tc.err, tc.ops...)
			for range 3 {
				if err := s.appendID("lost"); err == nil {
					t.Fatal("Append() succeeds")
				}
			}
			if after := s.head(); after != before {
				t.Errorf("Head() = %+v, want %+v", after, before)
			}
			if p, err := s.Seek(t.Context(), "lost"); !errors.Is(err, history.ErrUnknownID) {
				t.Errorf("Seek() = %d, %v, want ErrUnknownID", p, err)
			}
			if page, err := s.Replay(t.Context(), history.Query{After: before.Last}); err != nil || len(page.Entries) > 0 || page.Through != before.Last {
				t.Errorf("Replay() = %+v, %v, want nothing", page, err)
			}
			s.faults.set(nil)
			if tc.heal {
				f.stop()
				<-f.done
				s.reopen()
				f = s.follow()
				f.take(int(before.Last))
			}
			p, err := s.Append(t.Context(), &history.Record{ID: "next", Topics: []string{"t"}})
			if err != nil || p != before.Last+1 {
				t.Errorf("Append() = %d, %v, want %d", p, err, before.Last+1)
			}
			if got := f.take(1); got[0] != "next" {
				t.Errorf("Tail() gives %q, want next", got)
			}
		})
	}
}
