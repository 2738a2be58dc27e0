package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// replayEvents is how many events TestReplay_Long has in its history.
const replayEvents = 1_000_000

// TestHandOff_JustAcknowledged subscribes while the dispatcher is held back, with the id that was acknowledged just now and with others:
// nothing is repeated and nothing missed, whatever the dispatcher has yet to say (I2).
func TestHandOff_JustAcknowledged(t *testing.T) {
	for name, backlog := range map[string]int{"": 1 << 20, " with slow readers that fall back": 1} {
		t.Run("cursors ahead of the dispatcher"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				stub := &stubLog{Log: openMemory(t), tailing: func() { <-gate }}
				e := newEnv(t, func(o *hub.Options) { o.Log, o.Backlog, o.WriteTimeout = stub, backlog, 0 })
				early := e.stream(nil, "a")
				var ids []string
				for _, data := range sequence(1, 4) {
					ids = append(ids, e.publish(data, "a", "https://e.example/x"))
				}
				room := -1
				if backlog == 1 {
					room = 40
				}
				open := func(cursor string, patterns ...string) *memSink {
					return attach(e.subscribe(hub.SubscribeRequest{
						Principal: e.root, Matchers: e.matchers(patterns...), Cursor: cursor, HasCursor: cursor != "",
					}), room)
				}
				newest, second, fresh := open(ids[3], "a"), open(ids[1], "~https://e.example/:x", "a"), open("", "*")
				all := open(mercure.Earliest, "a")
				synctest.Wait()
				if got := early.data(t); len(got) > 0 {
					t.Fatalf("a live stream got %q from a dispatcher that is held back", got)
				}
				e.secret("5", "https://e.example/x")
				e.publish("6", "a")
				latest := open(e.publish("7", "a"), "a")
				close(gate)
				e.publish("8", "a")
				for _, k := range []*memSink{newest, second, fresh, all, latest} {
					synctest.Wait()
					k.take(-1)
				}
				early.want(t, "1", "2", "3", "4", "6", "7", "8")
				newest.want(t, "6", "7", "8")
				second.want(t, "3", "4", "5", "6", "7", "8")
				fresh.want(t, "5", "6", "7", "8")
				all.want(t, "1", "2", "3", "4", "6", "7", "8")
				latest.want(t, "8")
			})
		})
	}
}

// TestReplay_Long replays a long history to a reader that takes it at its own pace while more is published all the time: it is neither
// cut nor out of order, and no more than a page or two waits for it in memory (I1, I5).
func TestReplay_Long(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newNumbers(replayEvents)
		e := newEnv(t, func(o *hub.Options) { o.Log = log })
		fast := &orderSink{}
		e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}).Attach(fast)
		slow := &orderSink{room: 1000, limited: true}
		sub := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a"), Cursor: mercure.Earliest, HasCursor: true})
		sub.Attach(slow)
		live := 0
		const step = 128 << 10
		for slow.seen() < replayEvents+live {
			for range 3 {
				if live < replayEvents/100 {
					e.publish("x", "a")
					live++
				}
			}
			slow.take(step)
			bubble.Advance(10 * time.Millisecond)
			if isDone(sub) {
				t.Fatalf("the stream was cut after %d events: %q", slow.seen(), e.metrics.reasons())
			}
			if n := e.hub.Waiting(); n > 4<<20 {
				t.Fatalf("bytes waiting = %d, want a few pages at most", n)
			}
		}
		synctest.Wait()
		for name, k := range map[string]*orderSink{"slow": slow, "fast": fast} {
			if k.wrong != "" {
				t.Errorf("the %s reader: %s", name, k.wrong)
			}
		}
		if first, last := fast.span(); first != replayEvents+1 || last != replayEvents+live {
			t.Errorf("the fast reader got %d to %d, want what was published live", first, last)
		}
		if first, last := slow.span(); first != 1 || last != replayEvents+live {
			t.Errorf("the slow reader got %d to %d, want everything", first, last)
		}
	})
}

