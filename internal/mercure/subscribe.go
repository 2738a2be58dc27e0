package mercure

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// MatcherParam is one matcher of a subscription request. The pattern has been
// checked for characters and length; whether it means anything to its type is
// for the topic compiler to say.
type MatcherParam struct {
	Type    topic.Type
	Pattern string
}

// SubscribeParams are the parameters of a subscription request.
type SubscribeParams struct {
	// Matchers holds at least one matcher, the query's before the body's.
	Matchers []MatcherParam
	// Cursor is the event id after which the stream starts. It may be any string,
	// even an empty one: an id that no event bears is an unknown one.
	Cursor string
	// HasCursor says whether the request had a cursor, whatever its value (REC-19).
	HasCursor bool
	// IgnoredCursorNames lists the names of parameters that look like cursors of
	// other or older clients and are none (REC-23), each once, for the log.
	IgnoredCursorNames []string
}

// ParseSubscribe reads the union of the query's and the body's pairs (SUB-06).
// header is the value of the Last-Event-ID request header, if there was one; it
// beats last_event_id of the query, which beats that of the body (SUB-09,
// SUB-10). Parameters outside the reserved namespace are ignored (SUB-25).
//
// The error is a *FieldError whose TooLarge is never set: exceeding a limit of a
// subscription is a 400 (LIM-03).
func ParseSubscribe(query, body []Pair, header string, hasHeader bool, l Limits) (*SubscribeParams, error) {
	s := &SubscribeParams{Cursor: header, HasCursor: hasHeader}
	legacy := false
	for _, pairs := range [...][]Pair{query, body} {
		for i := range pairs {
			if err := s.pair(&pairs[i], l); err != nil {
				return nil, err
			}
			legacy = legacy || pairs[i].Name == FieldTopic
		}
	}
	if len(s.Matchers) == 0 {
		return nil, noMatcher(legacy)
	}
	return s, nil
}

// pair takes in one parameter.
func (s *SubscribeParams) pair(p *Pair, l Limits) error {
	switch {
	case p.Name == ParamLastEventID:
		if !s.HasCursor {
			s.Cursor, s.HasCursor = p.Value, true
		}
		return nil
	case !inMatchNamespace(p.Name):
		s.noteCursorLike(p.Name)
		return nil
	}
	typ, err := matcherType(p.Name)
	if err != nil {
		return err
	}
	if rule := characterRule(p.Value); rule != "" {
		return &FieldError{Field: p.Name, Rule: rule}
	}
	if exceeds(len(p.Value), l.PatternBytes) {
		return &FieldError{Field: p.Name, Rule: "exceeds the limit of " + strconv.Itoa(l.PatternBytes) + " bytes"}
	}
	if exceeds(len(s.Matchers)+1, l.Matchers) {
		return &FieldError{
			Field: ParamMatch, Rule: "exceeds the limit of " + strconv.Itoa(l.Matchers) + " matchers",
			Hint: "one match_urlpattern can select many topics",
		}
	}
	s.Matchers = append(s.Matchers, MatcherParam{Type: typ, Pattern: p.Value})
	return nil
}

// noteCursorLike remembers a name that other software uses for the cursor.
func (s *SubscribeParams) noteCursorLike(name string) {
	const most = 8 // spellings worth a log line
	switch {
	case len(name) > len("last-event-id"), foldName(name) != "lasteventid",
		len(s.IgnoredCursorNames) == most, slices.Contains(s.IgnoredCursorNames, name):
	default:
		s.IgnoredCursorNames = append(s.IgnoredCursorNames, name)
	}
}

// inMatchNamespace tells whether name belongs to the reserved namespace: whether
// it starts with "match", ASCII letters compared without case (SUB-23, SUB-24).
func inMatchNamespace(name string) bool {
	if len(name) < len(ParamMatch) {
		return false
	}
	for i := range len(ParamMatch) {
		if name[i]|0x20 != ParamMatch[i] {
			return false
		}
	}
	return true
}

// matcherType resolves the name of a parameter in the reserved namespace.
func matcherType(name string) (topic.Type, error) {
	if name == ParamMatch {
		return topic.Exact, nil
	}
	if suffix, ok := strings.CutPrefix(name, ParamMatchPrefix); ok {
		if typ, err := topic.ParseType(suffix); err == nil {
			return typ, nil
		}
	}
	return "", &FieldError{Field: name, Rule: "is not a matcher parameter of this hub", Hint: matcherHint(name)}
}

// matcherHint names the parameter that a misspelt one probably stands for.
func matcherHint(name string) string {
	const names = "use match, match_exact or match_urlpattern"
	folded := foldName(name)
	for _, known := range [...]string{ParamMatch, ParamMatchPrefix + string(topic.Exact), ParamMatchPrefix + string(topic.URLPattern)} {
		if folded == foldName(known) {
			return "did you mean " + known + "?"
		}
	}
	switch {
	case strings.Contains(folded, "pattern") || strings.Contains(folded, "url") || strings.Contains(folded, "template"):
		return "did you mean " + ParamMatchPrefix + string(topic.URLPattern) + "?"
	case folded == "matchtopic" || folded == "matches" || strings.HasPrefix(name, "match["):
		return "did you mean match? It may be repeated"
	default:
		return names + "; every name that starts with match is reserved"
	}
}

// noMatcher is the answer to a request without any matcher.
func noMatcher(legacy bool) error {
	e := &FieldError{
		Field: ParamMatch, Rule: "is missing: a subscription needs at least one matcher",
		Hint: "add match=TOPIC or match_urlpattern=PATTERN; match=* selects every topic",
	}
	if legacy {
		e.Hint = "topic was the parameter of older protocol versions; use match=TOPIC, or match_urlpattern=PATTERN for patterns"
	}
	return e
}

// foldName returns name in lower case without "-", "_" and "[]", to compare
// spellings of one idea.
func foldName(name string) string {
	return strings.NewReplacer("-", "", "_", "", "[", "", "]", "").Replace(strings.ToLower(name))
}
