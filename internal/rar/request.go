package rar

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// maxRequestActions is the longest list of actions in one detail of a request.
const maxRequestActions = 8

// RequestLimits are the rules for the authorization_details parameter of a request to the authorization server.
type RequestLimits struct {
	// Bytes is the longest parameter.
	Bytes int
	// Details is the largest number of details.
	Details int
	// Topics is the largest number of topic matchers in all details together.
	Topics int
	// MatchBytes is the longest matcher string.
	MatchBytes int
	// PayloadBytes is the longest payload. 0 allows none, which is right for clients that speak for themselves:
	// everybody who may see a subscription sees its payload.
	PayloadBytes int
	// Depth is the deepest nesting of the parameter.
	Depth int
	// RegexpGroups allows URL Patterns with regular expressions.
	RegexpGroups bool
	// Resource is the only value that a locations member may hold. The member itself goes no further.
	Resource string
	// Compiler compiles the matchers against the hub URL of the resource. It is required.
	Compiler *topic.Compiler
}

// DefaultRequestLimits returns the rules for clients: 8 KiB, 20 details, 50 topic matchers of 512 bytes each, no
// payload, depth 8, no regular expressions.
func DefaultRequestLimits(c *topic.Compiler, resource string) RequestLimits {
	return RequestLimits{
		Bytes: 8 << 10, Details: 20, Topics: 50, MatchBytes: 512, Depth: 8, Resource: resource, Compiler: c,
	}
}

// ParseRequest reads the authorization_details parameter of a request to the authorization server. Where [Parse] ignores, it
// refuses: other types, unknown members, unknown actions (RFC 9396 §5). The error is an *[Error], which the caller
// reports as invalid_authorization_details.
func ParseRequest(raw []byte, l RequestLimits) ([]Detail, error) {
	if len(raw) > l.Bytes {
		return nil, &Error{Index: -1, Rule: ruleTooLong}
	}
	items, err := splitArray(raw, l.Details, l.Depth)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, &Error{Index: -1, Rule: "must not be empty"}
	}
	ds := make([]Detail, len(items))
	left := l.Topics
	for i, item := range items {
		d, bad := l.readDetail(item, left)
		if bad != nil {
			bad.Index = i
			return nil, bad
		}
		ds[i] = d
		left -= len(d.Topics)
	}
	return ds, nil
}

// readDetail reads one detail with at most topics topic matchers.
func (l RequestLimits) readDetail(item jsontext.Value, topics int) (Detail, *Error) {
	var wire wireDetail
	if json.Unmarshal(item, &wire, json.RejectUnknownMembers(true)) != nil {
		return Detail{}, &Error{Rule: ruleObject + " and with known members only"}
	}
	if typ, _ := unquote(wire.Type); typ != DetailType {
		return Detail{}, &Error{Path: "/type", Rule: "must be a supported type"}
	}
	if bad := l.checkLocations(wire.Locations); bad != nil {
		return Detail{}, bad
	}
	if bad := checkMatcherMembers(wire.Topics); bad != nil {
		return Detail{}, bad
	}
	d, bad := readDetail(item, Limits{TopicsPerDetail: topics, PatternBytes: l.MatchBytes})
	if bad != nil {
		return Detail{}, bad
	}
	if bad := l.check(d); bad != nil {
		return Detail{}, bad
	}
	return d, nil
}

// checkLocations allows an absent member or an array of the resource.
func (l RequestLimits) checkLocations(value jsontext.Value) *Error {
	if value == nil {
		return nil
	}
	var locations []string
	bad := &Error{Path: "/locations", Rule: "must name the requested resource alone"}
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &locations) != nil {
		return bad
	}
	for _, location := range locations {
		if l.Resource == "" || location != l.Resource {
			return bad
		}
	}
	return nil
}

// checkMatcherMembers refuses unknown members of topic matchers. What else is wrong with them is found later.
func checkMatcherMembers(value jsontext.Value) *Error {
	var items []jsontext.Value
	if value.Kind() == jsontext.KindBeginArray && json.Unmarshal(value, &items) != nil {
		return &Error{Path: "/topics", Rule: "must be a non-empty array of objects"}
	}
	for i, item := range items {
		var wire wireMatcher
		if item.Kind() == jsontext.KindBeginObject && json.Unmarshal(item, &wire, json.RejectUnknownMembers(true)) != nil {
			return &Error{Path: matcherPath(i, ""), Rule: ruleObject + " and with known members only"}
		}
	}
	return nil
}

// check applies the rules that go beyond the syntax of a detail.
func (l RequestLimits) check(d Detail) *Error {
	if len(d.Actions) > maxRequestActions {
		return &Error{Path: "/actions", Rule: "has too many members"}
	}
	for i, a := range d.Actions {
		if bit(a) == 0 || slices.Contains(d.Actions[:i], a) {
			return &Error{Path: "/actions", Rule: "must hold known actions, each once"}
		}
	}
	for i, tm := range d.Topics {
		if bad := l.checkMatcher(i, tm); bad != nil {
			return bad
		}
	}
	if d.Payload != nil && (!d.ActionSet().Has(Subscribe) || len(d.Payload) > l.PayloadBytes) {
		return &Error{Path: "/payload", Rule: "is not allowed here or too long"}
	}
	return nil
}

func (l RequestLimits) checkMatcher(i int, tm TopicMatcher) *Error {
	if tm.Match == "" || topic.Check(tm.Match) != nil {
		return &Error{Path: matcherPath(i, "match"), Rule: "must not be empty nor hold control or format characters"}
	}
	m, err := l.Compiler.Compile(tm.MatchType, tm.Match)
	if err != nil {
		return compileError(0, i, err)
	}
	if m.HasRegexpGroups() && !l.RegexpGroups {
		return &Error{Path: matcherPath(i, "match"), Rule: "must not hold regular expressions"}
	}
	return nil
}
