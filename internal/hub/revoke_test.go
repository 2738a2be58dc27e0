package hub_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
)

// verdicts is what Options.Revoked answers, by token id. hook, if not nil, is called once an answer is found and before it is given.
type verdicts struct {
	mu      sync.Mutex
	revoked map[string]bool
	asked   int
	hook    func()
}

func (v *verdicts) judge(p *hub.Principal) bool {
	v.mu.Lock()
	v.asked++
	verdict, hook := v.revoked[p.TokenID], v.hook
	v.mu.Unlock()
	if hook != nil {
		hook()
	}
	return verdict
}

func (v *verdicts) revoke(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.revoked == nil {
		v.revoked = map[string]bool{}
	}
	v.revoked[id] = true
}

// named returns a principal that may do everything, with a token id.
func (e *env) named(id string) *hub.Principal {
	p := *e.root
	p.TokenID = id
	return &p
}

func hasToken(id string) func(*hub.Principal) bool {
	return func(p *hub.Principal) bool { return p.TokenID == id }
}

func TestRevoked(t *testing.T) {
	t.Run("refuses a stream, and counts it out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v := &verdicts{}
			v.revoke("t1")
			e := newEnv(t, func(o *hub.Options) { o.Revoked = v.judge })
			for _, hasCursor := range []bool{false, true} {
				_, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{
					Principal: e.named("t1"), Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: hasCursor,
				})
				if !errors.Is(err, hub.ErrRevoked) {
					t.Errorf("Subscribe = %v, want %v", err, hub.ErrRevoked)
				}
			}
			synctest.Wait()
			if n := e.metrics.get(&e.metrics.subscribers); n != 0 {
				t.Errorf("subscribers = %d, want 0", n)
			}
			k := e.stream(e.named("t2"), "a")
			e.secret("1", "a")
			k.want(t, "1")
		})
	})
	t.Run("refuses an update before anything else, and stores nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v := &verdicts{}
			v.revoke("t1")
			e := newEnv(t, func(o *hub.Options) { o.Revoked = v.judge })
			k := e.stream(nil, "a")
			for _, topics := range [][]string{{"a"}, {hubURL + "/subscriptions/x"}, {}} {
				_, err := e.hub.Publish(t.Context(), e.named("t1"), &mercure.Update{Topics: topics, Data: "x"})
				if !errors.Is(err, hub.ErrRevoked) {
					t.Errorf("Publish to %q = %v, want %v", topics, err, hub.ErrRevoked)
				}
			}
			k.want(t)
		})
	})
	t.Run("is not asked about anonymous clients", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v := &verdicts{}
			e := newEnv(t, func(o *hub.Options) { o.Revoked = v.judge })
			e.stream(nil, "a")
			if _, err := e.hub.Publish(t.Context(), nil, &mercure.Update{Topics: []string{"a"}}); !errors.Is(err, hub.ErrForbidden) {
				t.Errorf("Publish = %v, want %v", err, hub.ErrForbidden)
			}
			if v.asked != 0 {
				t.Errorf("asked %d times, want never", v.asked)
			}
		})
	})
}

// TestRevoked_BetweenVerificationAndRegistration shows that no revocation slips between the verification of a token and the stream
// it is for: one that comes before the question is answered by it, and one that comes after it closes the stream, at whatever
// moment that is.
func TestRevoked_BetweenVerificationAndRegistration(t *testing.T) {
	for name, hasCursor := range map[string]bool{"live": false, "with a cursor": true} {
		t.Run("just before the question: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &verdicts{}
				e := newEnv(t, func(o *hub.Options) { o.Revoked = v.judge })
				p := e.named("t1") // verified here
				v.revoke("t1")     // the list, then the streams there are
				if n := e.hub.CloseBy(hasToken("t1")); n != 0 {
					t.Errorf("CloseBy = %d, want 0", n)
				}
				_, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{
					Principal: p, Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: hasCursor,
				})
				if !errors.Is(err, hub.ErrRevoked) {
					t.Errorf("Subscribe = %v, want %v", err, hub.ErrRevoked)
				}
			})
		})
		t.Run("just after the question: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &verdicts{}
				e := newEnv(t, func(o *hub.Options) { o.Revoked = v.judge })
				e.secret("before", "a")
				closed := 0
				v.hook = func() { // the answer is "not revoked", and has not been given yet
					v.revoke("t1")
					closed += e.hub.CloseBy(hasToken("t1"))
				}
				s, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{
					Principal: e.named("t1"), Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: hasCursor,
				})
				if err != nil {
					t.Fatalf("Subscribe = %v", err)
				}
				v.hook = nil
				k := attach(s, -1)
				e.secret("after", "a")
				synctest.Wait()
				finished, _ := k.ended()
				if closed != 1 || !finished || !isDone(s) || k.text(t) != "" {
					t.Errorf("CloseBy = %d, finished %v, stream %q; want a stream that ended before it began", closed, finished, k.text(t))
				}
			})
		})
	}
}

