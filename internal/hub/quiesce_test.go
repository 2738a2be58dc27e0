package hub_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

// logLines is where a hub logs; it is read while nothing runs.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// quiet fails unless nothing worth a warning was logged.
func (l *logLines) quiet(tb testing.TB) {
	tb.Helper()
	if got := l.String(); strings.Contains(got, "level=WARN") || strings.Contains(got, "level=ERROR") {
		tb.Errorf("a hub that stops as it should logs:\n%s", got)
	}
}

func logTo(l *logLines) func(*hub.Options) {
	return func(o *hub.Options) { o.Logger = slog.New(slog.NewTextHandler(l, nil)) }
}

func TestQuiesce(t *testing.T) {
	publish := func(e *env, data string) error {
		_, err := e.hub.Publish(context.Background(), e.root, &mercure.Update{Topics: []string{"a"}, Data: data})
		return err
	}
	t.Run("waits for the updates under way, and refuses others and new streams", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log = stub })
			k := e.stream(nil, "a")
			synctest.Wait()
			stub.appending = func() { <-gate }
			under := make(chan error, 1)
			go func() { under <- publish(e, "under way") }()
			synctest.Wait()
			quiet := make(chan error, 1)
			go func() { quiet <- e.hub.Quiesce(context.Background()) }()
			synctest.Wait()
			if err := publish(e, "too late"); !errors.Is(err, hub.ErrDraining) {
				t.Errorf("Publish = %v, want %v", err, hub.ErrDraining)
			}
			for _, hasCursor := range []bool{false, true} {
				_, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{Matchers: e.matchers("a"), HasCursor: hasCursor})
				if !errors.Is(err, hub.ErrDraining) {
					t.Errorf("Subscribe = %v, want %v", err, hub.ErrDraining)
				}
			}
			if err := e.hub.Ready(t.Context()); !errors.Is(err, hub.ErrDraining) {
				t.Errorf("Ready = %v, want %v", err, hub.ErrDraining)
			}
			select {
			case err := <-quiet:
				t.Fatalf("Quiesce = %v while an update is under way", err)
			default:
			}
			close(gate)
			if err := errors.Join(<-quiet, <-under); err != nil {
				t.Errorf("Quiesce and Publish = %v, want nil", err)
			}
			k.want(t, "under way")
			if isDone(k.sub) {
				t.Error("the stream was ended")
			}
			if err := e.hub.Quiesce(t.Context()); err != nil {
				t.Errorf("Quiesce again = %v, want nil", err)
			}
		})
	})
	t.Run("gives up with its context, and stays quiet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			stub := &stubLog{Log: openMemory(t), appending: func() { <-gate }}
			e := newEnv(t, func(o *hub.Options) { o.Log = stub })
			under := make(chan error, 1)
			go func() { under <- publish(e, "1") }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := e.hub.Quiesce(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Quiesce = %v, want %v", err, context.DeadlineExceeded)
			}
			if err := publish(e, "2"); !errors.Is(err, hub.ErrDraining) {
				t.Errorf("Publish = %v, want %v", err, hub.ErrDraining)
			}
			close(gate)
			if err := <-under; err != nil {
				t.Errorf("Publish = %v, want nil: it was accepted", err)
			}
		})
	})
	t.Run("lets readers have what was acknowledged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t), tailing: func() { <-time.After(300 * time.Millisecond) }}
			e := newEnv(t, func(o *hub.Options) { o.Log, o.DrainWindow = stub, 0 })
			k := e.stream(nil, "a")
			if err := errors.Join(publish(e, "1"), e.hub.Quiesce(t.Context()), stub.Close(), e.hub.Drain(t.Context())); err != nil {
				t.Fatal(err)
			}
			k.want(t, "1")
		})
	})
	t.Run("does not wait long for readers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t), tailing: func() { <-time.After(time.Hour) }}
			e := newEnv(t, func(o *hub.Options) { o.Log = stub })
			synctest.Wait()
			before := time.Now()
			if err := errors.Join(publish(e, "1"), e.hub.Quiesce(t.Context())); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(before); took > 2*time.Second {
				t.Errorf("Quiesce took %v", took)
			}
		})
	})
	t.Run("returns when the hub has stopped, and before it has run", func(t *testing.T) {
		h, err := hub.New(newEnvironmentless(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Quiesce(t.Context()); err != nil {
			t.Errorf("Quiesce = %v, want nil", err)
		}
		e := newEnv(t, nil)
		e.stop()
		<-e.stopped
		if err := e.hub.Quiesce(t.Context()); err != nil {
			t.Errorf("Quiesce = %v, want nil", err)
		}
	})
}

// TestQuiesce_ClosedHistory closes the history under streams in everything they can be doing.
func TestQuiesce_ClosedHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 10 * time.Second
		lines := &logLines{}
		stub := &stubLog{Log: openMemory(t)}
		e := newEnv(t, func(o *hub.Options) {
			logTo(lines)(o)
			o.Log, o.Replays, o.DrainWindow, o.WriteTimeout, o.Backlog = stub, 2, window, time.Hour, 2000
		})
		all := filled(1, 200, 1000)
		for _, d := range all {
			e.secret(d, "a")
		}
		live := []*memSink{e.stream(e.root, "a"), e.stream(nil, "b")}
		slow := attach(e.subscribe(hub.SubscribeRequest{Principal: e.root, Matchers: e.matchers("a")}), 1)
		reading := e.replaying(stub)
		stuck := attach(e.subscribe(hub.SubscribeRequest{
			Principal: e.root, Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true,
		}), 0)
		for _, d := range filled(201, 210, 1000) { // the slow reader falls back to the history
			e.secret(d, "a")
		}
		synctest.Wait()
		if err := errors.Join(e.hub.Quiesce(t.Context()), stub.Close()); err != nil {
			t.Fatal(err)
		}
		reading.release() // the page it waits for cannot be read any more
		slow.take(1 << 20)
		stuck.take(70 << 10) // asks for the next page
		elapse(time.Minute)
		readers := append(live, slow, reading.sink, stuck)
		for i, k := range readers {
			if isDone(k.sub) {
				t.Errorf("stream %d ended before Drain", i)
			}
		}
		before := time.Now()
		if err := e.hub.Drain(t.Context()); err != nil {
			t.Errorf("Drain = %v", err)
		}
		if took := time.Since(before); took > window+time.Second {
			t.Errorf("the streams took %v to end, want %v at most", took, window)
		}
		for i, k := range readers {
			got := k.data(t)
			if finished, aborted := k.ended(); k != stuck && (!finished || aborted) {
				t.Errorf("stream %d did not end cleanly", i)
			}
			if len(got) > 0 && !slices.Equal(got, filled(0, 210, 1000)[first(got):first(got)+len(got)]) {
				t.Errorf("stream %d has events out of order", i)
			}
		}
		for _, reason := range e.metrics.reasons() {
			if reason != "drained" {
				t.Errorf("a stream was cut for %q, want drained", reason)
			}
		}
		lines.quiet(t)
	})
}

