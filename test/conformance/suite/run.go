package suite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// ErrUnready means that the hub cannot be tested at all: it does not answer, or refuses a right token.
var ErrUnready = errors.New("suite: the hub cannot be tested")

// Options are how checks are run.
type Options struct {
	Parallel int                    // how many checks at once; 0: 4
	Limit    time.Duration          // for the whole run; 0: 15 minutes
	Select   func(check Check) bool // nil: all
	Progress func(Result)           // called for each result, from one goroutine at a time; may be nil
}

const (
	defaultParallel = 4
	defaultLimit    = 15 * time.Minute
	defaultTime     = time.Minute
	waits           = 4 // how many times a check may have to wait as long as it may

	notStarted = "the time of the run was over"
)

// Suite is a set of checks with their requirements.
type Suite struct {
	rows   map[string]Requirement
	checks []Check
}

// New puts checks and requirements together. Every check must name a requirement and have a name of its own.
func New(rows []Requirement, checks []Check) (*Suite, error) {
	s := &Suite{rows: map[string]Requirement{}, checks: checks}
	order := map[string]int{}
	for i, r := range rows {
		s.rows[r.ID], order[r.ID] = r, i
	}
	seen := map[string]bool{}
	for _, c := range checks {
		if _, ok := s.rows[c.ID]; !ok {
			return nil, fmt.Errorf("%w: check %s names no requirement", ErrMatrix, c.Name())
		}
		if seen[c.Name()] || c.Case == "" || strings.ContainsAny(c.Case, " \t\n") || c.Run == nil {
			return nil, fmt.Errorf("%w: check %s is there twice or unusable", ErrMatrix, c.Name())
		}
		seen[c.Name()] = true
	}
	return s, nil
}

// Checks are all checks, in order.
func (s *Suite) Checks() []Check { return s.checks }

// Run runs the checks against a hub and gives their results in the order of the checks. It is an error when the hub
// cannot be tested at all, or ctx ends. When the limit is reached, no further check is started: the rest is skipped, says
// so, and makes the run one that was Cut.
func (s *Suite) Run(ctx context.Context, target *Target, o Options) ([]Result, error) {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	if o.Parallel <= 0 {
		o.Parallel = defaultParallel
	}
	r, err := newRun(s, target, o)
	if err != nil {
		return nil, err
	}
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	r.observe(ctx)
	r.until = time.Now().Add(o.Limit)
	r.all(ctx)
	return r.results, ctx.Err()
}

type run struct {
	suite   *Suite
	target  *Target
	dialer  *wire.Dialer
	name    string
	options Options
	until   time.Time // no check is started after it; zero: no limit

	mu      sync.Mutex
	results []Result
}

func newRun(s *Suite, target *Target, o Options) (*run, error) {
	if err := target.Complete(); err != nil {
		return nil, err
	}
	dialer, err := wire.New(target.url(), wire.Options{Address: target.Address, Roots: target.Roots, Insecure: target.Insecure, Timeout: target.Patience})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if s == nil {
		s = &Suite{}
	}
	return &run{suite: s, target: target, dialer: dialer, name: strings.ToLower(rand.Text()[:8]), options: o}, nil
}

// ready publishes and subscribes once: when that does not work, hundreds of failures would say less than one error. How the
// hub answers a publication is a matter of checks.
func (r *run) ready(ctx context.Context) error {
	c := Check{ID: "READY", Case: "x", Run: func(t *T) { t.ListenTo(t.Topic()).Events() }}
	if res := r.one(ctx, 0, c); res.Status != Pass {
		return unready("publishing and subscribing with right tokens", res)
	}
	return nil
}

