package refhub

import (
	"net/url"
	"regexp"
	"strings"
	"time"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// exactFaults compare otherwise than byte for byte (EXACT).
func exactFaults() []entry {
	add := func(name, check, does string, same func(h *Hub, pattern, topic string) bool) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.exact = comparison{same} }}
	}
	after := func(change func(h *Hub, s string) string) func(h *Hub, pattern, topic string) bool {
		return func(h *Hub, pattern, topic string) bool {
			return pattern == topic || change(h, pattern) == change(h, topic)
		}
	}
	lower := func(h *Hub, s string) string {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			u.Host = strings.ToLower(u.Host)
			return u.String()
		}
		return s
	}
	return []entry{
		add("exact-ignores-case", "EXACT-02/case-of-path", "Compares without regard to case.", func(_ *Hub, p, t string) bool { return strings.EqualFold(p, t) }),
		add("exact-ignores-host-case", "EXACT-04/host-case", "Compares hosts without regard to case.", after(lower)),
		add("exact-ignores-final-slash", "EXACT-02/trailing-slash", "Takes a final slash for nothing.", after(func(_ *Hub, s string) string { return strings.TrimSuffix(s, "/") })),
		add("exact-is-prefix", "EXACT-02/prefix", "Matches all topics that begin with the matcher.", func(_ *Hub, p, t string) bool { return strings.HasPrefix(t, p) }),
		add("exact-is-reverse-prefix", "EXACT-02/prefix", "Matches all topics that the matcher begins with.", func(_ *Hub, p, t string) bool { return strings.HasPrefix(p, t) }),
		add("exact-is-suffix", "EXACT-02/suffix", "Matches all topics that end with the matcher.", func(_ *Hub, p, t string) bool { return strings.HasSuffix(t, p) }),
		add("exact-ignores-scheme-case", "EXACT-02/case-of-scheme", "Compares schemes without regard to case.", after(func(_ *Hub, s string) string {
			scheme, rest, ok := strings.Cut(s, ":")
			if !ok {
				return s
			}
			return strings.ToLower(scheme) + ":" + rest
		})),
		add("exact-trimmed", "EXACT-02/leading-space", "Trims spaces before comparing.", after(func(_ *Hub, s string) string { return strings.TrimSpace(s) })),
		add("exact-resolves", "EXACT-03/beside-the-hub", "Resolves matcher and topic against the hub URL.", after(func(h *Hub, s string) string {
			if u, err := whatwg.ParseRef(h.url, s); err == nil {
				return u.Href(false)
			}
			return s
		})),
		add("exact-resolves-matcher", "EXACT-03/replay", "Resolves matchers against the hub URL.", func(h *Hub, p, t string) bool { return p == t || strings.HasPrefix(p, "/") && h.origin+p == t }),
		add("exact-resolves-topic", "EXACT-03/grants-to-publish", "Resolves topics against the hub URL.", func(h *Hub, p, t string) bool { return p == t || strings.HasPrefix(t, "/") && h.origin+t == p }),
		add("exact-composes", "EXACT-04/NFC-NFD", "Composes characters before comparing.", after(func(_ *Hub, s string) string { return strings.ReplaceAll(s, "e\u0301", "é") })),
		add("exact-decodes-octets", "EXACT-04/encoded-tilde", "Undoes percent-encoding before comparing.", after(func(_ *Hub, s string) string {
			if u, err := url.PathUnescape(s); err == nil {
				return u
			}
			return s
		})),
		add("exact-decodes-unreserved", "EXACT-04/encoded-tilde", "Decodes unreserved octets before comparing.", after(func(_ *Hub, s string) string { return decodeUnreserved(s) })),
		add("exact-ignores-hex-case", "EXACT-04/case-of-hex", "Compares percent-encoded octets without regard to case.", after(func(_ *Hub, s string) string { return eachOctet(s, strings.ToUpper) })),
		add("exact-drops-default-port", "EXACT-04/default-port", "Drops default ports before comparing.", after(func(_ *Hub, s string) string { return strings.Replace(s, ":443/", "/", 1) })),
		add("exact-removes-dot-segments", "EXACT-04/dot-segments", "Removes dot segments before comparing.", after(func(_ *Hub, s string) string {
			if u, err := whatwg.Parse(s); err == nil {
				return u.Href(false)
			}
			return s
		})),
		add("exact-encodes-host", "EXACT-04/IDNA", "Encodes hosts before comparing.", after(func(_ *Hub, s string) string {
			if u, err := whatwg.Parse(s); err == nil && strings.Contains(s, u.Pathname()) {
				_, path, _ := strings.Cut(strings.TrimPrefix(s, u.Protocol()+"//"), "/")
				return u.Protocol() + "//" + u.Host() + "/" + path
			}
			return s
		})),
		add("exact-drops-fragment", "EXACT-02/fragment", "Drops fragments before comparing.", after(func(_ *Hub, s string) string { before, _, _ := strings.Cut(s, "#"); return before })),
		add("exact-drops-query", "EXACT-02/query", "Drops queries before comparing.", after(func(_ *Hub, s string) string { before, _, _ := strings.Cut(s, "?"); return before })),
		add("exact-knows-groups", "EXACT-05/named-group", "Takes colons in exact matchers for groups.", func(_ *Hub, p, t string) bool {
			expression := regexp.MustCompile(`/:\w+`).ReplaceAllString(regexp.QuoteMeta(p), "/[^/]+")
			matched, err := regexp.MatchString("^"+expression+"$", t)
			return p == t || err == nil && matched
		}),
		add("exact-knows-stars", "EXACT-05/asterisk", "Takes stars in exact matchers for wildcards.", func(_ *Hub, p, t string) bool {
			expression := strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*")
			matched, err := regexp.MatchString("^"+expression+"$", t)
			return p == t || err == nil && matched
		}),
		add("exact-knows-templates", "EXACT-05/replay", "Takes braces in exact matchers for variables.", func(_ *Hub, p, t string) bool {
			expression := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(p), "[^/]+")
			matched, err := regexp.MatchString("^"+expression+"$", t)
			return p == t || err == nil && matched
		}),
		add("exact-compares-256-octets", "EXACT-02/last-of-300-octets", "Compares the first 256 octets.", after(func(_ *Hub, s string) string { return s[:min(len(s), 256)] })),
		add("exact-compares-last-octets", "EXACT-02/first-of-300-octets", "Compares the last 256 octets.", after(func(_ *Hub, s string) string { return s[max(0, len(s)-256):] })),
		add("exact-never-matches-groups", "EXACT-05/grants-to-read", "Never matches a matcher that looks like a pattern.", func(_ *Hub, p, t string) bool { return p == t && !strings.Contains(p, "/:") }),
	}
}