// first is the number of the first event.
func first(data []string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(data[0], ".")))
	return n
}

// replayingStream is a stream whose page is being read.
type replayingStream struct {
	sink    *memSink
	release func()
}

func (e *env) replaying(stub *stubLog) replayingStream {
	s := e.subscribe(hub.SubscribeRequest{Principal: e.root, Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true})
	gate := make(chan struct{})
	stub.hold(func() { <-gate })
	k := attach(s, -1)
	synctest.Wait()
	stub.hold(nil)
	return replayingStream{sink: k, release: sync.OnceFunc(func() { close(gate) })}
}

// TestQuiesce_SubscribeMeetsAClosedHistory closes the history under streams that are being opened.
func TestQuiesce_SubscribeMeetsAClosedHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stub := &stubLog{Log: openMemory(t)}
		e := newEnv(t, func(o *hub.Options) { o.Log, o.Replays = stub, 1 })
		e.publish("1", "a")
		synctest.Wait()
		gate := make(chan struct{})
		stub.hold(func() { <-gate })
		results := make(chan error, 2)
		for range 2 { // one reads its first page, the other waits for its turn
			go func() {
				_, err := e.hub.Subscribe(context.Background(), hub.SubscribeRequest{
					Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true,
				})
				results <- err
			}()
		}
		synctest.Wait()
		if err := errors.Join(e.hub.Quiesce(t.Context()), stub.Close()); err != nil {
			t.Fatal(err)
		}
		close(gate)
		for range 2 {
			if err := <-results; !errors.Is(err, hub.ErrDraining) || errors.Is(err, hub.ErrUnavailable) {
				t.Errorf("Subscribe = %v, want %v", err, hub.ErrDraining)
			}
		}
	})
}

