package feed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/feed"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

func entry(p history.Position, bytes int) history.Entry {
	return history.Entry{Position: p, Record: history.Record{ID: "i", Topics: []string{"t"}, Event: make([]byte, bytes)}}
}

func publish(t *testing.T, f *feed.Feed, e history.Entry) {
	t.Helper()
	if err := f.Admit(t.Context(), int64(e.Size())); err != nil {
		t.Fatalf("Admit() = %v", err)
	}
	f.Publish([]history.Entry{e})
}

// noStore fails the test when a tail reads what it should have in memory.
func noStore(t *testing.T) func(context.Context, history.Query) (history.Page, error) {
	t.Helper()
	return func(_ context.Context, q history.Query) (history.Page, error) {
		t.Errorf("the tail reads the store: %+v", q)
		return history.Page{}, history.ErrPositionGone
	}
}

func TestAdmit_patience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := feed.New(feed.Options{LagBytes: 1000}, 0)
		if err := f.Admit(t.Context(), 5000); err != nil {
			t.Fatalf("Admit() = %v for a single large record", err)
		}
		start := time.Now()
		if err := f.Admit(t.Context(), 1); !errors.Is(err, history.ErrOverloaded) {
			t.Errorf("Admit() = %v, want ErrOverloaded", err)
		}
		if waited := time.Since(start); waited != feed.DefaultPatience {
			t.Errorf("Admit() waited %v, want %v", waited, feed.DefaultPatience)
		}
		f.Release(5000)
		if err := f.Admit(t.Context(), 1); err != nil {
			t.Errorf("Admit() = %v when there is room again", err)
		}
	})
}

func TestAdmit_goesOn(t *testing.T) {
	for name, free := range map[string]func(f *feed.Feed, e history.Entry){
		"when the record is stored":   func(f *feed.Feed, e history.Entry) { f.Publish([]history.Entry{e}) },
		"when the record is given up": func(f *feed.Feed, e history.Entry) { f.Release(int64(e.Size())) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := feed.New(feed.Options{LagBytes: 1000}, 0)
				e := entry(1, 900)
				if err := f.Admit(t.Context(), int64(e.Size())); err != nil {
					t.Fatalf("Admit() = %v", err)
				}
				done := make(chan error, 1)
				start := time.Now()
				go func() { done <- f.Admit(t.Context(), 500) }()
				bubble.Advance(time.Second)
				free(f, e)
				if err := <-done; err != nil || time.Since(start) != time.Second {
					t.Errorf("Admit() = %v after %v, want none after 1s", err, time.Since(start))
				}
			})
		})
	}
}

func TestClose_endsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := feed.New(feed.Options{LagBytes: 1}, 0)
		if err := f.Admit(t.Context(), 1); err != nil {
			t.Fatalf("Admit() = %v", err)
		}
		done := make(chan error, 2)
		go func() { done <- f.Admit(t.Context(), 1) }()
		go func() {
			done <- f.Tail(t.Context(), 0, noStore(t), func([]history.Entry) error { return nil })
		}()
		synctest.Wait()
		f.Close()
		for range 2 {
			if err := <-done; !errors.Is(err, history.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
		}
	})
}

// What was admitted before the close may still be published and must not get stuck.
func TestClose_thenPublish(t *testing.T) {
	f := feed.New(feed.Options{}, 0)
	e := entry(1, 10)
	if err := f.Admit(t.Context(), int64(e.Size())); err != nil {
		t.Fatalf("Admit() = %v", err)
	}
	f.Close()
	f.Publish([]history.Entry{e})
	if err := f.Admit(t.Context(), 1); !errors.Is(err, history.ErrClosed) {
		t.Errorf("Admit() = %v, want ErrClosed", err)
	}
}

func TestTail_batches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := feed.New(feed.Options{}, 0)
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		var batches [][]history.Position
		done := make(chan error, 1)
		go func() {
			done <- f.Tail(ctx, 0, noStore(t), func(es []history.Entry) error {
				var ps []history.Position
				for _, e := range es {
					ps = append(ps, e.Position)
				}
				batches = append(batches, ps)
				<-release
				return nil
			})
		}()
		synctest.Wait()
		publish(t, f, entry(1, 10))
		synctest.Wait()
		for p := history.Position(2); p <= 20; p += 2 { // gaps are allowed
			publish(t, f, entry(p, 10))
		}
		close(release)
		synctest.Wait()
		if len(batches) != 2 || len(batches[0]) != 1 || len(batches[1]) != 10 {
			t.Errorf("batches are %v, want the first entry, then all that had come meanwhile", batches)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Tail() = %v, want the context's error", err)
		}
	})
}

// Unread entries stay with KeepUnread, however small the buffer, and go when they have been read.
func TestTail_keepUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := feed.New(feed.Options{BufferBytes: -1, KeepUnread: true, LagBytes: 1 << 20}, 0)
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		seen := 0
		done := make(chan error, 1)
		go func() {
			done <- f.Tail(ctx, 0, noStore(t), func(es []history.Entry) error {
				seen += len(es)
				<-release
				return nil
			})
		}()
		synctest.Wait()
		for p := range history.Position(5000) {
			publish(t, f, entry(p+1, 10))
		}
		close(release)
		synctest.Wait()
		if seen != 5000 {
			t.Errorf("the tail has got %d entries, want 5000", seen)
		}
		cancel()
		<-done
		read := false
		err := f.Tail(t.Context(), 4000, func(context.Context, history.Query) (history.Page, error) {
			read = true
			return history.Page{}, history.ErrPositionGone
		}, func([]history.Entry) error { return nil })
		if !errors.Is(err, history.ErrPositionGone) || !read {
			t.Errorf("Tail(4000) = %v, want it to ask the store: read entries are not kept", err)
		}
	})
}

// A tail goes from the store to the buffer without a gap or a repetition.
func TestTail_storeThenBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		size := int64(new(history.Record{ID: "i", Topics: []string{"t"}, Event: make([]byte, 10)}).Size())
		f := feed.New(feed.Options{BufferBytes: 5 * size}, 0)
		for p := range history.Position(20) {
			publish(t, f, entry(p+1, 10))
		}
		read := func(_ context.Context, q history.Query) (history.Page, error) {
			page := history.Page{Through: min(q.After+4, 20)} // pages of four, as a store would
			for p := q.After + 1; p <= page.Through; p++ {
				page.Entries = append(page.Entries, entry(p, 10))
			}
			return page, nil
		}
		want := history.Position(3)
		enough := errors.New("enough")
		err := f.Tail(t.Context(), 2, read, func(es []history.Entry) error {
			for _, e := range es {
				if e.Position != want {
					t.Errorf("got position %d, want %d", e.Position, want)
				}
				want++
			}
			if want > 20 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Errorf("Tail() = %v", err)
		}
	})
}
