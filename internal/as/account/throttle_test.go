package account_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
)

func mustThrottle(tb testing.TB, o account.ThrottleOptions) *account.Throttle {
	tb.Helper()
	th, err := account.NewThrottle(o)
	if err != nil {
		tb.Fatal(err)
	}
	return th
}

func limits(pair, acc, address int) account.ThrottleOptions {
	return account.ThrottleOptions{
		Pair:    account.Limit{Burst: pair, Every: time.Minute},
		Account: account.Limit{Burst: acc, Every: time.Hour},
		Address: account.Limit{Burst: address, Every: time.Second},
	}
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// fail makes n failures and returns how many were admitted.
func fail(tb testing.TB, th *account.Throttle, username string, addr netip.Addr, n int) (admitted int, last error) {
	tb.Helper()
	for range n {
		_, err := th.Start(username, addr)
		if err == nil {
			admitted++
			continue
		}
		last = err
	}
	return admitted, last
}

func wait(tb testing.TB, err error) time.Duration {
	tb.Helper()
	var throttled *account.ThrottledError
	if !errors.As(err, &throttled) {
		tb.Fatalf("Start = %v, want *ThrottledError", err)
	}
	return throttled.RetryAfter
}

func TestThrottle_pair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := mustThrottle(t, limits(3, 100, 100))
		home, elsewhere := ip("192.0.2.1"), ip("192.0.2.2")
		admitted, err := fail(t, th, "ada", home, 10)
		if admitted != 3 {
			t.Fatalf("%d failures were admitted, want 3", admitted)
		}
		if got := wait(t, err); got != time.Minute {
			t.Errorf("RetryAfter = %s, want 1m", got)
		}
		if n, _ := fail(t, th, "ada", elsewhere, 1); n != 1 {
			t.Error("a name is throttled for another address")
		}
		if n, _ := fail(t, th, "bob", home, 1); n != 1 {
			t.Error("an address is throttled for another name")
		}
		// Waiting as long as it says helps, less does not, and asking in between does no harm.
		pass(time.Minute - time.Millisecond)
		_, err = fail(t, th, "ada", home, 1)
		if got := wait(t, err); got != time.Millisecond {
			t.Errorf("RetryAfter = %s, want 1ms", got)
		}
		pass(time.Millisecond)
		if n, _ := fail(t, th, "ada", home, 2); n != 1 {
			t.Errorf("%d failures were admitted after a minute, want 1", n)
		}
		pass(time.Hour)
		if n, _ := fail(t, th, "ada", home, 10); n != 3 {
			t.Errorf("%d failures were admitted after an hour, want 3", n)
		}
	})
}

func TestThrottle_account(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := mustThrottle(t, limits(3, 10, 100))
		total := 0
		for i := range 100 {
			n, _ := fail(t, th, "ada", ip(fmt.Sprintf("192.0.2.%d", i)), 3)
			total += n
		}
		if total != 10 {
			t.Errorf("%d failures for one name were admitted from 100 addresses, want 10", total)
		}
	})
}

func TestThrottle_address(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			addrs []string
			one   bool
		}{
			{"one IPv4 address", []string{"192.0.2.1", "::ffff:192.0.2.1"}, true},
			{"two IPv4 addresses", []string{"192.0.2.1", "192.0.2.2"}, false},
			{"one IPv6 network", []string{"2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::", "2001:db8::1%eth0"}, true},
			{"two IPv6 networks", []string{"2001:db8::1", "2001:db8:0:1::1"}, false},
		} {
			th := mustThrottle(t, limits(3, 100, 5))
			for i := range 100 {
				_, _ = fail(t, th, fmt.Sprintf("name%d", i), ip(c.addrs[0]), 1)
			}
			for _, addr := range c.addrs[1:] {
				if n, _ := fail(t, th, "other", ip(addr), 1); (n == 0) != c.one {
					t.Errorf("%s: %s counts with the first: %t, want %t", c.name, addr, n == 0, c.one)
				}
			}
		}
		th := mustThrottle(t, limits(3, 100, 5))
		if n, _ := fail(t, th, "", netip.Addr{}, 100); n != 5 {
			t.Errorf("%d failures were admitted without name and address, want 5", n)
		}
	})
}

func TestThrottle_success(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := mustThrottle(t, limits(3, 100, 8))
		home := ip("192.0.2.1")
		succeed := func(name string) {
			t.Helper()
			a, err := th.Start(name, home)
			if err != nil {
				t.Fatalf("Start(%s) = %v", name, err)
			}
			a.Succeeded()
		}
		_, _ = fail(t, th, "ada", home, 2)
		succeed("ada")
		if n, _ := fail(t, th, "ada", home, 9); n != 3 {
			t.Errorf("%d failures were admitted after a success, want 3", n)
		}
		// Five failures count for the address, whoever signs in there.
		for range 20 {
			succeed("eve")
		}
		admitted := 0
		for i := range 20 {
			n, _ := fail(t, th, fmt.Sprintf("name%d", i), home, 1)
			admitted += n
		}
		if admitted != 3 {
			t.Errorf("%d failures were admitted for the address, want the 3 that were left", admitted)
		}
	})
}