// numbers is a log without contents: the entry at position n has the id n. It has any length and takes no memory.
type numbers struct {
	mu     sync.Mutex
	last   int
	change chan struct{} // closed and replaced when last changes
}

func newNumbers(n int) *numbers { return &numbers{last: n, change: make(chan struct{})} }

func (l *numbers) entry(n int) history.Entry {
	id := strconv.Itoa(n)
	return history.Entry{Position: history.Position(n), Record: history.Record{
		ID: id, Topics: []string{"a"}, Event: sse.AppendEvent(nil, sse.Event{ID: id, Data: id}),
	}}
}

func (l *numbers) end() (last int, change <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.change
}

func (l *numbers) Append(context.Context, ...*history.Record) (history.Position, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	close(l.change)
	l.change = make(chan struct{})
	return history.Position(l.last), nil
}

func (l *numbers) Tail(ctx context.Context, after history.Position, fn func([]history.Entry) error) error {
	for next := int(after) + 1; ; {
		last, change := l.end()
		var batch []history.Entry
		for ; next <= last; next++ {
			batch = append(batch, l.entry(next))
		}
		if err := fn(batch); err != nil {
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *numbers) Seek(_ context.Context, id string) (history.Position, error) {
	last, _ := l.end()
	n, err := strconv.Atoi(id)
	if err != nil || n < 1 || n > last {
		return 0, history.ErrUnknownID
	}
	return history.Position(n), nil
}

func (l *numbers) Replay(_ context.Context, q history.Query) (history.Page, error) {
	last, _ := l.end()
	if q.UpTo != 0 {
		last = min(last, int(q.UpTo))
	}
	p := history.Page{Through: q.After}
	for bytes := 0; int(p.Through) < last && bytes < q.MaxBytes; p.Through++ {
		e := l.entry(int(p.Through) + 1)
		bytes += e.Size()
		p.Entries = append(p.Entries, e)
	}
	return p, nil
}

func (l *numbers) Head(context.Context) (history.Head, error) {
	last, _ := l.end()
	return history.Head{Epoch: "numbers", First: 1, Last: history.Position(last), LastID: strconv.Itoa(last)}, nil
}

func (l *numbers) Ready(context.Context) error { return nil }
func (l *numbers) Close() error                { return nil }

// orderSink checks that the ids which it gets are numbers one after the other, and keeps nothing else.
type orderSink struct {
	mu      sync.Mutex
	notify  hub.Notify
	limited bool
	room    int
	owed    bool
	line    []byte // of which the end has not come
	count   int
	last    int
	wrong   string
}

func (k *orderSink) Framing() hub.Framing { return hub.Raw }
func (k *orderSink) Start(n hub.Notify)   { k.notify = n }
func (k *orderSink) Finish()              {}
func (k *orderSink) Abort()               {}

func (k *orderSink) TryWrite(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(p)
	if k.limited {
		n = min(n, k.room)
		k.room -= n
	}
	k.owed = n < len(p)
	rest := p[:n]
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			k.line = append(k.line, rest...)
			return n, nil
		}
		k.read(string(slices.Concat(k.line, line)))
		k.line, rest = k.line[:0], after
	}
}

// read reads a line.
func (k *orderSink) read(line string) {
	value, found := strings.CutPrefix(line, "id:")
	if !found {
		return
	}
	id, err := strconv.Atoi(strings.TrimSpace(value))
	if k.wrong == "" && (err != nil || k.count > 0 && id != k.last+1) {
		k.wrong = fmt.Sprintf("%q came after %d", line, k.last)
	}
	k.count, k.last = k.count+1, id
}

// take makes room.
func (k *orderSink) take(n int) {
	k.mu.Lock()
	k.room += n
	owed := k.owed
	k.owed = false
	k.mu.Unlock()
	if owed {
		k.notify.Writable()
	}
}

func (k *orderSink) seen() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count
}

// span gives the first and the last id, if what lies between has come.
func (k *orderSink) span() (first, last int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last - k.count + 1, k.last
}
