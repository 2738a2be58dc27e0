package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// limChecks look for limits: whether there are any, what is answered beyond them, and whether what is accepted is
// really taken as a whole. No limit is known, so each check asks with growing sizes, up to one that is absurd. A hub that
// has no limit has much to do then, so these checks run alone.
//
// That there is a limit is a SHOULD, how it is reported a MUST; where none is found there is nothing to report.
func limChecks() []suite.Check {
	checks := slices.Concat(limMatcherChecks(), limPublishChecks(), limTokenChecks())
	for i := range checks {
		checks[i] = quiet(checks[i])
	}
	return append(checks, limEnoughChecks()...)
}

// limSizes are the sizes that are tried: from the first one, four times as much each time, up to the last one.
func limSizes(first, last int) []int {
	var sizes []int
	for n := first; n < last; n *= 4 {
		sizes = append(sizes, n)
	}
	return append(sizes, last)
}

// limFound is the first refusal of a growing request.
type limFound struct {
	size    int
	request wire.Request
	resp    *wire.Response // nil: nothing was refused
}

// limSearch sends requests of growing size until one is refused. accepted, which may be nil, looks at those that are not.
// The check is skipped when the first one is refused: it is so small that its size cannot be the reason (LIM-12).
func limSearch(t *suite.T, sizes []int, request func(n int) wire.Request, accepted func(n int, resp *wire.Response)) limFound {
	for i, n := range sizes {
		r := request(n)
		resp := limTry(t, r, n)
		if i == 0 && resp.Status != 200 {
			t.Skip("even size %d is refused with %d: nothing is known of a limit", n, resp.Status)
		}
		if resp.Status != 200 {
			t.Observed("size %d: %d", n, resp.Status)
			return limFound{size: n, request: r, resp: resp}
		}
		if accepted != nil {
			accepted(n, resp)
		}
	}
	t.Observed("size %d is still accepted", sizes[len(sizes)-1])
	return limFound{}
}

// limTry sends a big request. A peer that answers before it has read everything may end the connection so that its
// answer is lost on the way (RFC 9112 section 9.6): then it is asked again.
func limTry(t *suite.T, r wire.Request, n int) *wire.Response {
	var err error
	for range 3 {
		var resp *wire.Response
		if resp, err = t.Try(r); err == nil {
			resp.Close()
			return resp
		}
	}
	t.Fail("size %d: no answer: %v", n, err)
	return nil
}

// limIsOthers says whether a request that is as big, but not in what the limit is about, is refused in the same way: then a
// server in front of the hub, or below it, has answered, and nothing is known of the hub's own limit.
func limIsOthers(t *suite.T, f limFound, filler wire.Request) bool {
	return limTry(t, filler, f.size).Status == f.resp.Status
}

// limMatcher is a way to send too much to the subscription URL.
type limMatcher struct {
	name  string
	id    string // of the requirement that there be a limit
	sizes []int
	query func(n int) string
	body  bool // by the QUERY method
	// untracked checks are not for hubs with active subscriptions: those publish an event for each matcher and evaluate it
	// against all of them, which takes long with patterns.
	untracked bool
}

func limMatchers() []limMatcher {
	counted := func(parameters ...string) func(n int) string {
		return func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "&%s=%d", parameters[i%len(parameters)], i)
			}
			return b.String()[1:]
		}
	}
	long := func(start string) func(n int) string {
		return func(n int) string { return start + strings.Repeat("x", n) }
	}
	exact, patterns, lengths := limSizes(8, 32<<10), limSizes(8, 8<<10), limSizes(64, 64<<10)
	all := []limMatcher{
		{"number-of-match_urlpattern", "LIM-01", patterns, counted("match_urlpattern"), false, true},
		{"number-of-mixed-types", "LIM-01", patterns, counted("match", "match_exact", "match_urlpattern"), false, true},
	}
	for _, body := range []bool{false, true} {
		in := ""
		if body {
			in = "-in-body"
		}
		all = append(all,
			limMatcher{"number-of-match" + in, "LIM-01", exact, counted("match"), body, false},
			limMatcher{"length-of-match" + in, "LIM-02", lengths, long("match="), body, false},
			limMatcher{"length-of-match_exact" + in, "LIM-02", lengths, long("match_exact="), body, false},
			limMatcher{"length-of-match_urlpattern" + in, "LIM-02", lengths, long("match_urlpattern=https://example.com/"), body, false},
		)
	}
	return all
}

