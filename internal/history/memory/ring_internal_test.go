package memory

import (
	"strconv"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// What has gone, from the beginning or from the middle, gives its place back.
func TestRing_givesBack(t *testing.T) {
	const keep = 100
	l, err := Open(Options{MaxEvents: keep, MaxSubscriptionEvents: keep})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := range 50 * keep {
		if n == 30*keep {
			l.o.MaxSubscriptionEvents = 1
		}
		r := &history.Record{ID: strconv.Itoa(n), Topics: []string{"a"}, Subscription: n%10 > 0}
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		ring := &l.ring
		held := ring.len() - ring.hollow
		if len(ring.items) > 2*held+2 || len(ring.events) > 2*ring.subscriptionEvents()+2 {
			t.Fatalf("%d entries take %d places, and %d events %d", held, len(ring.items), ring.subscriptionEvents(), len(ring.events))
		}
		if n := len(ring.ids); n != held {
			t.Fatalf("%d ids are known of %d entries", n, held)
		}
	}
	for i, it := range l.ring.items[:cap(l.ring.items)] {
		if (i < l.ring.head || i >= len(l.ring.items)) && it.ID != "" {
			t.Fatalf("the entry at place %d is kept although it has gone", i)
		}
	}
}
