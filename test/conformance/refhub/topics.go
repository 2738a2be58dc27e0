package refhub

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// place is where a constrained text stands. Topics, matchers, ids and types share one constraint (TOPIC-01 to TOPIC-05,
// SUB-26 to SUB-29, PUB-21, PUB-26).
type place string

const (
	inTopic   place = "topic"
	inMatcher place = "matcher"
	inToken   place = "matcher in a token"
	inID      place = "id"
	inType    place = "type"
)

// checkText says whether a text is UTF-8 without controls and format characters.
func (h *Hub) checkText(where place, s string) error {
	octets := s
	if f := h.datum().octets; f.where == where {
		octets = strings.ReplaceAll(s, f.accepted, "")
		if f.accepted == "" {
			octets = ""
		}
	}
	if !utf8.ValidString(octets) {
		return malformed("A " + string(where) + " is not UTF-8.")
	}
	for _, r := range s {
		if h.forbidden(where, r) {
			return malformed("A " + string(where) + " holds a control or format character.")
		}
	}
	return nil
}

// forbidden says whether a character is C0, DEL, C1 or of the general category Cf.
func (h *Hub) forbidden(where place, r rune) bool {
	if f := h.datum().character; f.where == where && f.low <= r && r <= f.high {
		return f.refused
	}
	return r < 0x20 || 0x7F <= r && r <= 0x9F || unicode.Is(unicode.Cf, r)
}

// wildcard is the matcher that matches every topic, whatever its type (MATCH-05 to MATCH-07).
const wildcard = "*"

// The matcher types (MATCH-01).
const (
	exact       = "exact"
	urlPatterns = "urlpattern"
)

// matcher is a topic matcher whose pattern is well formed for its type.
type matcher struct{ kind, pattern string }

// newMatcher makes a matcher, or says why there is none.
func (h *Hub) newMatcher(where place, kind, pattern string) (matcher, error) {
	m := matcher{kind, pattern}
	if len(pattern) > maxPattern && !h.fault("pattern-length-unlimited") && !h.faultIf("token-pattern-length-unlimited", where == inToken) {
		status := http.StatusBadRequest
		if h.fault("matcher-limit-is-too-large") {
			status = http.StatusRequestEntityTooLarge
		}
		return m, &refusal{status: status, detail: "A matcher is too long."}
	}
	if err := h.checkText(where, pattern); err != nil {
		return m, err
	}
	if kind == urlPatterns && !h.isWildcard(where, m) {
		if err := h.compile(where, pattern); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (h *Hub) isWildcard(where place, m matcher) bool {
	switch {
	case h.fault("wildcard-unknown"):
		return false
	case h.fault("exact-wildcard-is-literal") && m.kind == exact && where == inMatcher,
		h.fault("urlpattern-wildcard-is-pattern") && m.kind == urlPatterns && where == inMatcher,
		h.fault("token-urlpattern-wildcard-is-pattern") && m.kind == urlPatterns && where == inToken,
		h.fault("token-wildcard-unknown") && where == inToken:
		return false
	case h.fault("double-star-is-wildcard") && m.pattern == "**":
		return true
	}
	return m.pattern == wildcard
}

// matches says whether a matcher matches a topic.
func (h *Hub) matches(where place, m matcher, topic string) bool {
	switch {
	case h.isWildcard(where, m):
		return !h.fault("wildcard-needs-url") || h.parses(topic)
	case h.fault("trailing-star-is-prefix") && m.kind == exact && strings.HasSuffix(m.pattern, "*"):
		return strings.HasPrefix(topic, strings.TrimSuffix(m.pattern, "*"))
	case m.kind == exact:
		return h.exactly(m.pattern, topic)
	default:
		return h.patternMatches(m.pattern, topic)
	}
}

// exactly compares byte for byte (EXACT-02 to EXACT-05).
func (h *Hub) exactly(pattern, topic string) bool {
	if f := h.datum().exact; f.same != nil {
		return f.same(h, pattern, topic)
	}
	return pattern == topic
}

// selection tells which matchers match one of the topics of an update, and remembers the answers of URL patterns.
type selection struct {
	h      *Hub
	topics []string
	known  map[judged]bool
}

type judged struct {
	where place
	matcher
}

func (h *Hub) selectionOf(topics []string) *selection {
	return &selection{h: h, topics: topics, known: map[judged]bool{}}
}

func (s *selection) matchedBy(where place, m matcher) bool {
	if m.kind == exact && m.pattern != wildcard {
		return s.judge(where, m)
	}
	matched, ok := s.known[judged{where, m}]
	if !ok {
		matched = s.judge(where, m)
		s.known[judged{where, m}] = matched
	}
	return matched
}

func (s *selection) judge(where place, m matcher) bool {
	for _, topic := range s.topics {
		if s.h.matches(where, m, topic) {
			return true
		}
	}
	return false
}
