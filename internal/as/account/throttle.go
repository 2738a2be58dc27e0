package account

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// ThrottledError says that an attempt was not looked at because there were too many before it.
type ThrottledError struct {
	RetryAfter time.Duration // until the next attempt is looked at, if there is no other one before
}

// Error implements error; the text is safe to show.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("account: too many attempts, next one in %s", e.RetryAfter.Round(time.Second))
}

// Limit allows Burst failures at once and one more for each Every that passes.
type Limit struct {
	Burst int
	Every time.Duration
}

// ThrottleOptions limit failed attempts. A limit that is zero has its default.
type ThrottleOptions struct {
	// Pair limits failures for one name from one address. Default: 10, and one each 30 s.
	Pair Limit
	// Account limits failures for one name from all addresses. It is wide, since reaching it locks the owner out too. Default: 100,
	// and one each 5 min.
	Account Limit
	// Address limits failures from one address for all names; it is wide enough for an office behind one address. An IPv6 address
	// counts with its /64 network. Default: 100, and one each 10 s.
	Address Limit
	// Entries bounds how many counters of each kind are kept; beyond it the one not used for longest is dropped. 0: 16,384.
	Entries int
	// Now is the clock. nil: time.Now.
	Now func() time.Time
}

const (
	defaultEntries  = 16384
	ipv6NetworkBits = 64
)

var errThrottleOptions = errors.New("account: throttle options out of range")

// Validate returns an error for a negative number, or a limit that sets only one of its fields.
func (o ThrottleOptions) Validate() error {
	for _, l := range []Limit{o.Pair, o.Account, o.Address} {
		if l.Burst < 0 || l.Every < 0 || (l.Burst == 0) != (l.Every == 0) {
			return errThrottleOptions
		}
	}
	if o.Entries < 0 {
		return errThrottleOptions
	}
	return nil
}

func (o ThrottleOptions) withDefaults() ThrottleOptions {
	def := func(l *Limit, burst int, every time.Duration) {
		if *l == (Limit{}) {
			*l = Limit{Burst: burst, Every: every}
		}
	}
	def(&o.Pair, 10, 30*time.Second)
	def(&o.Account, 100, 5*time.Minute)
	def(&o.Address, 100, 10*time.Second)
	if o.Entries == 0 {
		o.Entries = defaultEntries
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Throttle counts failed attempts. An attempt is counted when it starts and taken back when it turns out to be none, so that attempts in
// parallel cannot pass a limit together. It is safe for concurrent use.
type Throttle struct {
	now func() time.Time

	mu      sync.Mutex // protects all fields below
	pair    *buckets
	account *buckets
	address *buckets
}

// NewThrottle returns a Throttle with these options.
func NewThrottle(o ThrottleOptions) (*Throttle, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return &Throttle{
		now: o.Now, pair: newBuckets(o.Pair, o.Entries), account: newBuckets(o.Account, o.Entries),
		address: newBuckets(o.Address, o.Entries),
	}, nil
}

// Attempt is one attempt that was admitted, and counted as a failure until it is known to be none.
type Attempt struct {
	throttle         *Throttle
	username, client string
}

// Start counts an attempt for a canonical user name, "" when what was given cannot be one, from an address; the zero address is one
// address. It returns a *ThrottledError, and counts nothing, when a limit is reached.
func (t *Throttle) Start(username string, addr netip.Addr) (*Attempt, error) {
	a := &Attempt{throttle: t, username: username, client: network(addr)}
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var wait time.Duration
	for _, c := range a.counters() {
		wait = max(wait, c.in.wait(c.key, now))
	}
	if wait > 0 {
		return nil, &ThrottledError{RetryAfter: wait}
	}
	for _, c := range a.counters() {
		c.in.take(c.key, now)
	}
	return a, nil
}

// Succeeded takes the attempt back, and with it all failures for the name from this address: the person behind it knows the password. The
// failures from other addresses stay, and so do those of the address for other names: a person with an account must not be able to
// clear them.
func (a *Attempt) Succeeded() {
	a.giveBack()
	a.throttle.mu.Lock()
	defer a.throttle.mu.Unlock()
	a.throttle.pair.forget(a.pairKey())
}

// Void takes the attempt back: nothing was compared.
func (a *Attempt) Void() { a.giveBack() }

func (a *Attempt) giveBack() {
	now := a.throttle.now()
	a.throttle.mu.Lock()
	defer a.throttle.mu.Unlock()
	for _, c := range a.counters() {
		c.in.put(c.key, now)
	}
}

type counter struct {
	in  *buckets
	key string
}

// counters are what the attempt counts in.
func (a *Attempt) counters() []counter {
	address := counter{a.throttle.address, a.client}
	if a.username == "" {
		return []counter{address}
	}
	return []counter{address, {a.throttle.account, a.username}, {a.throttle.pair, a.pairKey()}}
}

// pairKey is unambiguous: an address contains no space.
func (a *Attempt) pairKey() string { return a.client + " " + a.username }

// network is the unit in which an address is counted: whoever has an IPv6 address has its /64.
func network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr.String()
	}
	prefix, err := addr.Prefix(ipv6NetworkBits)
	if err != nil {
		return addr.String()
	}
	return prefix.String()
}