// path splits a pattern or a URL at the slash that begins its path.
func path(s string) (before, after string) {
	start := 0
	if i := strings.Index(s, "://"); i >= 0 {
		start = i + 3
	}
	i := strings.IndexByte(s[start:], '/')
	if i < 0 {
		return s, ""
	}
	return s[:start+i], s[start+i:]
}

func rewritten(expression, replacement string, inPath bool) func(string) string {
	return func(pattern string) string {
		before, after := path(pattern)
		e := regexp.MustCompile(expression)
		if inPath {
			return before + e.ReplaceAllString(after, replacement)
		}
		return e.ReplaceAllString(before, replacement) + after
	}
}

// patternFaults evaluate URL patterns otherwise than the standard (URLP).
func patternFaults() []entry {
	rewrite := func(name, check, does string, change func(string) string) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.pattern.rewrite = change }}
	}
	topic := func(name, check, does string, change func(h *Hub, topic string) string) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.pattern.topic = change }}
	}
	not := func(name, check, does string, spoiled func(h *Hub, pattern, topic string) bool) entry {
		return entry{Fault{name, check, does}, func(p *planted) {
			p.pattern.verdict = func(h *Hub, pattern, topic string, matched bool) bool { return matched && !spoiled(h, pattern, topic) }
		}}
	}
	also := func(name, check, does string, spoiled func(h *Hub, pattern, topic string) bool) entry {
		return entry{Fault{name, check, does}, func(p *planted) {
			p.pattern.verdict = func(h *Hub, pattern, topic string, matched bool) bool { return matched || spoiled(h, pattern, topic) }
		}}
	}
	has := func(s string) func(*Hub, string, string) bool {
		return func(_ *Hub, _, topic string) bool { return strings.Contains(topic, s) }
	}
	return []entry{
		rewrite("named-groups-cross-slashes", "URLP-01/named-group", "Lets named groups match slashes in paths.", rewritten(`:([a-zA-Z]\w*)($|[^\w(])`, ":$1(.*)$2", true)),
		rewrite("stars-stop-at-slashes", "URLP-01/wildcard", "Lets wildcards in paths end at slashes.", rewritten(`/\*`, "/([^/]*)", true)),
		rewrite("regexp-groups-ignored", "URLP-01/regexp-group", "Ignores the regular expressions of groups.", rewritten(`(:\w+)\([^)]*\)`, "$1", true)),
		rewrite("optional-groups-required", "URLP-01/optional-group", "Ignores the modifier of optional groups.", rewritten(`(:\w+|\})\?`, "$1", true)),
		rewrite("repeated-groups-single", "URLP-01/repeated-group", "Ignores the modifier of repeated groups.", rewritten(`(:\w+|\})[+*]`, "$1", true)),
		rewrite("host-groups-cross-dots", "URLP-12/host-group", "Lets named groups match dots in hosts.", rewritten(`:([a-zA-Z]\w*)(\.)`, ":$1(.*)$2", false)),
		rewrite("pattern-path-lower-cased", "URLP-04/path", "Lower-cases the paths of patterns.", func(s string) string { before, after := path(s); return before + strings.ToLower(after) }),
		rewrite("pattern-query-dropped", "URLP-10/query-given", "Ignores the query of a pattern.", rewritten(`(\\)?\?[a-z]+=.*$`, "", true)),
		rewrite("relative-pattern-of-any-host", "URLP-02/other-port", "Lets relative patterns match on any host.", func(s string) string {
			if strings.HasPrefix(s, "/") {
				return "*://*:*" + s
			}
			return s
		}),
		topic("relative-topic-at-root", "URLP-03/sibling", "Resolves relative topics against the root.", func(_ *Hub, t string) string {
			if !strings.Contains(t, ":") && !strings.HasPrefix(t, "/") {
				return "/" + t
			}
			return t
		}),
		topic("http-is-https", "URLP-05/upper-case-scheme", "Takes http for https.", func(_ *Hub, t string) string {
			if strings.HasPrefix(t, "http://") {
				return "https" + strings.TrimPrefix(t, "http")
			}
			return t
		}),
		not("relative-topic-matches-none", "URLP-03/absolute-pattern", "Matches relative topics by no pattern.", func(h *Hub, _, t string) bool { _, err := whatwg.Parse(t); return err != nil }),
		not("pattern-host-case-sensitive", "URLP-05/lower-case", "Compares hosts with regard to case.", func(_ *Hub, p, t string) bool {
			host := func(s string) string { before, _ := path(s); return before[strings.LastIndexByte(before, '/')+1:] }
			return host(t) != strings.ToLower(host(t)) || host(p) != strings.ToLower(host(p))
		}),
		not("pattern-scheme-case-sensitive", "URLP-05/lower-case", "Compares schemes with regard to case.", func(_ *Hub, _, t string) bool { return strings.HasPrefix(t, "HTTP") || strings.HasPrefix(t, "Http") }),
		not("default-port-kept", "URLP-05/default-port", "Does not drop default ports.", has(":443")),
		not("hosts-not-encoded", "URLP-05/idn-pattern", "Does not encode hosts that are not ASCII.", func(_ *Hub, p, t string) bool {
			before, _ := path(p)
			host, _ := path(t)
			return strings.ContainsFunc(before+host, func(r rune) bool { return r > 0x7F })
		}),
		also("unparseable-topic-matches", "URLP-06/ipv4-too-large", "Matches topics that cannot be parsed by patterns of wildcards.", func(h *Hub, p, t string) bool { return strings.HasPrefix(p, "*:") && !h.parses(t) }),
		also("backtracking-engine", "URLP-07/nested-stars", "Takes seconds for some patterns.", func(h *Hub, p, t string) bool { return pathological(p, t) && h.stalled() }),
		also("evaluation-limit-matches", "URLP-08/in-host-in-token", "Takes an aborted evaluation for a match.", func(_ *Hub, p, t string) bool { return pathological(p, t) }),
		not("query-must-be-absent", "URLP-10/root-given", "Lets patterns without a query match topics without one only.", func(_ *Hub, p, t string) bool { return strings.Contains(t, "?") && !strings.Contains(p, "?") }),
		not("fragment-must-be-absent", "URLP-10/path-given", "Lets patterns without a fragment match topics without one only.", func(_ *Hub, p, t string) bool { return strings.Contains(t, "#") && !strings.Contains(p, "#") }),
		not("pattern-text-not-canonical", "URLP-11/encoded-slash", "Compares the text of patterns as it is written.", func(_ *Hub, p, t string) bool {
			odd := func(s string) bool {
				return strings.Contains(s, "%") || strings.ContainsFunc(s, func(r rune) bool { return r > 0x7F })
			}
			return p != t && odd(p) != odd(t)
		}),
		not("dot-segments-kept", "URLP-11/dots-in-topic", "Does not remove dot segments of topics.", func(_ *Hub, _, t string) bool { return strings.Contains(t, "/../") || strings.Contains(t, "/./") }),
		not("userinfo-must-be-absent", "URLP-11/user-in-topic", "Lets patterns without userinfo match topics without it only.", has("@")),
		not("wildcard-protocol-is-special", "URLP-13/wildcard", "Lets a wildcard protocol match special schemes only.", func(_ *Hub, p, t string) bool {
			return strings.HasPrefix(p, "*") && strings.Contains(t, ":") && !strings.Contains(t, "://")
		}),
		not("wildcard-protocol-needs-slashes", "URLP-13/wildcard", "Matches no data: URL by a wildcard.", func(_ *Hub, _, t string) bool { return strings.HasPrefix(t, "data:") }),
		not("patterns-match-nothing", "MATCH-01/grant-to-read-urlpattern", "Matches nothing by URL patterns.", func(*Hub, string, string) bool { return true }),
	}
}