// observe notes what nobody has to tell the suite about the hub: whether it speaks HTTP/2, and whether it has the subscription API. A
// hub that cannot be asked counts as having the API, for then the checks of it say what is wrong.
func (r *run) observe(ctx context.Context) {
	const number = -1 // of no check, so that the topics are nobody else's
	r.target.observed = map[Feature]bool{}
	r.one(ctx, number, Check{ID: "OBSERVE", Case: "http2", Needs: []Feature{TLS}, Run: func(t *T) {
		protocol, err := t.Dialer().Protocol(t.Context())
		r.target.observed[HTTP2] = err == nil && protocol == "h2"
	}})
	r.target.observed[SubscriptionAPI] = true
	r.one(ctx, number, Check{ID: "OBSERVE", Case: "subscription-api", Needs: []Feature{Subscriptions}, Run: func(t *T) {
		topic := t.Topic()
		t.ListenTo(topic)
		missing := func(path string) bool {
			return t.Do(Bearer(t.At(t.Target().Path()+"/subscriptions"+path), t.SubscribeAll())).Status == 404
		}
		r.target.observed[SubscriptionAPI] = !missing("") || !missing("/exact/"+wire.Escape(topic))
	}})
}

func unready(doing string, res Result) error {
	return fmt.Errorf("%w: %s: %s (is it -hub, -ca, -address, -resource or -issuer?)", ErrUnready, doing, res.Observed)
}

// Cut says whether the limit of the run kept checks from being started.
func Cut(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Status == Skip && r.Observed == notStarted })
}

// all runs the checks in three phases: together, alone, and the heavy ones alone.
func (r *run) all(ctx context.Context) {
	phases := [3][]int{}
	for i, c := range r.suite.checks {
		if r.options.Select != nil && !r.options.Select(c) {
			continue
		}
		switch {
		case c.Heavy:
			phases[2] = append(phases[2], i)
		case c.Quiet:
			phases[1] = append(phases[1], i)
		default:
			phases[0] = append(phases[0], i)
		}
	}
	done := make(map[int]Result)
	for phase, indexes := range phases {
		workers := 1
		if phase == 0 {
			workers = r.options.Parallel
		}
		r.phase(ctx, indexes, workers, done)
	}
	for i := range r.suite.checks {
		if res, ok := done[i]; ok {
			r.results = append(r.results, res)
		}
	}
}

func (r *run) phase(ctx context.Context, indexes []int, workers int, done map[int]Result) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				res := r.one(ctx, int64(i)+1, r.suite.checks[i])
				r.mu.Lock()
				done[i] = res
				if r.options.Progress != nil {
					r.options.Progress(res)
				}
				r.mu.Unlock()
			}
		})
	}
	for _, i := range indexes {
		next <- i
	}
	close(next)
	wg.Wait()
}

// one runs a check in a goroutine of its own, which the check may end at any point.
func (r *run) one(ctx context.Context, number int64, c Check) Result {
	row := r.suite.rows[c.ID]
	res := Result{Check: c.Name(), ID: c.ID, Area: c.Area(), Level: row.Level, Status: Skip}
	for _, f := range c.Needs {
		if !r.target.Has(f) {
			res.Observed = f.lacking()
			return res
		}
	}
	if ctx.Err() != nil || !r.until.IsZero() && time.Now().After(r.until) {
		res.Observed = notStarted
		return res
	}
	limit := c.Time
	if limit <= 0 {
		limit = max(defaultTime, waits*r.target.Patience)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := &T{ctx: ctx, target: r.target, dialer: r.dialer, run: r.name, number: number, status: Fail}
	began := time.Now()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer t.finish()
		defer func() {
			if p := recover(); p != nil {
				t.status = Fail
				t.Observed("the check itself broke: %v\n%s", p, debug.Stack())
			}
		}()
		c.Run(t)
		t.status = Pass
	}()
	<-finished
	if ctx.Err() != nil && t.status == Fail {
		t.Observed("the time of the check, %s, was over", limit)
	}
	res.Status, res.Observed, res.Took = t.status, strings.Join(t.observed, "; "), time.Since(began)
	return res
}
