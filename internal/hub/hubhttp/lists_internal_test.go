package hubhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// listOf lists one subscription after so many that fill the first piece of a document.
func listOf(idBytes int) listing {
	return func(context.Context) (string, []mercure.Subscription, error) {
		list := []mercure.Subscription{{ID: "/" + strings.Repeat("a", documentChunk)}, {ID: "/" + strings.Repeat("b", idBytes)}}
		return "cursor", list, nil
	}
}

func TestLists_making(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := newLists(), make(chan struct{})
		slow := func(ctx context.Context) (string, []mercure.Subscription, error) {
			<-release
			return listOf(1)(ctx)
		}
		results := make(chan error)
		try := func(ctx context.Context, list listing) {
			_, err := l.make(ctx, "/", list)
			results <- err
		}
		for range listsMaking {
			go try(t.Context(), slow)
		}
		synctest.Wait()
		began := time.Now()
		if _, err := l.make(t.Context(), "/", listOf(1)); !errors.Is(err, errManyLists) || time.Since(began) != listsWaiting {
			t.Errorf("make = %v after %v, want %v after %v", err, time.Since(began), errManyLists, listsWaiting)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.make(gone, "/", listOf(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("make = %v of a request that is gone", err)
		}
		go try(t.Context(), listOf(1))
		close(release)
		for range listsMaking + 1 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		failed := errors.New("no history")
		for range 2 * listsMaking { // each gives its place back
			if _, err := l.make(t.Context(), "/", func(context.Context) (string, []mercure.Subscription, error) { return "", nil, failed }); !errors.Is(err, failed) {
				t.Errorf("make = %v, want %v", err, failed)
			}
		}
	})
}

func TestLists_memory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewConnections(0, 0)
		c.BoundLists(1000, time.Second, time.Second)
		l := c.lists
		first, err := l.make(t.Context(), "/", listOf(5000)) // more than there is, but alone
		if err != nil || first.cursor != "cursor" {
			t.Fatal(first.cursor, err)
		}
		began := time.Now()
		if _, err := l.make(t.Context(), "/", listOf(1)); !errors.Is(err, errManyLists) || time.Since(began) != time.Second {
			t.Errorf("make = %v after %v beside one that takes everything, want %v after a second", err, time.Since(began), errManyLists)
		}
		short := func(context.Context) (string, []mercure.Subscription, error) { return "", nil, nil }
		times := 0
		waiting := make(chan error)
		go func() {
			m, err := l.make(t.Context(), "/", func(ctx context.Context) (string, []mercure.Subscription, error) { times++; return listOf(700)(ctx) })
			if err == nil {
				defer m.free()
			}
			waiting <- err
		}()
		synctest.Wait()
		if m, err := l.make(t.Context(), "/", short); err != nil {
			t.Errorf("make = %v of a short list while a long one waits", err)
		} else {
			m.free()
		}
		first.free()
		if err := <-waiting; err != nil || times != 2 {
			t.Errorf("make = %v after %d lists, want one made anew when there is room", err, times)
		}
		synctest.Wait()
		for range 3 { // all of the memory is there again
			m, err := l.make(t.Context(), "/", listOf(5000))
			if err != nil {
				t.Fatal(err)
			}
			m.free()
		}
	})
}

// The pieces of a document make the document, wherever they end.
func TestDocument(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000, 3000} {
		list := make([]mercure.Subscription, n)
		for i := range list {
			list[i] = mercure.Subscription{ID: fmt.Sprint("/", i), MatchType: "exact", Match: strings.Repeat("é", i%200), Subscriber: "s", Active: true}
		}
		d := newDocument("/a\"\xff", list)
		text, pieces := slices.Clone(d.piece), 1
		for ; d.rest != nil; pieces++ {
			if len(d.piece) > documentChunk+1000 {
				t.Fatalf("a piece has %d bytes", len(d.piece))
			}
			d.piece = d.piece[:0]
			d.fill()
			text = append(text, d.piece...)
		}
		var got struct {
			ID            string
			Subscriptions []struct{ ID, Match string }
		}
		if err := json.Unmarshal(text, &got); err != nil || got.ID != "/a\"\uFFFD" || got.Subscriptions == nil || len(got.Subscriptions) != n {
			t.Fatalf("%d subscriptions in %d pieces: %d, %v", n, pieces, len(got.Subscriptions), err)
		}
		for i, s := range got.Subscriptions {
			if s.ID != list[i].ID || s.Match != list[i].Match {
				t.Errorf("%d: %+v", i, s)
			}
		}
		if (pieces > 1) != (len(text) > documentChunk+1000) {
			t.Errorf("%d bytes in %d pieces", len(text), pieces)
		}
	}
}