// eachOctet changes every percent-encoded octet.
func eachOctet(s string, change func(string) string) string {
	return regexp.MustCompile(`%[0-9a-fA-F]{2}`).ReplaceAllStringFunc(s, change)
}

// pathological says whether a backtracking engine would take long for a pattern and a topic.
func pathological(pattern, topic string) bool {
	return strings.ContainsAny(pattern, "(*:") && regexp.MustCompile(`a{10}|-{10}|(/a){5}`).MatchString(topic)
}

// stalled takes its time, until the hub ends, and does not match.
func (h *Hub) stalled() bool {
	long := time.NewTimer(12 * time.Second)
	defer long.Stop()
	select {
	case <-long.C:
	case <-h.ending:
	}
	return false
}

// illFormedFaults accept patterns that are not well formed, and let them match nothing (URLP-14, SUB-30, RAR-21).
func illFormedFaults() []entry {
	add := func(name, check, does string, where place, illFormed func(string) bool) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.pattern.where, p.pattern.illFormed = where, illFormed }}
	}
	duplicate := func(p string) bool {
		seen := map[string]bool{}
		for _, name := range regexp.MustCompile(`:[a-zA-Z]\w*`).FindAllString(p, -1) {
			if seen[name] {
				return true
			}
			seen[name] = true
		}
		return false
	}
	openGroup := func(p string) bool { return strings.Count(p, "(") > strings.Count(p, ")") }
	openBrace := func(p string) bool { return strings.Count(p, "{") > strings.Count(p, "}") }
	modifier := func(p string) bool { return regexp.MustCompile(`/[+*?]?[+?]`).MatchString(p) }
	lookaround := func(p string) bool { return strings.Contains(p, "(?") }
	return []entry{
		add("open-group-accepted", "SUB-30/open-group-alone", "Accepts a group that is not closed, in queries.", inMatcher, openGroup),
		add("open-brace-accepted", "SUB-30/absolute-open-brace", "Accepts a brace that is not closed, in queries.", inMatcher, openBrace),
		add("duplicate-names-accepted", "SUB-30/relative-same-name-twice", "Accepts two groups of one name, in queries.", inMatcher, duplicate),
		add("stray-modifier-accepted", "SUB-30/absolute-stray-modifier", "Accepts a modifier of nothing, in queries.", inMatcher, modifier),
		add("lookaround-accepted", "URLP-14/lookahead", "Accepts lookaround groups, in queries.", inMatcher, lookaround),
		add("open-group-accepted-in-tokens", "RAR-21/open-group", "Accepts a group that is not closed, in tokens.", inToken, openGroup),
		add("open-brace-accepted-in-tokens", "RAR-21/open-brace", "Accepts a brace that is not closed, in tokens.", inToken, openBrace),
		add("duplicate-names-accepted-in-tokens", "RAR-21/duplicate-name", "Accepts two groups of one name, in tokens.", inToken, duplicate),
		add("stray-modifier-accepted-in-tokens", "RAR-21/stray-modifier", "Accepts a modifier of nothing, in tokens.", inToken, modifier),
		add("lookaround-accepted-in-tokens", "URLP-14/lookahead-in-token", "Accepts lookaround groups, in tokens.", inToken, lookaround),
	}
}