func TestThrottle_void(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := mustThrottle(t, limits(3, 5, 7))
		home := ip("192.0.2.1")
		for range 100 {
			a, err := th.Start("ada", home)
			if err != nil {
				t.Fatal(err)
			}
			a.Void()
		}
		if n, _ := fail(t, th, "ada", home, 10); n != 3 {
			t.Errorf("%d failures were admitted after attempts that were none, want 3", n)
		}
	})
}

// TestThrottle_parallel guesses in parallel: all count before the first is known to have failed.
func TestThrottle_parallel(t *testing.T) {
	now := time.Now()
	o := limits(5, 100, 1000)
	o.Now = func() time.Time { return now }
	th := mustThrottle(t, o)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if _, err := th.Start("ada", ip("192.0.2.1")); err == nil {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != 5 {
		t.Errorf("%d parallel guesses were admitted, want 5", got)
	}
}

// TestThrottle_bounded floods the counters; the one that matters is used all the time and must not be dropped.
func TestThrottle_bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := limits(3, 4, 1000)
		o.Entries = 50
		th := mustThrottle(t, o)
		admitted := 0
		for i := range 10_000 {
			n, _ := fail(t, th, "ada", ip("192.0.2.1"), 1)
			admitted += n
			_, _ = fail(t, th, fmt.Sprintf("name%d", i), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1)
		}
		if admitted != 3 {
			t.Errorf("%d failures were admitted during a flood, want 3", admitted)
		}
	})
}

// TestThrottle_clockGoesBack sets the clock back a day: that must not lock anybody out for a day.
func TestThrottle_clockGoesBack(t *testing.T) {
	now := time.Now()
	o := limits(2, 10, 10)
	o.Now = func() time.Time { return now }
	th := mustThrottle(t, o)
	home := ip("192.0.2.1")
	_, _ = fail(t, th, "ada", home, 2)
	now = now.Add(-24 * time.Hour)
	_, err := fail(t, th, "ada", home, 1)
	if got := wait(t, err); got > o.Account.Every {
		t.Errorf("RetryAfter = %s after the clock went back, want at most %s", got, o.Account.Every)
	}
	now = now.Add(o.Account.Every)
	if n, _ := fail(t, th, "ada", home, 1); n != 1 {
		t.Error("still throttled after waiting as long as it said")
	}
}

// TestThrottle_rate checks the property that the limits promise: in any span of time no more failures than the burst and one for
// each Every are admitted.
func TestThrottle_rate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(1_900_000_000, 0)
		start := now
		o := limits(rapid.IntRange(1, 5).Draw(rt, "burst"), 1000, 1000)
		o.Now = func() time.Time { return now }
		th := mustThrottle(t, o)
		admitted := 0
		for _, pause := range rapid.SliceOfN(rapid.IntRange(0, 100), 1, 100).Draw(rt, "seconds") {
			now = now.Add(time.Duration(pause) * time.Second)
			a, err := th.Start("ada", ip("192.0.2.1"))
			switch {
			case err != nil:
				now = now.Add(wait(t, err))
				if _, err = th.Start("ada", ip("192.0.2.1")); err != nil {
					rt.Fatalf("throttled after waiting as long as it said: %v", err)
				}
				admitted++
			case rapid.Bool().Draw(rt, "void"):
				a.Void()
			default:
				admitted++
			}
		}
		if most := float64(o.Pair.Burst) + now.Sub(start).Minutes() + 0.001; float64(admitted) > most {
			rt.Fatalf("%d failures were admitted, want at most %f", admitted, most)
		}
	})
}

func TestThrottle_options(t *testing.T) {
	for _, o := range []account.ThrottleOptions{
		{Entries: -1}, {Pair: account.Limit{Burst: 1}}, {Account: account.Limit{Every: time.Second}}, {Address: account.Limit{Burst: -1, Every: 1}},
	} {
		if _, err := account.NewThrottle(o); err == nil {
			t.Errorf("NewThrottle(%+v) succeeded", o)
		}
	}
}

func BenchmarkThrottle(b *testing.B) {
	th := mustThrottle(b, limits(5, 100, 100))
	b.ReportAllocs()
	for b.Loop() {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(rand.IntN(256)), byte(rand.IntN(256))})
		_, _ = th.Start("ada", addr)
	}
}
