package topic

import "errors"

// Wildcard is the matcher that selects every topic, whatever its type (Mercure, "Topic Matchers"; MATCH-05, MATCH-06).
const Wildcard = "*"

// Errors of this package. None of them carries text that comes from a topic or a pattern, so all are safe to show.
var (
	// ErrNotUTF8 reports a string that is not valid UTF-8 (TOPIC-01).
	ErrNotUTF8 = errors.New("topic: not valid UTF-8")
	// ErrForbiddenCharacter reports a control or format character (TOPIC-02 to TOPIC-05).
	ErrForbiddenCharacter = errors.New("topic: forbidden character")
	// ErrUnsupportedType reports a matcher type that is not supported (MATCH-04, MATCH-09).
	ErrUnsupportedType = errors.New("topic: unsupported matcher type")
	// ErrPattern reports a URL Pattern that is ill formed or too expensive to evaluate (URLP-07, URLP-14).
	ErrPattern = errors.New("topic: invalid URL Pattern")
	// ErrPatternTooLong reports a matcher longer than the limit (LIM-02, LIM-09).
	ErrPatternTooLong = errors.New("topic: matcher too long")
	// ErrHubURL reports a hub URL that is not an absolute http or https URL.
	ErrHubURL = errors.New("topic: the hub URL must be an absolute http or https URL without userinfo, query and fragment")
)

// Type is the name of a matcher type as it appears on the wire.
type Type string

// The supported matcher types (Mercure, "Topic Matchers"; MATCH-01).
const (
	// Exact selects the topic whose bytes are those of the matcher.
	Exact Type = "exact"
	// URLPattern selects the topics that a URL Pattern matches.
	URLPattern Type = "urlpattern"
)

// ParseType returns the matcher type named s. Names are case-sensitive (MATCH-09). The error is [ErrUnsupportedType].
func ParseType(s string) (Type, error) {
	switch t := Type(s); t {
	case Exact, URLPattern:
		return t, nil
	default:
		return "", ErrUnsupportedType
	}
}
