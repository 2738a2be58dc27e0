package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// limToken is a way to put too much into a token. What grants the topic stands last, so that a hub that reads only a
// part of the token does not find it.
type limToken struct {
	name    string
	sizes   []int
	details func(action, topic string, n int) []suite.Detail
}

func limTokens() []limToken {
	long := func(matcher func(n int) suite.Matcher) func(action, topic string, n int) []suite.Detail {
		return func(action, topic string, n int) []suite.Detail {
			return suite.Details(suite.Grant(action, matcher(n), suite.Exact(topic)))
		}
	}
	return []limToken{
		{"details", limSizes(4, 4<<10), func(action, topic string, n int) []suite.Detail {
			details := make([]suite.Detail, n)
			for i := range n {
				details[i] = suite.Grant(action, suite.Matcher{"match": strconv.Itoa(i)})
			}
			details[n-1] = suite.Grant(action, suite.Exact(topic))
			return details
		}},
		{"topics-of-a-detail", limSizes(4, 8<<10), func(action, topic string, n int) []suite.Detail {
			topics := make([]suite.Matcher, n)
			for i := range n {
				topics[i] = suite.Matcher{"match": strconv.Itoa(i)}
			}
			topics[n-1] = suite.Exact(topic)
			return suite.Details(suite.Grant(action, topics...))
		}},
		{"length-of-exact", limSizes(64, 64<<10), long(func(n int) suite.Matcher { return suite.Exact(strings.Repeat("x", n)) })},
		{"length-of-urlpattern", limSizes(64, 64<<10), long(func(n int) suite.Matcher {
			return suite.Pattern("https://example.com/" + strings.Repeat("x", n))
		})},
	}
}

// limRole is a way to use a token.
type limRole struct {
	name    string
	action  string
	role    suite.Role
	request func(t *suite.T, topic string) wire.Request
}

func limRoles() []limRole {
	post := func(t *suite.T, topic string) wire.Request { return t.Post(wire.Form("topic", topic, "data", "x")) }
	get := func(t *suite.T, topic string) wire.Request { return t.Get("match=" + wire.Escape(topic)) }
	return []limRole{
		{"publish", "publish", suite.Publisher, post},
		{"subscribe", "subscribe", suite.Subscriber, get},
	}
}

func limTokenChecks() []suite.Check {
	var checks []suite.Check
	for _, l := range limTokens() {
		for _, r := range limRoles() {
			name := l.name + "-" + r.name
			checks = append(checks,
				one("LIM-09", name, func(t *suite.T) {
					f := l.search(t, r, t.Topic())
					switch {
					case f.resp == nil:
						t.Fail("no limit up to %d", l.sizes[len(l.sizes)-1])
					case f.resp.Status < 400 || f.resp.Status > 499:
						t.Fail("size %d: answered %d, wanted a refusal", f.size, f.resp.Status)
					case f.resp.Status != 401:
						t.Observed("which limits it as well, be it by the hub or in front of it")
					}
				}),
				one("LIM-10", name, func(t *suite.T) { l.reported(t, r) }))
		}
	}
	return checks
}

func (l limToken) sign(t *suite.T, r limRole, topic string, n int) string {
	return t.Sign(r.role, t.Claims(l.details(r.action, topic, n)))
}

func (l limToken) search(t *suite.T, r limRole, topic string) limFound {
	request := r.request(t, topic)
	return limSearch(t, l.sizes, func(n int) wire.Request { return suite.Bearer(request, l.sign(t, r, topic, n)) }, nil)
}

// reported looks at the answer to a token that is too much, and at whether one that is accepted counts as a whole.
func (l limToken) reported(t *suite.T, r limRole) {
	topic := t.Topic()
	f := l.search(t, r, topic)
	l.whole(t, r, topic, f)
	if f.resp == nil {
		t.Skip("the hub has no limit up to %d, so it reports none", l.sizes[len(l.sizes)-1])
	}
	if f.resp.Status == 401 {
		challenge := strings.Join(f.resp.All("WWW-Authenticate"), ", ")
		if !strings.Contains(strings.ReplaceAll(challenge, " ", ""), `error="invalid_token"`) && !strings.Contains(challenge, "error=invalid_token") {
			t.Fail("size %d: answered 401 with the challenge %q, wanted error=\"invalid_token\"", f.size, challenge)
		}
		return
	}
	if f.resp.Status == 403 {
		t.Fail("size %d: answered 403, as if a part of the token were all of it; wanted 401", f.size)
	}
	// As long a header section with a small token tells whether the token was looked at. The field is not the one of the
	// token: a server may bound each.
	filler := suite.Bearer(r.request(t, topic), l.sign(t, r, topic, 1)).With("X-Filler", strings.Repeat("x", len(l.sign(t, r, topic, f.size))))
	if limIsOthers(t, f, filler) {
		t.Skip("a header section of that length is refused with %d whatever it says: no limit of the hub's own is known", f.resp.Status)
	}
	t.Fail("size %d: answered %d, wanted 401", f.size, f.resp.Status)
}