// limTracked bounds the number of exact matchers at hubs with active subscriptions.
const limTracked = 2 << 10

// tried are the sizes to try with this hub.
func (m limMatcher) tried(t *suite.T) []int {
	if m.id != "LIM-01" || !t.Target().Has(suite.Subscriptions) {
		return m.sizes
	}
	return append(slices.DeleteFunc(slices.Clone(m.sizes), func(n int) bool { return n >= limTracked }), limTracked)
}

func (m limMatcher) request(t *suite.T, token, query string) wire.Request {
	if m.body {
		return suite.Bearer(t.Query("", query), token)
	}
	return suite.Bearer(t.Get(query), token)
}

// filler is as long as a query that is refused, with one matcher and a parameter that means nothing.
func (m limMatcher) filler(t *suite.T, token string, size int) wire.Request {
	return m.request(t, token, "match=a&x="+strings.Repeat("x", size))
}

func limMatcherChecks() []suite.Check {
	var checks []suite.Check
	for _, m := range limMatchers() {
		var needs []suite.Feature
		if m.body {
			needs = append(needs, suite.QueryMethod)
		}
		if m.untracked {
			needs = append(needs, suite.NoSubscriptions)
		}
		checks = append(checks, one(m.id, m.name, func(t *suite.T) {
			token, sizes := t.SubscribeAll(), m.tried(t)
			f := limSearch(t, sizes, func(n int) wire.Request { return m.request(t, token, m.query(n)) }, nil)
			switch {
			case f.resp == nil:
				t.Fail("no limit up to %d", sizes[len(sizes)-1])
			case f.resp.Status < 400 || f.resp.Status > 499:
				t.Fail("size %d: answered %d, wanted a refusal", f.size, f.resp.Status)
			case f.resp.Status != 400:
				t.Observed("which limits it as well, be it by the hub or in front of it")
			}
		}, needs...), one("LIM-03", m.name, func(t *suite.T) { m.reported(t) }, needs...))
	}
	return checks
}

// reported looks at the status of the refusal, and at whether the last matcher of what is accepted counts.
func (m limMatcher) reported(t *suite.T) {
	token := t.SubscribeAll()
	fence := t.Topic()
	last := "&match=" + wire.Escape(fence)
	whole := 0
	sizes := m.tried(t)
	f := limSearch(t, sizes, func(n int) wire.Request { return m.request(t, token, m.query(n)+last) }, func(n int, _ *wire.Response) { whole = n })
	if whole > 0 {
		// Accepted means all of it: a matcher that is cut off would be a limit that is reported to nobody.
		s := t.Open(m.request(t, token, m.query(whole)+last))
		id := t.Publish("topic", fence, "data", "x")
		if e := s.Next(); e.ID != id {
			t.Fail("size %d was accepted, but the last matcher received %+q, wanted %+q", whole, e.ID, id)
		}
	}
	switch {
	case f.resp == nil:
		t.Skip("the hub has no limit up to %d, so it reports none", sizes[len(sizes)-1])
	case f.resp.Status == 400:
	case f.resp.Status == 429:
		t.Skip("the hub limits the subscriptions of a token, as it may (LIM-11)")
	case limIsOthers(t, f, m.filler(t, token, len(m.query(f.size)+last)-len("match=a&x="))):
		t.Skip("a request of that length is refused with %d whatever it says: no limit of the hub's own is known", f.resp.Status)
	default:
		t.Fail("size %d: answered %d, wanted 400", f.size, f.resp.Status)
	}
}
