package revocation_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/revocation"
)

// follow has the list followed in a bubble, whose clock is the list's, until the test ends.
func follow(t *testing.T, change func(*revocation.Options)) *env {
	t.Helper()
	e := newEnv(t, func(o *revocation.Options) {
		o.Now = nil
		if change != nil {
			change(o)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return e
}

// elapse lets fake time pass.
func elapse(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func TestList_Run(t *testing.T) {
	t.Parallel()
	t.Run("finds what is new within a quarter of a second", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e := follow(t, nil)
			synctest.Wait()
			e.closer.open = []revocation.Token{tokenWith("a")}
			e.journal.add("a")
			elapse(revocation.DefaultEvery)
			e.want(t, map[string]bool{"a": true})
			if _, closed := e.closer.state(); len(closed) != 1 {
				t.Errorf("closed = %v, want a", closed)
			}
			before := e.journal.questions()
			elapse(10 * revocation.DefaultEvery)
			if n := e.journal.questions() - before; n != 10 {
				t.Errorf("the log was asked %d times in ten intervals", n)
			}
		})
	})
	t.Run("reads at once when poked", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e := follow(t, func(o *revocation.Options) { o.Every = time.Hour })
			synctest.Wait()
			e.journal.add("a")
			e.Poke()
			e.Poke()
			synctest.Wait()
			e.want(t, map[string]bool{"a": true})
		})
	})
	t.Run("reads again when poked while it reads", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e := follow(t, func(o *revocation.Options) { o.Every = time.Hour })
			synctest.Wait()
			gate := make(chan struct{})
			e.journal.change(func(j *journal) { j.hook = func() { <-gate } })
			e.Poke()
			synctest.Wait()
			e.Poke() // for something the reading under way may have missed
			before := e.journal.questions()
			close(gate)
			synctest.Wait()
			if n := e.journal.questions() - before; n != 2 {
				t.Errorf("the log was read %d times, want twice", n)
			}
		})
	})
	t.Run("keeps the list while the source fails, and says so once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e := follow(t, nil)
			e.journal.add("a")
			elapse(time.Second)
			e.journal.change(func(j *journal) { j.err = errors.New("down") })
			before := e.journal.questions()
			elapse(10 * time.Minute)
			e.want(t, map[string]bool{"a": true})
			if n := e.logged("ERROR", "error=\"read revocations after 0: down\""); n != 1 {
				t.Errorf("the outage is logged %d times, want once:\n%s", n, e.log)
			}
			if n := e.journal.questions() - before; n < 60 || n > 120 {
				t.Errorf("the source was asked %d times in ten minutes, want about every ten seconds", n)
			}
			if age := time.Since(e.counts.get().read); age < 10*time.Minute-time.Second {
				t.Errorf("the last reading was %v ago by the metrics, want the whole outage", age)
			}
			e.journal.change(func(j *journal) { j.err = nil })
			e.journal.add("b")
			elapse(11 * time.Second)
			e.want(t, map[string]bool{"a": true, "b": true})
			if n := e.logged("INFO", "can be read again"); n != 1 {
				t.Errorf("the end of the outage is logged %d times, want once", n)
			}
			e.journal.change(func(j *journal) { j.err = errors.New("down again") })
			elapse(time.Second)
			if n := e.logged("ERROR", "down again"); n != 1 {
				t.Errorf("the next outage is logged %d times, want once", n)
			}
		})
	})
	t.Run("says nothing of an outage that Load has returned, but of its end", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *revocation.Options) { o.Now = nil })
			e.journal.err = errors.New("down")
			if err := e.Load(t.Context()); err == nil {
				t.Fatal("Load = nil, want an error")
			}
			go func() { _ = e.Run(t.Context()) }()
			elapse(time.Minute)
			if n := e.logged("ERROR", "down"); n != 0 {
				t.Errorf("the outage is logged %d times, want not at all", n)
			}
			e.journal.change(func(j *journal) { j.err = nil })
			elapse(11 * time.Second)
			if n := e.logged("INFO", "can be read again"); n != 1 {
				t.Errorf("the end of the outage is logged %d times, want once", n)
			}
		})
	})
	t.Run("starts over where a reading was cut short", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *revocation.Options) { o.Now = nil })
			e.journal.most = 2
			e.journal.add("a", "b", "c", "d")
			e.journal.hook = func() { // the second page fails
				if len(e.journal.asked) == 1 {
					e.journal.err = errors.New("down")
				}
			}
			if err := e.Load(t.Context()); err == nil {
				t.Fatal("Load = nil, want an error")
			}
			e.want(t, map[string]bool{"b": true, "c": false})
			e.journal.hook, e.journal.err = nil, nil
			e.load(t)
			e.want(t, map[string]bool{"a": true, "d": true})
		})
	})
	t.Run("leaves a source alone that asks for it, within bounds", func(t *testing.T) {
		t.Parallel()
		for after, most := range map[time.Duration]int{8 * time.Second: 16, time.Hour: 12} {
			synctest.Test(t, func(t *testing.T) {
				e := follow(t, nil)
				e.journal.change(func(j *journal) { j.err = &revocation.LaterError{After: after, Err: errors.New("busy")} })
				elapse(time.Second)
				before := e.journal.questions()
				elapse(time.Minute)
				if n := e.journal.questions() - before; n < 6 || n > most {
					t.Errorf("asked %d times in a minute by one that wants %v, want 6 to %d", n, after, most)
				}
			})
		}
	})
	t.Run("is asked again after it has ended", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			for i := range 2 {
				e.journal.add(strconv.Itoa(i))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if err := e.Run(ctx); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
				cancel()
				e.want(t, map[string]bool{strconv.Itoa(i): true})
			}
		})
	})
}