// TestCloseBy_Phases closes streams in everything they can be doing.
func TestCloseBy_Phases(t *testing.T) {
	// prepare returns a hub in which the stream of token t1 is in the phase, and a function that lets it go on, if it can.
	for name, prepare := range map[string]func(*testing.T) (*env, func() *memSink){
		"waiting for its turn to open": func(t *testing.T) (*env, func() *memSink) {
			t.Helper()
			e, gate := gated(t)
			first := e.resumeLater(t, "t0")
			synctest.Wait()
			second := e.resumeLater(t, "t1")
			synctest.Wait()
			return e, func() *memSink {
				close(gate)
				first()
				return second()
			}
		},
		"reading its first page": func(t *testing.T) (*env, func() *memSink) {
			t.Helper()
			e, gate := gated(t)
			open := e.resumeLater(t, "t1")
			synctest.Wait()
			return e, func() *memSink {
				close(gate)
				return open()
			}
		},
		"open without a sink": func(t *testing.T) (*env, func() *memSink) {
			t.Helper()
			e, gate := gated(t)
			close(gate)
			open := e.resumeLater(t, "t1")
			synctest.Wait()
			return e, open
		},
		"waiting for a page": func(t *testing.T) (*env, func() *memSink) {
			t.Helper()
			e, gate := gated(t)
			close(gate)
			open := e.resumeLater(t, "t1")
			synctest.Wait()
			second := make(chan struct{})
			e.gate(second)
			k := open()
			if n := len(k.data(t)); n == 0 || n == 200 {
				t.Errorf("%d events before the page, want some of 200", n)
			}
			return e, func() *memSink {
				close(second)
				return k
			}
		},
		"live": func(t *testing.T) (*env, func() *memSink) {
			t.Helper()
			e, gate := gated(t)
			close(gate)
			k := e.stream(e.named("t1"), "a")
			synctest.Wait()
			return e, func() *memSink { return k }
		},
		"live and stuck between two entries": func(t *testing.T) (*env, func() *memSink) {
			t.Helper()
			e, gate := gated(t)
			close(gate)
			k := attach(e.subscribe(hub.SubscribeRequest{Principal: e.named("t1"), Matchers: e.matchers("a")}), 0)
			synctest.Wait()
			return e, func() *memSink { return k }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, goOn := prepare(t)
				if n := e.hub.CloseBy(hasToken("t1")); n != 1 {
					t.Errorf("CloseBy = %d, want 1", n)
				}
				if n := e.hub.CloseBy(hasToken("t1")); n != 0 {
					t.Errorf("CloseBy again = %d, want 0", n)
				}
				k := goOn()
				events := len(k.data(t))
				e.secret("after", "a")
				elapse(time.Minute)
				if finished, aborted := k.ended(); !finished || aborted || !isDone(k.sub) {
					t.Errorf("finished %v, aborted %v, want a clean end", finished, aborted)
				}
				if got := k.data(t); len(got) != events {
					t.Errorf("stream = %d events after it was closed, want the %d before", len(got), events)
				}
			})
		})
	}
}

func TestCloseAnonymous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, nil)
		anonymous, named := e.stream(nil, "a"), e.stream(e.named("t1"), "a")
		synctest.Wait()
		if n := e.hub.CloseAnonymous(); n != 1 {
			t.Errorf("CloseAnonymous = %d, want 1", n)
		}
		e.publish("after", "a")
		synctest.Wait()
		anonymous.want(t)
		if finished, _ := anonymous.ended(); !finished || !isDone(anonymous.sub) {
			t.Error("the anonymous stream has not ended cleanly")
		}
		named.want(t, "after")
	})
}

func TestEnd(t *testing.T) {
	for name, attachFirst := range map[string]bool{"of a stream that is open": true, "before it has its sink": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, nil)
				s := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")})
				var k *memSink
				if attachFirst {
					k = attach(s, -1)
				}
				s.End()
				synctest.Wait()
				if !attachFirst {
					k = attach(s, -1)
				}
				s.End() // does nothing more
				e.publish("after", "a")
				synctest.Wait()
				k.want(t)
				if finished, aborted := k.ended(); !finished || aborted || !isDone(s) {
					t.Errorf("finished %v, aborted %v, want a clean end", finished, aborted)
				}
				if n := e.metrics.get(&e.metrics.subscribers); n != 0 {
					t.Errorf("%d streams are counted, want none", n)
				}
			})
		})
	}
}

