package checks

import (
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// matchTopics are topics of all sorts. NAME stands for a unique name.
func matchTopics() []struct{ name, topic string } {
	return []struct{ name, topic string }{
		{"URL", "https://example.com/NAME"},
		{"URL-of-another-scheme", "ftp://user@example.com:2121/NAME?q#f"},
		{"path", "/NAME/a/b"},
		{"word", "NAME"},
		{"words", "plain words NAME"},
		{"URN", "urn:uuid:NAME"},
		{"data-URL", "data:,NAME"},
		{"not-a-URL", "https://[bad-NAME"},
		{"port-too-large", "https://example.com:99999/NAME"},
		{"scheme-alone", "NAME:"},
		{"letters-of-other-scripts", "тема/NAME/é"},
		{"asterisks", "**NAME"},
		{"stray-percent", "%zzNAME%"},
	}
}

// matchWildcardChecks have the wildcard in each parameter.
func matchWildcardChecks() []suite.Check {
	var checks []suite.Check
	for _, parameter := range subMatchers() {
		id, prefix := "MATCH-06", parameter+"-"
		if parameter == "match" {
			id, prefix = "MATCH-05", ""
		}
		for _, m := range matchTopics() {
			checks = append(checks, one(id, prefix+m.name, func(t *suite.T) {
				mark := t.Unique("mark")
				s := t.Listen(parameter + "=*")
				s.WantOwn(mark, t.Publish("topic", subNamed(m.topic, t.Unique("t")), "data", mark))
			}))
		}
		checks = append(checks,
			one(id, prefix+"encoded", func(t *suite.T) {
				mark := t.Unique("mark")
				s := t.Listen(parameter + "=%2A")
				s.WantOwn(mark, t.Publish("topic", "https://[bad-"+t.Unique("t"), "data", mark))
			}),
			one(id, prefix+"beside-another", func(t *suite.T) {
				mark := t.Unique("mark")
				s := t.Listen(subMatch(t.Topic()) + "&" + parameter + "=*")
				s.WantOwn(mark, t.Publish("topic", "https://[bad-"+t.Unique("t"), "data", mark))
			}),
		)
	}
	return checks
}

// matchWildcardGrantChecks have the wildcard in tokens, with each type: for a URL, for what no pattern can match, and for
// all sorts of topics.
func matchWildcardGrantChecks() []suite.Check {
	sorts := []struct {
		name   string
		topics []string
	}{{"URL", []string{"https://example.com/NAME"}}, {"not-a-URL", []string{"https://[bad-NAME", "https://example.com:99999/NAME"}}, {"all-sorts", nil}}
	for _, m := range matchTopics() {
		sorts[len(sorts)-1].topics = append(sorts[len(sorts)-1].topics, m.topic)
	}
	var checks []suite.Check
	for _, k := range []struct {
		name      string
		matchType any
	}{{"without-type", nil}, {"exact", "exact"}, {"urlpattern", "urlpattern"}} {
		for _, sort := range sorts {
			checks = append(checks,
				one("MATCH-06", "grant-to-read-"+k.name+"-"+sort.name, func(t *suite.T) {
					for _, topic := range sort.topics {
						matchPrivate(t, subNamed(topic, t.Unique("t")), matchTyped("*", k.matchType))
					}
				}),
				one("MATCH-06", "grant-to-publish-"+k.name+"-"+sort.name, func(t *suite.T) {
					token := t.PublishToken(suite.CanPublish(matchTyped("*", k.matchType)))
					for _, topic := range sort.topics {
						topic = subNamed(topic, t.Unique("t"))
						s := t.ListenTo(topic)
						s.Want(t.PublishWith(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), token)))
						s.Close()
					}
				}),
			)
		}
	}
	return checks
}

// matchAsterisks have an asterisk that is not the whole value, and a topic that it would select were it a wildcard.
func matchAsterisks() []exactPair {
	return []exactPair{
		{"asterisk-at-the-end", "NAME*", "NAMEb"},
		{"asterisk-at-the-end-of-nothing", "NAME*", "NAME"},
		{"asterisk-at-the-start", "*NAME", "bNAME"},
		{"asterisk-between", "a*NAME", "abNAME"},
		{"last-segment", "https://example.com/NAME/*", "https://example.com/NAME/b"},
		{"encoded-asterisk", "NAME%2A", "NAME*"},
	}
}

// matchLiteralChecks have matchers that cannot be made unique: data does it.
func matchLiteralChecks() []suite.Check {
	var checks []suite.Check
	for _, m := range []struct{ name, match string }{
		{"a-and-asterisk", "a*"},
		{"two-asterisks", "**"},
		{"space-before", " *"},
		{"space-after", "* "},
		{"asterisk-and-slash", "*/"},
		{"no-break-space-after", "*\u00A0"},
	} {
		literal := func(name string, request func(t *suite.T) wire.Request, private ...string) {
			checks = append(checks, one("MATCH-07", name+m.name, func(t *suite.T) {
				mark := t.Unique("mark")
				s := t.ListenWith(request(t))
				publish := func(topic string) string {
					return t.Publish(append([]string{"topic", topic, "data", mark}, private...)...)
				}
				publish("ab")
				publish(t.Topic())
				publish(t.Unique("/t"))
				s.WantOwn(mark, publish(m.match))
			}))
		}
		literal("match-", func(t *suite.T) wire.Request { return subGet(t, subMatch(m.match)) })
		literal("match_exact-", func(t *suite.T) wire.Request { return subGet(t, "match_exact="+wire.Escape(m.match)) })
		literal("grant-to-read-", func(t *suite.T) wire.Request {
			return suite.Bearer(t.Get("match=*"), t.SubscribeToken(suite.CanSubscribe(matchTyped(m.match, nil))))
		}, "private", "on")
		checks = append(checks, one("MATCH-07", "grant-to-publish-"+m.name, func(t *suite.T) {
			token := t.PublishToken(suite.CanPublish(matchTyped(m.match, nil)))
			for _, topic := range []string{"ab", t.Topic(), t.Unique("/t")} {
				t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), token), 403)
			}
			t.Want(suite.Bearer(t.Post(wire.Form("topic", m.match, "data", "x")), token), 200)
		}))
	}
	return checks
}