// TestQuiesce_Successor has two hubs use one store after each other, while updates are published and readers read: the second one
// has the store while the streams of the first one are still open. Every acknowledged update is read once, in order, by every
// reader that goes on by its cursor.
func TestQuiesce_Successor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := &logLines{}
	open := func() *segments.Log {
		log, err := segments.Open(t.Context(), segments.Options{Dir: dir, MaxEvents: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	firstLog := open()
	change := func(o *hub.Options) {
		logTo(lines)(o)
		o.DrainWindow, o.Backlog = 300*time.Millisecond, 4000
	}
	before := newEnv(t, func(o *hub.Options) { change(o); o.Log = firstLog })
	h := &handover{current: before, next: make(chan struct{})}
	readers := []*travelling{
		h.reader(t, -1, ""), h.reader(t, -1, "earliest"), h.reader(t, 700, ""), h.reader(t, 300, "earliest"), h.reader(t, 0, "earliest"),
	}
	var publishing sync.WaitGroup
	stop := make(chan struct{})
	for p := range 4 {
		publishing.Go(func() { h.publish(t, p, stop) })
	}
	<-time.After(100 * time.Millisecond)
	if err := errors.Join(before.hub.Quiesce(t.Context()), firstLog.Close()); err != nil {
		t.Fatal(err)
	}
	secondLog := open()
	defer func() { _ = secondLog.Close() }()
	after := newEnv(t, func(o *hub.Options) { change(o); o.Log = secondLog })
	h.turnTo(after) // the second one appends from here on
	<-time.After(50 * time.Millisecond)
	if n := before.metrics.get(&before.metrics.subscribers); n != len(readers) {
		t.Errorf("%d streams are open before the drain, want %d", n, len(readers))
	}
	if err := before.hub.Drain(t.Context()); err != nil {
		t.Errorf("Drain = %v", err)
	}
	<-time.After(50 * time.Millisecond)
	close(stop)
	publishing.Wait()
	end := after.publish("end", "a")
	acknowledged := h.sorted()
	for i, r := range readers {
		ids := r.read(t, end)
		if i == 0 || i == 2 { // began live, wherever that was
			ids = append(slices.Clone(h.order(t, secondLog)[:len(h.order(t, secondLog))-len(ids)]), ids...)
		}
		if want := h.order(t, secondLog); !slices.Equal(ids, want) {
			t.Errorf("reader %d has %d events, want the %d of the history, in order", i, len(ids), len(want))
		}
		slices.Sort(ids)
		if !slices.Equal(slices.Compact(ids), acknowledged(end)) {
			t.Errorf("reader %d lacks acknowledged updates", i)
		}
	}
	lines.quiet(t)
}

// handover is a hub and, later, its successor, as clients see them.
type handover struct {
	mu      sync.Mutex
	current *env
	next    chan struct{} // closed when current is the second hub
	acks    []string
}

func (h *handover) turnTo(e *env) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current = e
	close(h.next)
}

func (h *handover) hub() *env {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// publish publishes until stop is closed, and goes to the next hub when one refuses.
func (h *handover) publish(t *testing.T, publisher int, stop <-chan struct{}) {
	t.Helper()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		e := h.hub()
		u := &mercure.Update{Topics: []string{"a"}, Data: strings.Repeat("x", 100), ID: strconv.Itoa(publisher) + "/" + strconv.Itoa(i)}
		id, err := e.hub.Publish(context.Background(), e.root, u)
		switch {
		case err == nil:
			h.mu.Lock()
			h.acks = append(h.acks, id)
			h.mu.Unlock()
		case errors.Is(err, hub.ErrDraining):
			<-h.next
		default:
			t.Errorf("Publish = %v", err)
			return
		}
	}
}

// sorted returns a function that adds an id to the acknowledged ones.
func (h *handover) sorted() func(string) []string {
	return func(id string) []string {
		h.mu.Lock()
		defer h.mu.Unlock()
		out := append(slices.Clone(h.acks), id)
		slices.Sort(out)
		return out
	}
}

// order is the ids in the history.
func (h *handover) order(t *testing.T, log *segments.Log) []string {
	t.Helper()
	e := h.hub()
	k := e.resume(e.root, "earliest", "a")
	head, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return until(t, k, head.LastID)
}

// until waits for an event and returns the ids up to it.
func until(t *testing.T, k *memSink, id string) []string {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		ids := idsOf(k.events(t))
		if i := slices.Index(ids, id); i >= 0 {
			return ids[:i+1]
		}
		select {
		case <-deadline:
			t.Fatalf("waited for %s in vain after %d events", id, len(ids))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func idsOf(events []sse.Event) []string {
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	return ids
}

// travelling is a reader that goes on with its cursor at the next hub when its stream has ended.
type travelling struct {
	h       *handover
	sink    *memSink
	stopped chan struct{}
}

// reader opens a stream whose reader takes so many bytes every few milliseconds; -1: all at once.
func (h *handover) reader(t *testing.T, pace int, cursor string) *travelling {
	t.Helper()
	e := h.hub()
	s := e.subscribe(hub.SubscribeRequest{Principal: e.root, Matchers: e.matchers("a"), Cursor: cursor, HasCursor: cursor != ""})
	r := &travelling{h: h, sink: attach(s, pace), stopped: make(chan struct{})}
	go func() {
		defer close(r.stopped)
		for {
			select {
			case <-s.Done():
				return
			case <-time.After(5 * time.Millisecond):
				r.sink.take(pace)
			}
		}
	}()
	return r
}

// read goes on at the second hub and returns all ids up to the last one.
func (r *travelling) read(t *testing.T, last string) []string {
	t.Helper()
	<-r.stopped
	events := r.sink.events(t)
	ids := idsOf(events)
	e := r.h.hub()
	cursor := "earliest"
	if len(ids) > 0 {
		cursor = ids[len(ids)-1]
	}
	return append(ids, until(t, e.resume(e.root, cursor, "a"), last)...)
}
