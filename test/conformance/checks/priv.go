package checks

import (
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// privChecks are about what grants allow: reading private updates, publishing, and for how long.
func privChecks() []suite.Check {
	return slices.Concat(
		privAudienceChecks(),
		privReadingChecks(),
		privPublishingChecks(),
		privNothingDispatchedChecks(),
		privRoleChecks(),
		privPublicChecks(),
		privExpiryChecks(),
		privLifetimeChecks(),
	)
}

// privIn puts a folder of the check's own in the place of {}.
func privIn(folder string, texts ...string) []string {
	in := make([]string, len(texts))
	for i, text := range texts {
		in[i] = strings.ReplaceAll(text, "{}", folder)
	}
	return in
}

// privGrant is a detail for these exact matchers and URL patterns.
func privGrant(action string, exact, patterns []string) suite.Detail {
	topics := make([]suite.Matcher, 0, len(exact)+len(patterns))
	for _, e := range exact {
		topics = append(topics, suite.Exact(e))
	}
	for _, p := range patterns {
		topics = append(topics, suite.Pattern(p))
	}
	return suite.Grant(action, topics...)
}

// privForm is a publication on these topics.
func privForm(private bool, data string, topics ...string) string {
	pairs := make([]string, 0, 2*len(topics)+4)
	for _, topic := range topics {
		pairs = append(pairs, "topic", topic)
	}
	pairs = append(pairs, "data", data)
	if private {
		pairs = append(pairs, "private", "on")
	}
	return wire.Form(pairs...)
}

// privAudienceChecks send one private update to several streams, of which only one may see it.
func privAudienceChecks() []suite.Check {
	audience := func(name string, open func(t *suite.T, topic string) (reads, does *suite.Stream), needs ...suite.Feature) suite.Check {
		return one("PRIV-01", name, func(t *suite.T) {
			topic := t.Topic()
			reads, not := open(t, topic)
			id := t.Publish("topic", topic, "data", "secret", "private", "on")
			reads.Want(id)
			not.Want()
		}, needs...)
	}
	to := func(t *suite.T, topic string, grant suite.Detail) *suite.Stream {
		return t.ListenWith(suite.Bearer(t.Get("match="+wire.Escape(topic)), t.SubscribeToken(grant)))
	}
	return []suite.Check{
		audience("grant-on-another-topic", func(t *suite.T, topic string) (*suite.Stream, *suite.Stream) {
			return to(t, topic, suite.CanSubscribe(suite.Exact(topic))), to(t, topic, suite.CanSubscribe(suite.Exact(topic+"/x")))
		}),
		audience("grant-on-everything", func(t *suite.T, topic string) (*suite.Stream, *suite.Stream) {
			return to(t, topic, suite.CanSubscribe(suite.Any())), to(t, topic, suite.CanSubscribe(suite.Exact(topic[:len(topic)-1])))
		}),
		audience("pattern-grant", func(t *suite.T, topic string) (*suite.Stream, *suite.Stream) {
			return to(t, topic, suite.CanSubscribe(suite.Pattern("https://example.com/:id"))),
				to(t, topic, suite.CanSubscribe(suite.Pattern("https://example.com/:id/:part")))
		}),
		audience("anonymous", func(t *suite.T, topic string) (*suite.Stream, *suite.Stream) {
			return t.ListenTo(topic), t.ListenWith(t.Get("match=" + wire.Escape(topic)))
		}, suite.Anonymous),
		audience("cookie", func(t *suite.T, topic string) (*suite.Stream, *suite.Stream) {
			with := func(grant suite.Detail) *suite.Stream {
				return t.ListenWith(t.InCookie(t.Get("match="+wire.Escape(topic)), t.SubscribeToken(grant)))
			}
			return with(suite.CanSubscribe(suite.Exact(topic))), with(suite.CanSubscribe(suite.Exact(topic + "/x")))
		}, suite.Cookie),
		// Who opens a stream first, and with what, says nothing about the next one.
		audience("unauthorised-first", func(t *suite.T, topic string) (*suite.Stream, *suite.Stream) {
			not := to(t, topic, suite.CanSubscribe(suite.Exact(topic+"/x")))
			return to(t, topic, suite.CanSubscribe(suite.Exact(topic))), not
		}),
		one("PRIV-01", "only-that-update", func(t *suite.T) {
			// The update before and after are public: privacy belongs to one update, not to its topic.
			topic := t.Topic()
			s := to(t, topic, suite.CanSubscribe(suite.Exact(topic+"/x")))
			before := t.Publish("topic", topic, "data", "public")
			t.Publish("topic", topic, "data", "secret", "private", "on")
			after := t.Publish("topic", topic, "data", "public")
			s.Want(before, after)
		}),
	}
}

// privReading is a private update, and a stream that it reaches or not. {} is a folder of the check's own.
type privReading struct {
	id, name string
	match    string   // the query of the stream; its values need no escaping
	exact    []string // the grants of its token to subscribe
	patterns []string
	topics   []string // of the update
	reaches  bool
}

func privReadings() []privReading {
	return []privReading{
		// PRIV-05: a grant on any one topic is enough, whichever topic routed the update.
		{"PRIV-05", "alternate-granted-canonical-routed", "match={}/a", []string{"{}/b"}, nil, []string{"{}/a", "{}/b"}, true},
		{"PRIV-05", "canonical-granted-alternate-routed", "match={}/b", []string{"{}/a"}, nil, []string{"{}/a", "{}/b"}, true},
		{"PRIV-05", "canonical-granted-canonical-routed", "match={}/a", []string{"{}/a"}, nil, []string{"{}/a", "{}/b"}, true},
		{"PRIV-05", "alternate-granted-alternate-routed", "match={}/b", []string{"{}/b"}, nil, []string{"{}/a", "{}/b"}, true},
		{"PRIV-05", "second-alternate-granted-first-routed", "match={}/b", []string{"{}/c"}, nil, []string{"{}/a", "{}/b", "{}/c"}, true},
		{"PRIV-05", "last-of-ten-granted", "match={}/0", []string{"{}/9"}, nil, []string{
			"{}/0", "{}/1", "{}/2", "{}/3", "{}/4", "{}/5", "{}/6", "{}/7", "{}/8", "{}/9",
		}, true},
		{"PRIV-05", "own-namespace", "match_urlpattern={}/books/:id", nil, []string{"{}/users/42/*"}, []string{"{}/books/1", "{}/users/42/books/1"}, true},
		{"PRIV-05", "second-grant-of-a-detail", "match={}/a", []string{"{}/x", "{}/b"}, nil, []string{"{}/a", "{}/b"}, true},

		// PRIV-06: without a grant on any topic, no matcher helps.
		{"PRIV-06", "match-everything", "match=*", []string{"{}/x"}, nil, []string{"{}/a"}, false},
		{"PRIV-06", "match-exact", "match={}/a", []string{"{}/x"}, nil, []string{"{}/a"}, false},
		{"PRIV-06", "match-urlpattern", "match_urlpattern={}/*", []string{"{}/x"}, nil, []string{"{}/a"}, false},
		{"PRIV-06", "none-of-two-topics", "match={}/a&match={}/b", []string{"{}/x"}, nil, []string{"{}/a", "{}/b"}, false},
		{"PRIV-06", "granted-prefix", "match={}/ab", []string{"{}/a", "{}"}, nil, []string{"{}/ab"}, false},
		{"PRIV-06", "granted-below", "match={}/a", []string{"{}/a/b", "{}/a/"}, nil, []string{"{}/a"}, false},
		{"PRIV-06", "granted-in-other-case", "match={}/a", []string{"{}/A"}, nil, []string{"{}/a"}, false},
		{"PRIV-06", "pattern-of-another-folder", "match={}/a/1", nil, []string{"{}/b/:id", "{}/:id"}, []string{"{}/a/1"}, false},
		{"PRIV-06", "another-users-namespace", "match_urlpattern={}/books/:id", nil, []string{"{}/users/42/*"}, []string{"{}/books/1", "{}/users/43/books/1"}, false},

		// PRIV-07: matchers choose from what may be read.
		{"PRIV-07", "pattern-routes-granted-book", "match_urlpattern={}/books/:id", []string{"{}/books/1"}, nil, []string{"{}/books/1"}, true},
		{"PRIV-07", "pattern-routes-other-book", "match_urlpattern={}/books/:id", []string{"{}/books/1"}, nil, []string{"{}/books/2"}, false},
		{"PRIV-07", "everything-routes-other-book", "match=*", []string{"{}/books/1"}, nil, []string{"{}/books/2"}, false},
		{"PRIV-07", "two-matchers-one-granted", "match={}/books/1&match={}/books/2", []string{"{}/books/1"}, nil, []string{"{}/books/2"}, false},
		// Who may read the topic that is spelled like the matcher may not read what the matcher selects.
		{"PRIV-07", "grant-spelled-like-the-pattern", "match_urlpattern={}/books/:id", []string{"{}/books/:id"}, nil, []string{"{}/books/2"}, false},
		{"PRIV-07", "pattern-granted-part-of-it", "match_urlpattern={}/*", nil, []string{"{}/books/:id"}, []string{"{}/pens/1"}, false},
		// The pattern that is granted matches the pattern that routes, as if that were a topic; only payloads are chosen so.
		{"PRIV-07", "grant-matches-the-pattern-itself", "match_urlpattern={}/books/*", nil, []string{"{}/books/:id"}, []string{"{}/books/2/chapters"}, false},

		// PRIV-12: what may be read is not what was asked for.
		{"PRIV-12", "exact", "match={}/a", []string{"*"}, nil, []string{"{}/b"}, false},
		{"PRIV-12", "urlpattern", "match_urlpattern={}/books/:id", []string{"*"}, nil, []string{"{}/pens/1"}, false},
		{"PRIV-12", "granted-exactly", "match={}/a", []string{"{}/a", "{}/b"}, nil, []string{"{}/b"}, false},
		{"PRIV-12", "alternates", "match={}/a", []string{"*"}, nil, []string{"{}/b", "{}/c"}, false},
	}
}

func privReadingChecks() []suite.Check {
	var checks []suite.Check
	for _, c := range privReadings() {
		checks = append(checks, one(c.id, c.name, func(t *suite.T) {
			folder, mark := t.Folder(), t.Unique("mark")
			token := t.SubscribeToken(privGrant("subscribe", privIn(folder, c.exact...), privIn(folder, c.patterns...)))
			s := t.ListenWith(suite.Bearer(t.Get(privIn(folder, c.match)[0]), token))
			id := t.PublishForm(privForm(true, mark, privIn(folder, c.topics...)...))
			if c.reaches {
				s.WantOwn(mark, id)
			} else {
				s.WantOwn(mark)
			}
		}))
	}
	return checks
}