// whole uses the last entry of the biggest token that is accepted.
func (l limToken) whole(t *suite.T, r limRole, topic string, f limFound) {
	i := slices.Index(l.sizes, f.size)
	if f.resp == nil {
		i = len(l.sizes)
	}
	if i <= 0 || r.role == suite.Publisher {
		return // a publication that is accepted has used it
	}
	s := t.Open(suite.Bearer(r.request(t, topic), l.sign(t, r, topic, l.sizes[i-1])))
	private := t.Publish("topic", topic, "data", "x", "private", "on")
	t.Publish("topic", topic, "data", "x")
	if e := s.Next(); e.ID != private {
		t.Fail("a token of size %d was accepted, but its last entry grants nothing", l.sizes[i-1])
	}
}

// limEnoughChecks use what every application may need.
func limEnoughChecks() []suite.Check {
	ten := func(folder string) []string {
		topics := make([]string, 10)
		for i := range topics {
			topics[i] = fmt.Sprint(folder, "/", i)
		}
		return topics
	}
	twenty := func(action, folder string) []suite.Detail {
		details := make([]suite.Detail, 20)
		for i := range details {
			details[i] = suite.Grant(action, suite.Exact(fmt.Sprint(folder, "/", i)), suite.Pattern(fmt.Sprint(folder, "/", i, "/:x")))
			if action == "subscribe" {
				details[i]["payload"] = jose.Object{"number": i}
			}
		}
		return details
	}
	return []suite.Check{
		one("LIM-12", "10-matchers", func(t *suite.T) {
			topics := ten(t.Folder())
			s := t.Listen(recTo(topics...))
			var ids []string
			for _, topic := range topics {
				ids = append(ids, t.Publish("topic", topic, "data", "x"))
			}
			s.Want(ids...)
		}),
		one("LIM-12", "10-patterns", func(t *suite.T) {
			topics := ten(t.Folder())
			s := t.Listen("match_urlpattern=" + strings.Join(topics, "/:x&match_urlpattern=") + "/:x")
			var ids []string
			for _, topic := range topics {
				ids = append(ids, t.Publish("topic", topic+"/y", "data", "x"))
			}
			s.Want(ids...)
		}),
		one("LIM-12", "10-topics", func(t *suite.T) {
			topics := ten(t.Folder())
			first, last := t.ListenTo(topics[0]), t.ListenTo(topics[9])
			id := t.PublishForm(privForm(false, "x", topics...))
			first.Want(id)
			last.Want(id)
		}),
		one("LIM-12", "64-KiB-of-data", func(t *suite.T) {
			topic, data := t.Topic(), strings.Repeat("0123456789abcde\n", 4<<10)
			s := t.ListenTo(topic)
			if e := s.Want(t.Publish("topic", topic, "data", data))[0]; e.Data != data {
				t.Fail("data of %d bytes arrived as other %d bytes", len(data), len(e.Data))
			}
		}),
		one("LIM-12", "20-details-publish", func(t *suite.T) {
			folder := t.Folder()
			t.Want(suite.Bearer(t.Post(wire.Form("topic", folder+"/19", "data", "x")), t.PublishToken(twenty("publish", folder)...)), 200)
		}),
		one("LIM-12", "20-details-subscribe", func(t *suite.T) {
			folder := t.Folder()
			s := t.ListenWith(suite.Bearer(t.Get(recTo(folder+"/19")), t.SubscribeToken(twenty("subscribe", folder)...)))
			s.Want(t.Publish("topic", folder+"/19", "data", "x", "private", "on"))
		}),
	}
}
