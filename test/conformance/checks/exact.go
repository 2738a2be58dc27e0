package checks

import (
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// exactPair is two topics that an exact matcher must tell apart, though they look, resolve or match alike. In both, NAME
// stands for a unique name, ORIGIN for the hub's origin, SCHEME for its scheme and FOLDER for the folder of its path.
type exactPair struct{ name, a, b string }

// exactChecks are about the comparison of topics with exact matchers.
func exactChecks() []suite.Check {
	var checks []suite.Check
	for _, parameter := range []string{"match", "match_exact"} {
		checks = append(checks, one("EXACT-01", parameter, func(t *suite.T) {
			topic := t.Topic()
			s := t.Listen(parameter + "=" + wire.Escape(topic))
			s.Want(subPublish(t, topic))
		}))
	}
	checks = append(checks, one("EXACT-01", "both-at-once", func(t *suite.T) {
		a, b := t.Topic(), t.Topic()
		s := t.Listen("match=" + wire.Escape(a) + "&match_exact=" + wire.Escape(b))
		s.Want(subPublish(t, b), subPublish(t, a))
	}))
	return slices.Concat(checks,
		exactPairChecks("EXACT-02", exactBytes()),
		exactPairChecks("EXACT-03", exactRelative()),
		exactPairChecks("EXACT-04", exactNormal()),
		exactPairChecks("EXACT-05", exactSyntax()),
	)
}

// exactBytes differ in few octets.
func exactBytes() []exactPair {
	const u = "https://example.com/NAME"
	return []exactPair{
		{"case-of-path", u + "/a", u + "/A"},
		{"case-of-scheme", u, "HTTPS://example.com/NAME"},
		{"case-of-words", "some Words NAME", "some words NAME"},
		{"case-beyond-ASCII", "NAME/É", "NAME/é"},
		{"case-folding", "NAME/straße", "NAME/strasse"},
		{"trailing-slash", u, u + "/"},
		{"path-prefix", u, u + "/a"},
		{"prefix", u, u + "a"},
		{"suffix", "NAME", "a/NAME"},
		{"last-octet", u + "/a", u + "/b"},
		{"first-octet", "aNAME", "bNAME"},
		{"query", u, u + "?q=1"},
		{"empty-query", u, u + "?"},
		{"fragment", u, u + "#f"},
		{"empty-fragment", u, u + "#"},
		{"order-of-query", u + "?a=1&b=2", u + "?b=2&a=1"},
		{"http-and-https", u, "http://example.com/NAME"},
		{"leading-space", "NAME", " NAME"},
		{"trailing-space", "NAME", "NAME "},
		{"two-spaces", "a NAME", "a  NAME"},
		{"no-break-space", "a NAME", "a\u00A0NAME"},
		{"last-of-300-octets", u + strings.Repeat("/abcd", 60) + "a", u + strings.Repeat("/abcd", 60) + "b"},
		{"first-of-300-octets", "aNAME" + strings.Repeat("/abcd", 60), "bNAME" + strings.Repeat("/abcd", 60)},
		{"300-octets-and-more", u + strings.Repeat("/abcd", 60), u + strings.Repeat("/abcd", 61)},
		{"look-alike-letter", "https://ex\u0430mple.com/NAME", "https://example.com/NAME"},
	}
}

// exactRelative are the same for who resolves relative topics.
func exactRelative() []exactPair {
	return []exactPair{
		{"absolute-path", "/NAME", "ORIGIN/NAME"},
		{"beside-the-hub", "NAME", "ORIGINFOLDERNAME"},
		{"beside-the-hub-as-path", "NAME", "FOLDERNAME"},
		{"other-origin", "/NAME", "https://example.com/NAME"},
		{"dot", "./NAME", "NAME"},
		{"two-dots", "/a/../NAME", "/NAME"},
		{"without-scheme", "//example.com/NAME", "SCHEME//example.com/NAME"},
		{"scheme-without-host", "SCHEMENAME", "NAME"},
	}
}

// exactNormal are the same for who normalises Unicode, IRIs or URLs.
func exactNormal() []exactPair {
	const u, host = "https://example.com/NAME", "https://example.com"
	return []exactPair{
		{"NFC-NFD", u + "/\u00E9", u + "/e\u0301"},
		{"NFC-NFD-no-URL", "NAME \u00E9", "NAME e\u0301"},
		{"NFC-singleton", u + "/\u212B", u + "/\u00C5"},
		{"NFC-Hangul", u + "/\uAC00", u + "/\u1100\u1161"},
		{"NFKC", u + "/\uFB01", u + "/fi"},
		{"encoded-tilde", u + "/%7E", u + "/~"},
		{"encoded-letter", u + "/%41", u + "/A"},
		{"encoded-beyond-ASCII", u + "/%C3%A9", u + "/\u00E9"},
		{"encoded-slash", u + "/a%2Fb", u + "/a/b"},
		{"encoded-space", u + "/a%20b", u + "/a b"},
		{"plus-and-space", u + "/a+b", u + "/a b"},
		{"case-of-hex", u + "/%c3%a9", u + "/%C3%A9"},
		{"encoded-percent", u + "/%2541", u + "/%41"},
		{"host-case", "https://EXAMPLE.com/NAME", u},
		{"IDNA", "https://b\u00FCcher.example/NAME", "https://xn--bcher-kva.example/NAME"},
		{"default-port", host + ":443/NAME", u},
		{"default-port-http", "http://example.com:80/NAME", "http://example.com/NAME"},
		{"empty-port", host + ":/NAME", u},
		{"dot-segments", host + "/a/../NAME", u},
		{"single-dot", host + "/./NAME", u},
		{"encoded-dots", host + "/a/%2e%2e/NAME", u},
		{"two-slashes", host + "//NAME", u},
		{"empty-path", "https://NAME.example", "https://NAME.example/"},
		{"dot-after-host", "https://example.com./NAME", u},
		{"backslashes", `https:\\example.com\NAME`, u},
		{"one-slash-after-scheme", "https:/example.com/NAME", u},
		{"userinfo", "https://@example.com/NAME", u},
		{"case-of-URN", "urn:EXAMPLE:NAME", "URN:example:NAME"},
	}
}

// exactSyntax have an exact matcher that another type, or another kind of matcher, would take for the second topic too.
func exactSyntax() []exactPair {
	const u = "https://example.com/NAME"
	return []exactPair{
		{"named-group", u + "/:id", u + "/1"},
		{"named-group-repeated", u + "/:id+", u + "/1/2"},
		{"asterisk", u + "/*", u + "/1"},
		{"regexp-group", u + `/(\d+)`, u + "/1"},
		{"optional-group", u + "{/c}?", u + "/c"},
		{"braces", u + "/{id}", u + "/1"},
		{"braces-without-effect", u + "{/c}", u + "/c"},
		{"backslash", u + `/\:id`, u + "/:id"},
		{"question-mark", u + "/ab?", u + "/a"},
		{"regexp-dot", u + "/a.c", u + "/abc"},
		{"regexp-anything", u + "/.*", u + "/abc"},
		{"glob-set", u + "/[ab]", u + "/a"},
		{"glob-question-marks", u + "/??", u + "/ab"},
		{"SQL-underscore", u + "/a_c", u + "/abc"},
		{"SQL-percent", u + "/%", u + "/abc"},
	}
}

// exactFill puts what is unique and what belongs to the hub into a topic.
func exactFill(t *suite.T, topic, name string) string {
	scheme, _, _ := strings.Cut(t.Target().Origin(), "//")
	path := t.Target().Path()
	return strings.NewReplacer(
		"NAME", name, "ORIGIN", t.Target().Origin(), "SCHEME", scheme, "FOLDER", path[:strings.LastIndexByte(path, '/')+1],
	).Replace(topic)
}

// exactPairChecks have, for each pair, a stream of the one topic and a stream of the other.
func exactPairChecks(id string, pairs []exactPair) []suite.Check {
	checks := make([]suite.Check, 0, len(pairs)+3)
	for _, p := range pairs {
		checks = append(checks, one(id, p.name, func(t *suite.T) {
			name := t.Unique("t")
			a, b := exactFill(t, p.a, name), exactFill(t, p.b, name)
			ofA, ofB := t.ListenTo(a), t.Listen("match_exact="+wire.Escape(b))
			idA, idB := subPublish(t, a), subPublish(t, b)
			ofA.Want(idA)
			ofB.Want(idB)
		}))
	}
	return append(checks, exactGrantChecks(id, pairs)...)
}

// exactTopics fills in pairs; first gives the topics that are the first ones, second the others.
func exactTopics(t *suite.T, pairs []exactPair) (first, second []string) {
	for _, p := range pairs {
		name := t.Unique("t")
		first, second = append(first, exactFill(t, p.a, name)), append(second, exactFill(t, p.b, name))
	}
	return first, second
}

// exactAtOnce is how many pairs share a request: with two matchers each, and one for the fence, they are no more than
// any hub should take (LIM-12).
const exactAtOnce = 4

// exactGrantChecks ask all pairs where else a hub compares: in tokens, and when it replays.
func exactGrantChecks(id string, pairs []exactPair) []suite.Check {
	return []suite.Check{
		one(id, "grants-to-publish", func(t *suite.T) {
			first, second := exactTopics(t, pairs)
			for i := range pairs {
				for _, way := range [2][2]string{{first[i], second[i]}, {second[i], first[i]}} {
					token := t.PublishToken(suite.CanPublish(suite.Exact(way[0])))
					post := func(topic string) int {
						return t.Do(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), token)).Status
					}
					if granted, other := post(way[0]), post(way[1]); granted != 200 || other != 403 {
						t.Fail("%s: the granted topic was answered with %d, wanted 200; the other one with %d, wanted 403", pairs[i].name, granted, other)
					}
				}
			}
			t.Observed("%d pairs were told apart", len(pairs))
		}),
		one(id, "grants-to-read", func(t *suite.T) {
			for some := range slices.Chunk(pairs, exactAtOnce) {
				first, second := exactTopics(t, some)
				query := exactQuery(slices.Concat(first, second))
				reader := func(topics []string) *suite.Stream {
					var granted []suite.Matcher
					for _, topic := range topics {
						granted = append(granted, suite.Exact(topic))
					}
					return t.ListenWith(suite.Bearer(t.Get(query), t.SubscribeToken(suite.CanSubscribe(granted...))))
				}
				ofFirst, ofSecond := reader(first), reader(second)
				firstIDs, secondIDs := exactPublish(t, first, "private"), exactPublish(t, second, "private")
				ofFirst.Want(firstIDs...)
				ofSecond.Want(secondIDs...)
				ofFirst.Close()
				ofSecond.Close()
			}
		}),
		one(id, "replay", func(t *suite.T) {
			for some := range slices.Chunk(pairs, exactAtOnce) {
				first, second := exactTopics(t, some)
				cursor := "&last_event_id=" + wire.Escape(subPublish(t, t.Topic()))
				firstIDs, secondIDs := exactPublish(t, first), exactPublish(t, second)
				exactNotReplayed(t, exactQuery(first)+cursor, secondIDs)
				exactNotReplayed(t, exactQuery(second)+cursor, firstIDs)
			}
			t.Observed("%d pairs were told apart", len(pairs))
		}, suite.History),
	}
}

// exactQuery has a matcher for each topic.
func exactQuery(topics []string) string {
	parameters := make([]string, len(topics))
	for i, topic := range topics {
		parameters[i] = subMatch(topic)
	}
	return strings.Join(parameters, "&")
}

// exactPublish publishes an update for each topic, with these other fields, and gives the ids.
func exactPublish(t *suite.T, topics []string, fields ...string) []string {
	ids := make([]string, len(topics))
	for i, topic := range topics {
		pairs := []string{"topic", topic, "data", "x"}
		for _, f := range fields {
			pairs = append(pairs, f, "on")
		}
		ids[i] = t.Publish(pairs...)
	}
	return ids
}

// exactNotReplayed says that none of these updates is replayed. Whether anything is, is another question.
func exactNotReplayed(t *suite.T, query string, ids []string) {
	s := t.Listen(query)
	for _, e := range s.Events() {
		if i := slices.Index(ids, e.ID); i >= 0 {
			t.Fail("the update of topic %d of %d was replayed to a stream of other topics", i+1, len(ids))
		}
	}
	s.Close()
}