// gated returns a hub with a long history, whose readers wait until the gate is closed. One stream opens at a time.
func gated(t *testing.T) (*env, chan struct{}) {
	t.Helper()
	gate := make(chan struct{})
	e := newEnv(t, func(o *hub.Options) {
		o.Log, o.Replays = &stubLog{Log: openMemory(t)}, 1
	})
	for _, d := range filled(1, 200, 1000) {
		e.secret(d, "a")
	}
	synctest.Wait()
	e.gate(gate)
	return e, gate
}

// gate has reads of the history wait for a channel to be closed.
func (e *env) gate(gate chan struct{}) {
	if stub, ok := e.log.(*stubLog); ok {
		stub.hold(func() { <-gate })
	}
}

// resumeLater opens a stream from the beginning of the history in a goroutine, and returns a function that waits for it.
func (e *env) resumeLater(t *testing.T, id string) func() *memSink {
	t.Helper()
	opened := make(chan *hub.Subscriber, 1)
	go func() {
		defer close(opened)
		s, err := e.hub.Subscribe(context.Background(), hub.SubscribeRequest{
			Principal: e.named(id), Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true,
		})
		if err != nil {
			t.Errorf("Subscribe of %s = %v", id, err)
			return
		}
		opened <- s
	}()
	return func() *memSink {
		s, ok := <-opened
		if !ok {
			t.FailNow()
		}
		k := attach(s, -1)
		synctest.Wait()
		return k
	}
}

// TestRevoked_Race has streams opened while their tokens are revoked through a real list: none of a revoked token stays open, and none
// of another one is closed.
func TestRevoked_Race(t *testing.T) {
	t.Parallel()
	log := &revocations{}
	var list *revocation.List
	e := newEnv(t, func(o *hub.Options) {
		o.Shards, o.Replays = 3, 2
		o.Revoked = func(p *hub.Principal) bool { return list.Revoked(tokenOf(p)) }
	})
	list, err := revocation.New(revocation.Options{
		Source: log, Every: time.Millisecond,
		Close: func(match func(revocation.Token) bool) int {
			return e.hub.CloseBy(func(p *hub.Principal) bool { return match(tokenOf(p)) })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		e.secret("x", "a")
	}
	const tokens = 400
	ctx, cancel := context.WithCancel(t.Context())
	var following, work sync.WaitGroup
	following.Go(func() { _ = list.Run(ctx) })
	streams := make([]*hub.Subscriber, 2*tokens)
	for worker := range 4 {
		work.Go(func() {
			for i := worker; i < len(streams); i += 4 {
				s, err := e.hub.Subscribe(context.Background(), hub.SubscribeRequest{
					Principal: e.named(strconv.Itoa(i % tokens)), Matchers: e.matchers("a"),
					Cursor: "earliest", HasCursor: rand.IntN(2) == 0,
				})
				switch {
				case err == nil:
					attach(s, -1)
					streams[i] = s
				case !errors.Is(err, hub.ErrRevoked):
					t.Errorf("Subscribe = %v", err)
				case i%tokens%2 == 1:
					t.Errorf("Subscribe of token %d, which is not revoked = %v", i%tokens, err)
				}
			}
		})
	}
	work.Go(func() {
		for id := 0; id < tokens; id += 2 {
			log.revoke(strconv.Itoa(id))
			if id%10 == 0 {
				list.Poke()
				<-time.After(100 * time.Microsecond)
			}
		}
	})
	work.Wait()
	if err := list.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	patience := time.After(5 * time.Second)
	for i, s := range streams {
		switch {
		case s == nil:
		case i%tokens%2 == 1:
			if isDone(s) {
				t.Errorf("the stream of token %d is closed, which is not revoked", i%tokens)
			}
		default:
			select {
			case <-s.Done():
			case <-patience:
				t.Fatalf("the stream of token %d is open, which is revoked", i%tokens)
			}
		}
	}
	cancel()
	following.Wait()
}

// revocations is a revocation log of tokens.
type revocations struct {
	mu      sync.Mutex
	entries []revocation.Entry
}

func (r *revocations) revoke(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, revocation.Entry{
		Seq: int64(len(r.entries) + 1), Kind: revocation.KindToken, Value: id, IssuedBefore: time.Now(), Until: time.Now().Add(time.Hour),
	})
}

func (r *revocations) Since(_ context.Context, seq int64, limit int) ([]revocation.Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]revocation.Entry(nil), r.entries[seq:min(int(seq)+limit, len(r.entries))]...), nil
}

func tokenOf(p *hub.Principal) revocation.Token {
	return revocation.Token{Issuer: p.Issuer, ID: p.TokenID, IssuedAt: p.IssuedAt}
}
