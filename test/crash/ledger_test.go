package crash_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"
)

// Every update has this topic, and one of its own below it.
const everything = "https://example.com/books"

// update is one publish, of a publisher that publishes one after the other.
type update struct {
	id      string
	private bool
	written bool  // the request has left, and nothing has come back yet
	ended   bool  // the answer, or the failure, is there
	sent    int64 // when the request was made, on the ledger's clock
	acked   int64 // when the answer was read; 0: never acknowledged
}

// data is what an update with this id carries: of a size that differs, so that records end everywhere in a page.
func data(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return id + "\n" + strings.Repeat("x", int(h.Sum32()%3000))
}

// ledger is what the publishers know: which updates there are, and what became of each. Safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	changed *sync.Cond
	clock   int64
	all     map[string]*update
	open    map[string]*update // written and unanswered
	acks    int
}

func newLedger() *ledger {
	l := &ledger{all: map[string]*update{}, open: map[string]*update{}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// send notes an update that is about to be published.
func (l *ledger) send(publisher, n int) *update {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	u := &update{id: fmt.Sprintf("p%02d-%05d", publisher, n), private: n%2 == 1, sent: l.clock}
	l.all[u.id] = u
	return u
}

// wrote notes that the request has gone out.
func (l *ledger) wrote(u *update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !u.ended { // the answer can be faster than the note
		u.written = true
		l.open[u.id] = u
		l.changed.Broadcast()
	}
}

// end notes the answer, or that none came.
func (l *ledger) end(u *update, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u.ended = true
	delete(l.open, u.id)
	if acknowledged {
		l.clock++
		u.acked = l.clock
		l.acks++
	}
	l.changed.Broadcast()
}

// whenUnanswered waits until there are so many acknowledgements, then for the pause, so that the moment falls anywhere, and then
// until a publish is unanswered; it calls fn in that very moment, and gives the updates that were unanswered when fn was called.
// When ctx ends it gives none, and fn is not called.
func (l *ledger) whenUnanswered(ctx context.Context, acks int, pause time.Duration, fn func()) []*update {
	stop := context.AfterFunc(ctx, func() { l.mu.Lock(); defer l.mu.Unlock(); l.changed.Broadcast() })
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.acks < acks && ctx.Err() == nil {
		l.changed.Wait()
	}
	l.mu.Unlock()
	timer := time.NewTimer(pause)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	for len(l.open) == 0 && ctx.Err() == nil {
		l.changed.Wait()
	}
	if ctx.Err() != nil {
		return nil
	}
	waiting := make([]*update, 0, len(l.open))
	for _, u := range l.open {
		waiting = append(waiting, u)
	}
	fn()
	return waiting
}

// count gives the number of acknowledgements so far.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// judge compares what a reader of everything saw with what was published, and gives what is wrong with it: every acknowledged
// update once, the others at most once, and one that was acknowledged before another was sent comes before it.
func (l *ledger) judge(seen []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wrong []string
	at := map[string]int{}
	for i, id := range seen {
		if _, twice := at[id]; twice {
			wrong = append(wrong, id+" came twice")
		}
		at[id] = i
		if l.all[id] == nil {
			wrong = append(wrong, id+" was never published")
		}
	}
	for id, u := range l.all {
		if _, came := at[id]; u.acked > 0 && !came {
			wrong = append(wrong, id+" was acknowledged and never came")
		}
	}
	earliestAck, of := l.clock+1, ""
	for _, id := range slices.Backward(seen) {
		u := l.all[id]
		if u == nil {
			continue
		}
		if u.sent > earliestAck {
			wrong = append(wrong, fmt.Sprintf("%s came before %s, which had been acknowledged before it was sent", u.id, of))
		}
		if u.acked > 0 && u.acked < earliestAck {
			earliestAck, of = u.acked, u.id
		}
	}
	return wrong
}