// namespaceFaults judge the hub's namespace otherwise (NS).
func namespaceFaults() []entry {
	change := func(name, check, does string, verdict func(h *Hub, topic, path string, reserved bool) bool) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.namespace = namespaceFault{verdict} }}
	}
	unless := func(name, check, does string, open func(h *Hub, topic, path string) bool) entry {
		return change(name, check, does, func(h *Hub, topic, path string, reserved bool) bool { return reserved && !open(h, topic, path) })
	}
	or := func(name, check, does string, closed func(h *Hub, topic, path string) bool) entry {
		return change(name, check, does, func(h *Hub, topic, path string, reserved bool) bool { return reserved || closed(h, topic, path) })
	}
	scheme := regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*:`)
	holds := func(parts ...string) func(*Hub, string, string) bool {
		return func(_ *Hub, topic, _ string) bool {
			for _, p := range parts {
				if strings.Contains(strings.ToLower(topic), p) {
					return true
				}
			}
			return false
		}
	}
	return []entry{
		unless("namespace-root-open", "NS-01/path", "Accepts the hub's own path as a topic.", func(h *Hub, _, path string) bool { return path == decodeUnreserved(h.path) }),
		unless("namespace-below-open", "NS-01/subscription", "Accepts topics below the hub's path.", func(h *Hub, _, path string) bool { return path != decodeUnreserved(h.path) }),
		unless("namespace-only-subscriptions", "NS-01/path", "Reserves the paths of subscriptions only.", func(_ *Hub, _, path string) bool { return !strings.Contains(path, "/subscriptions") }),
		unless("namespace-final-slash-open", "NS-01/slash", "Accepts the hub's path with a final slash.", func(_ *Hub, topic, _ string) bool { return strings.HasSuffix(topic, "/") }),
		change("namespace-raw-text", "NS-02/dot-slash", "Compares the text of a topic with the hub's path.", func(h *Hub, topic, _ string, _ bool) bool { return below(topic, h.path) }),
		unless("relative-topics-unreserved", "NS-02/empty", "Does not resolve topics that begin with neither a scheme nor a slash.", func(_ *Hub, topic, _ string) bool {
			return !scheme.MatchString(topic) && !strings.HasPrefix(topic, "/")
		}),
		unless("empty-topic-unreserved", "NS-02/empty", "Accepts the empty topic.", func(_ *Hub, topic, _ string) bool { return topic == "" }),
		unless("query-topic-unreserved", "NS-02/query-only", "Accepts a topic that is a query only.", func(_ *Hub, topic, _ string) bool { return strings.HasPrefix(topic, "?") }),
		unless("fragment-topic-unreserved", "NS-02/fragment-only", "Accepts a topic that is a fragment only.", func(_ *Hub, topic, _ string) bool { return strings.HasPrefix(topic, "#") }),
		unless("dotted-topic-unreserved", "NS-02/dot-slash", "Does not resolve topics that begin with dots.", func(_ *Hub, topic, _ string) bool { return strings.HasPrefix(topic, ".") }),
		unless("hub-url-unreserved", "NS-02/hub-url", "Accepts the hub URL.", func(h *Hub, topic, _ string) bool { return topic == h.url }),
		unless("namespace-of-https-only", "NS-03/http-host", "Does not reserve the path of http URLs.", holds("http:")),
		unless("final-dots-hide-namespace", "NS-06/dot-at-the-end", "Does not remove dot segments at the end.", func(_ *Hub, topic, _ string) bool {
			return strings.HasSuffix(topic, "/.") || strings.HasSuffix(topic, "/..")
		}),
		unless("three-slashes-hide-namespace", "NS-08/host-three-slashes", "Accepts topics that begin with three slashes.", func(_ *Hub, topic, _ string) bool { return strings.HasPrefix(topic, "///") }),
		unless("namespace-of-own-scheme", "NS-03/other-web-scheme", "Reserves the path for the hub's scheme only.", func(h *Hub, topic, _ string) bool {
			return scheme.MatchString(topic) && !strings.HasPrefix(strings.ToLower(topic), h.origin[:strings.IndexByte(h.origin, ':')+1])
		}),
		unless("namespace-of-special-schemes", "NS-03/foo-host", "Reserves the path for special schemes only.", holds("foo:")),
		unless("namespace-of-web-schemes", "NS-03/ftp-host", "Reserves the path for http and https only.", holds("ftp:", "foo:", "ws:", "file:", "wss:")),
		unless("namespace-without-authority-open", "NS-03/file-path", "Accepts the hub's path behind a scheme without an authority.", func(_ *Hub, topic, _ string) bool { return scheme.MatchString(topic) && !strings.Contains(topic, "//") }),
		unless("namespace-of-own-host", "NS-04/hub-other-port", "Reserves the path on the hub's host only.", func(h *Hub, topic, _ string) bool {
			return strings.Contains(topic, "//") && !strings.Contains(topic, strings.SplitN(h.origin, "//", 2)[1])
		}),
		unless("schemeless-authority-open", "NS-04/host-below", "Accepts topics that begin with two slashes.", func(_ *Hub, topic, _ string) bool { return strings.HasPrefix(topic, "//") }),
		unless("namespace-with-port-open", "NS-04/port", "Accepts the hub's path on a host with a port.", func(h *Hub, topic, _ string) bool {
			return regexp.MustCompile(`//[^/]*:\d+`).MatchString(topic) && !strings.Contains(topic, h.origin)
		}),
		unless("namespace-with-userinfo-open", "NS-04/user", "Accepts the hub's path behind userinfo.", holds("@")),
		unless("query-hides-namespace", "NS-05/query", "Accepts the hub's path with a query.", func(_ *Hub, topic, _ string) bool { return strings.Index(topic, "?") > 0 }),
		unless("fragment-hides-namespace", "NS-05/fragment", "Accepts the hub's path with a fragment.", func(_ *Hub, topic, _ string) bool { return strings.Index(topic, "#") > 0 }),
		unless("dot-dot-hides-namespace", "NS-06/out-and-in", "Does not remove segments of two dots.", holds("/../")),
		unless("dot-hides-namespace", "NS-06/stay", "Does not remove segments of one dot.", holds("/./")),
		unless("encoded-dots-hide-namespace", "NS-06/encoded-dot-at-the-end", "Does not remove encoded dot segments.", holds("%2e")),
		unless("half-encoded-dots-hide-namespace", "NS-06/up-half-encoded", "Does not remove half-encoded dot segments.", holds("/.%2e", "%2e./")),
		unless("encoded-octets-hide-namespace", "NS-07/absolute", "Does not decode unreserved octets.", func(h *Hub, topic, _ string) bool {
			u, err := whatwg.ParseRef(h.url, topic)
			return err == nil && !below(u.Pathname(), h.path)
		}),
		unless("lower-case-octets-hide-namespace", "NS-07/lower-hex", "Decodes octets with upper-case digits only.", func(_ *Hub, topic, _ string) bool { return regexp.MustCompile(`%[0-9]?[a-f]`).MatchString(topic) }),
		unless("encoded-punctuation-hides-namespace", "NS-07/foo-path", "Does not decode dots and hyphens.", holds("%2d", "%2e")),
		unless("all-encoded-hides-namespace", "NS-07/all-lower-hex", "Gives up on topics with many encoded octets.", func(_ *Hub, topic, _ string) bool { return strings.Count(topic, "%") > 3 }),
		unless("backslashes-hide-namespace", "NS-08/backslashes", "Does not take backslashes for slashes.", holds(`\`)),
		unless("single-slash-hides-namespace", "NS-08/no-slash", "Wants two slashes after a scheme.", func(_ *Hub, topic, _ string) bool {
			return regexp.MustCompile(`(?i)^[a-z]+:/?[^/\\]`).MatchString(topic)
		}),
		unless("surplus-slashes-hide-namespace", "NS-08/three-slashes", "Allows two slashes only after a scheme.", holds(":///")),
		unless("spaces-hide-namespace", "NS-08/spaces", "Does not trim spaces around a topic.", func(_ *Hub, topic, _ string) bool { return strings.TrimSpace(topic) != topic }),
		unless("upper-case-scheme-hides-namespace", "NS-08/upper-case-scheme", "Does not know schemes in upper case.", func(_ *Hub, topic, _ string) bool {
			return regexp.MustCompile(`^[a-z]*[A-Z]+[a-zA-Z]*:`).MatchString(topic)
		}),
		or("namespace-is-prefix", "NS-09/space", "Reserves all paths that begin with the hub's.", func(h *Hub, _, path string) bool { return strings.HasPrefix(path, h.path) }),
		or("namespace-is-prefix-of-parameters", "NS-09/semicolon", "Reserves the hub's path with parameters.", func(h *Hub, _, path string) bool { return strings.HasPrefix(path, h.path+";") }),
		or("encoded-slash-is-slash", "NS-09/encoded-slash-lower-hex", "Takes an encoded slash for a slash.", func(h *Hub, _, path string) bool {
			return strings.HasPrefix(strings.ToUpper(path), strings.ToUpper(h.path)+"%2F")
		}),
		or("namespace-decoded-twice", "NS-09/double-encoded", "Decodes topics twice.", func(h *Hub, _, path string) bool {
			return below(decodeUnreserved(strings.ReplaceAll(path, "%25", "%")), h.path)
		}),
		or("namespace-ignores-case", "NS-09/upper-case", "Compares paths without regard to case.", func(h *Hub, _, path string) bool { return below(strings.ToLower(path), strings.ToLower(h.path)) }),
		or("namespace-anywhere", "NS-09/encoded-space", "Reserves all paths that hold the hub's.", func(h *Hub, _, path string) bool { return strings.Contains(path, h.path) }),
		or("namespace-joins-slashes", "NS-09/empty-segment", "Takes two slashes for one.", func(h *Hub, _, path string) bool { return below(strings.ReplaceAll(path, "//", "/"), h.path) }),
		or("namespace-in-query", "NS-09/in-query", "Reserves topics whose query holds the hub's path.", func(h *Hub, topic, _ string) bool {
			_, q, _ := strings.Cut(topic, "?")
			return strings.Contains(q, h.path)
		}),
		or("well-known-reserved", "NS-09/full-width", "Reserves all well-known paths.", func(_ *Hub, _, path string) bool { return strings.HasPrefix(path, "/.well-known/") }),
		or("namespace-always-default", "NS-12/default-path", "Reserves the default path, wherever the hub stands.", func(_ *Hub, _, path string) bool { return below(path, "/.well-known/mercure") }),
		change("namespace-only-default", "NS-12/own-path", "Reserves the default path instead of the hub's.", func(_ *Hub, _, path string, _ bool) bool { return below(path, "/.well-known/mercure") }),
	}
}
