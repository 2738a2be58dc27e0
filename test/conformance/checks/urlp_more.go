package checks

import (
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// urlpForeignHost says that the base is the hub's own URL, not whatever the Host field of a request claims. A hub may
// refuse such requests.
func urlpForeignHost() []suite.Check {
	const host = "other.example"
	return []suite.Check{
		one("URLP-02", "other-Host-field", func(t *suite.T) {
			c := urlpCase{pattern: "/$U/:id", yes: []string{"$O/$U/1"}, no: []string{"$S://" + host + "/$U/1"}}
			names := urlpNames(t)
			r := suite.Bearer(t.Get(wire.Form("match_urlpattern", names.Replace(c.pattern))), t.SubscribeAll())
			r.Host = host
			if urlpAnswered(t, r) == nil {
				return
			}
			urlpCompare(t, t.ListenWith(r), names, c)
		}),
		one("URLP-03", "other-Host-field", func(t *suite.T) {
			name := t.Unique("u")
			s := t.Listen(wire.Form("match_urlpattern", t.Target().Origin()+"/"+name))
			foreign := t.Listen(wire.Form("match_urlpattern", nsScheme(t)+"://"+host+"/"+name))
			r := suite.Bearer(t.Post(wire.Form("topic", "/"+name, "data", "x")), t.PublishAll())
			r.Host = host
			if resp := urlpAnswered(t, r); resp != nil {
				s.Want(resp.Body)
			}
			foreign.Want()
		}),
	}
}

// urlpAnswered gives the answer to a request with another Host field, or nil when the hub does not serve it.
func urlpAnswered(t *suite.T, r wire.Request) *wire.Response {
	resp, err := t.Try(r)
	if err != nil {
		t.Observed("a request with another Host field is not answered: %v", err)
		return nil
	}
	resp.Close()
	t.Observed("a request with another Host field is answered %d", resp.Status)
	if resp.Status != 200 {
		return nil
	}
	return resp
}

// urlpUnparseable is URLP-06: what the URL parser fails on matches no pattern, whatever its wildcards.
func urlpUnparseable() []suite.Check {
	var checks []suite.Check
	patterns := []string{"*://*/*", "*://*:*/*", "*:*", "/*", "*?*#*", ":scheme://:host/*"}
	for _, c := range []struct{ name, topic string }{
		{"open-bracket", "https://[bad/$U"},
		{"port-too-large", "https://h:99999/$U"},
		{"port-no-number", "https://h:port/$U"},
		{"space-in-host", "https://a b/$U"},
		{"relative-open-bracket", "//[::1/$U"},
		{"user-without-host", "https://user@/$U"},
		{"foo-open-bracket", "foo://[bad/$U"},
		{"ipv4-too-large", "https://192.0.2.256/$U"},
	} {
		checks = append(checks, one("URLP-06", c.name, func(t *suite.T) {
			topic, mark := urlpNames(t).Replace(c.topic), t.Unique("mark")
			var form []string
			for _, pattern := range patterns {
				form = append(form, "match_urlpattern", pattern)
			}
			byPattern, byText, all := t.Listen(wire.Form(form...)), t.ListenTo(topic), t.Listen("match=*")
			id := t.Publish("topic", topic, "data", mark)
			good := t.Publish("topic", t.Topic(), "data", mark) // the patterns do match what can be parsed
			byPattern.WantOwn(mark, good)
			byText.WantOwn(mark, id)
			all.WantOwn(mark, id, good)
		}))
	}
	return append(checks,
		one("URLP-06", "beside-a-good-topic", func(t *suite.T) {
			name, mark := t.Unique("u"), t.Unique("mark")
			s := t.Listen(wire.Form("match_urlpattern", "https://example.com/"+name))
			s.WantOwn(mark, t.Publish("topic", "https://[bad/"+name, "topic", "https://example.com/"+name, "data", mark))
		}),
		one("URLP-06", "in-a-grant", func(t *suite.T) {
			name := t.Unique("u")
			token := t.PublishToken(suite.CanPublish(suite.Pattern("*://*:*/*"), suite.Pattern("*:*")))
			t.Want(suite.Bearer(t.Post(wire.Form("topic", "https://[bad/"+name, "data", "x")), token), 403)
			t.Want(suite.Bearer(t.Post(wire.Form("topic", "https://example.com/"+name, "data", "x")), token), 200)
		}),
	)
}

// urlpIllFormed is URLP-14: in a query an ill-formed pattern is a bad request, in a token it makes the token invalid.
func urlpIllFormed() []suite.Check {
	var checks []suite.Check
	for _, c := range []struct{ name, pattern string }{
		{"open-group", "("},
		{"open-group-in-path", "https://e.example/("},
		{"open-group-with-text", "/(a"},
		{"open-brace", "{a"},
		{"open-brace-in-path", "/{a"},
		{"closing-brace", "/a}"},
		{"nested-braces", "/{a{b}}"},
		{"duplicate-names", "/:x/:x"},
		{"duplicate-names-in-host", "https://:x.:x.example/"},
		{"stray-plus", "/+"},
		{"stray-question-mark", "/{?}"},
		{"two-modifiers", "/:x++"},
		{"lookahead", "/(?=a)"},
		{"lookbehind", "/(?<=a)"},
		{"flags", "/(?i)"},
		{"capturing-group-inside", "/(a(b))"},
		{"empty-regexp", "/()"},
		{"regexp-not-ASCII", "/(\u00e9)"},
		{"ill-formed-regexp", "/(a**)"},
		{"open-class", "/([a)"},
		{"name-missing", "/:"},
		{"name-is-a-number", "/:1"},
		{"trailing-backslash", `/a\`},
		{"port-too-large", "https://e.example:99999/"},
	} {
		checks = append(checks,
			one("URLP-14", c.name, func(t *suite.T) {
				t.Want(suite.Bearer(t.Get(wire.Form("match_urlpattern", c.pattern)), t.SubscribeAll()), 400)
			}),
			one("URLP-14", c.name+"-in-token", func(t *suite.T) {
				topic := t.Topic()
				matchers := []suite.Matcher{suite.Exact(topic), suite.Pattern(c.pattern)}
				t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), t.PublishToken(suite.CanPublish(matchers...))), 401)
				t.Want(suite.Bearer(t.Get(wire.Form("match", topic)), t.SubscribeToken(suite.CanSubscribe(matchers...))), 401)
			}))
	}
	return checks
}

// urlpCrafted is URLP-07 and URLP-08: patterns on which a backtracking engine takes longer than the suite waits for
// anything, by so much that no machine is fast enough. The topics match none of them.
func urlpCrafted() []suite.Check {
	var checks []suite.Check
	as := strings.Repeat("a", 80)
	for _, c := range []struct{ name, pattern, topic string }{
		{"repeated-group", "$F/x{(a+)}+b", "$F/x" + as},
		{"repeated-path-group", "$F/(a+)+b", "$F/" + as},
		{"nested-quantifiers", "$F/((?:a+)+b)", "$F/" + as},
		{"nested-stars", "$F/((?:a*)*b)", "$F/" + as + "c"},
		{"overlapping-alternatives", "$F/((?:a|aa)+b)", "$F/" + as},
		{"equal-alternatives", "$F/((?:a|a)*b)", "$F/" + as},
		{"many-dots", "$F/(.*a.*a.*a.*a.*a.*a.*a.*a.*a.*a.*b)", "$F/" + strings.Repeat(as, 4)},
		{"many-wildcards", "$F/" + strings.Repeat("*-", 16) + "b", "$F/" + strings.Repeat("-", 300)},
		{"many-names", "$F/:a-:b-:c-:d-:e-:f-:g-:h-:i-:j-:k-:l-:m-:n-:o-:p.b", "$F/" + strings.Repeat("-", 300)},
		{"in-query", "$F/x?((?:a+)+b)", "$F/x?" + as},
		{"in-host", "https://((?:a+)+b).example/$U", "https://" + as[:60] + ".example/$U"},
		{"relative", "/$U/((?:a+)+b)", "/$U/" + as},
		{"nested-counts", "$F/((?:(?:a{1,99}){1,99}){1,9}b)", "$F/" + as},
	} {
		checks = append(checks,
			one("URLP-07", c.name, func(t *suite.T) {
				names := urlpNames(t)
				topic := t.Topic()
				other := t.ListenTo(topic)
				urlpListen(t, names.Replace(c.pattern))
				for range 3 {
					t.Publish("topic", names.Replace(c.topic), "data", "x")
				}
				other.Want(t.Publish("topic", topic, "data", "x"))
			}),
			one("URLP-08", c.name, func(t *suite.T) {
				names := urlpNames(t)
				s := urlpListen(t, names.Replace(c.pattern))
				t.Publish("topic", names.Replace(c.topic), "data", "x")
				s.Want()
			}),
			one("URLP-08", c.name+"-in-token", func(t *suite.T) {
				names := urlpNames(t)
				token := t.PublishToken(suite.CanPublish(suite.Pattern(names.Replace(c.pattern))))
				t.Want(suite.Bearer(t.Post(wire.Form("topic", names.Replace(c.topic), "data", "x")), token), 403, 401)
			}))
	}
	return append(checks, one("URLP-08", "other-matchers-of-the-stream", func(t *suite.T) {
		names, topic := urlpNames(t), t.Topic()
		s := t.Listen(wire.Form("match_urlpattern", names.Replace("$F/((?:a+)+b)"), "match", topic))
		s.Want(t.Publish("topic", names.Replace("$F/"+as), "topic", topic, "data", "x"))
	}))
}

// urlpListen subscribes to a crafted pattern. A hub that refuses it is as safe as one that bounds its evaluation: then
// the stream has no matcher but the fence's.
func urlpListen(t *suite.T, pattern string) *suite.Stream {
	query := wire.Form("match_urlpattern", pattern)
	if resp := t.Want(suite.Bearer(t.Get(query), t.SubscribeAll()), 200, 400); resp.Status == 400 {
		t.Observed("the hub refuses this pattern")
		query = ""
	}
	return t.Listen(query)
}