// TestList_Forgets shows that the list holds nothing longer than it can mean anything, whatever the source does.
func TestList_Forgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := follow(t, nil)
		const entries = 10_000
		for i := range entries {
			e.journal.append(revocation.Entry{
				Issuer: issuer, Kind: revocation.KindToken, Value: strconv.Itoa(i),
				IssuedBefore: start(), Until: start().Add(time.Duration(i+1) * time.Second),
			})
		}
		elapse(time.Second / 2)
		if n := e.counts.get().known; n != entries {
			t.Errorf("%d entries are known, want %d", n, entries)
		}
		e.journal.change(func(j *journal) { j.err = errors.New("down") })
		elapse(entries/2*time.Second + 11*time.Second)
		if n := e.counts.get().known; n > entries/2 || n < entries/2-20 {
			t.Errorf("%d entries are known half way, want about %d", n, entries/2)
		}
		e.want(t, map[string]bool{"0": false, strconv.Itoa(entries - 1): true})
		elapse(entries/2*time.Second + 11*time.Second)
		if n := e.counts.get().known; n != 0 {
			t.Errorf("%d entries are known at the end, want none", n)
		}
		e.journal.change(func(j *journal) { j.err = nil })
		elapse(11 * time.Second)
		if got := e.counts.get(); got.known != 0 || got.applied != entries {
			t.Errorf("%d entries are known after reading through %d, want none: all have expired", got.known, got.applied)
		}
	})
}

// TestList_Race runs everything against everything, for the race detector. What a reading has seen is in force when it returns.
// A clock that was ahead for a while makes the list forget, or leave out, what is in force again when it has been set right.
func TestList_ClockIsSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		e := follow(t, func(o *revocation.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())).Round(0) }
		})
		e.journal.add("a")
		elapse(time.Second)
		e.want(t, map[string]bool{"a": true})
		ahead.Store(int64(2 * time.Hour))
		e.journal.add("b")
		elapse(time.Second)
		e.want(t, map[string]bool{"a": false, "b": false}) // by this clock their tokens have expired
		ahead.Store(0)
		elapse(time.Second)
		e.want(t, map[string]bool{"a": true, "b": true})
		before := e.journal.questions()
		elapse(time.Second)
		if n := e.journal.questions() - before; n != 4 {
			t.Errorf("the log is asked %d times a second when nothing is amiss, want 4", n)
		}
		if e.log.Len() > 0 {
			t.Errorf("the log is right, and this is logged:\n%s", e.log)
		}
	})
}

func TestList_Race(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *revocation.Options) { o.Now, o.Every = nil, time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var work sync.WaitGroup
	work.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	repeat := func(f func(i int)) {
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				f(i)
				<-time.After(time.Millisecond)
			}
		})
	}
	for worker := range 2 {
		repeat(func(i int) { // short-lived entries, so that forgetting takes part
			e.journal.append(revocation.Entry{
				Issuer: issuer, Kind: revocation.KindToken, Value: strconv.Itoa(i),
				IssuedBefore: start(), Until: time.Now().Add(time.Duration(i%20) * time.Millisecond),
			})
			e.Poke()
		})
		repeat(func(i int) {
			id := strconv.Itoa(worker) + "/" + strconv.Itoa(i)
			e.journal.append(revocation.Entry{
				Issuer: issuer, Kind: revocation.KindToken, Value: id, IssuedBefore: start(), Until: time.Now().Add(time.Hour),
			})
			if err := e.Load(ctx); err != nil {
				t.Errorf("Load = %v", err)
			}
			if !e.revoked(id) {
				t.Errorf("Revoked(%s) = false after it was read", id)
			}
		})
		repeat(func(i int) { e.revoked(strconv.Itoa(i)) })
	}
	work.Wait()
}
