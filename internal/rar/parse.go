package rar

import (
	"bytes"
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Limits bounds the details of a token (LIM-09).
type Limits struct {
	// Details is the largest number of details, of whatever type.
	Details int
	// TopicsPerDetail is the largest number of topic matchers in one detail.
	TopicsPerDetail int
	// PatternBytes is the longest matcher string.
	PatternBytes int
	// Depth is the deepest nesting of the claim, the array included.
	Depth int
}

// DefaultLimits returns the limits of a hub: 128 details, 256 topic matchers in each, matchers of 4096 bytes, depth 32.
func DefaultLimits() Limits {
	return Limits{Details: 128, TopicsPerDetail: 256, PatternBytes: 4096, Depth: 32}
}

// Parse reads the authorization_details claim of a token. Details of other types are skipped, whatever their content
// (RAR-02), as are unknown members and unknown actions of Mercure details, though the latter are kept (RAR-05, RAR-23).
// Everything else that is wrong refuses the whole claim (RAR-12). An empty raw is an absent claim and has no details
// (RAR-03). The result shares no memory with raw. The error is an *[Error].
func Parse(raw []byte, l Limits) ([]Detail, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	items, err := splitArray(raw, l.Details, l.Depth)
	if err != nil {
		return nil, err
	}
	var ds []Detail
	for i, item := range items {
		typ, err := detailType(item)
		if err != nil {
			return nil, &Error{Index: i, Rule: ruleObject}
		}
		if typ != DetailType {
			continue
		}
		d, bad := readDetail(item, l)
		if bad != nil {
			bad.Index = i
			return nil, bad
		}
		ds = append(ds, d)
	}
	return ds, nil
}

// splitArray returns the members of the JSON array raw, at most maxItems. Duplicate member names are left for later,
// because details of other types may hold what they like.
func splitArray(raw []byte, maxItems, maxDepth int) ([]jsontext.Value, error) {
	if depth(raw) > maxDepth {
		return nil, &Error{Index: -1, Rule: "is nested too deeply"}
	}
	var items []jsontext.Value
	if err := json.Unmarshal(raw, &items, jsontext.AllowDuplicateNames(true)); err != nil || items == nil {
		return nil, &Error{Index: -1, Rule: "must be a JSON array of objects"}
	}
	if len(items) > maxItems {
		return nil, &Error{Index: -1, Rule: "has too many members"}
	}
	for i, item := range items {
		if item.Kind() != jsontext.KindBeginObject {
			return nil, &Error{Index: i, Rule: ruleObject}
		}
	}
	return items, nil
}

// depth returns the deepest nesting of raw, without checking its syntax.
func depth(raw []byte) int {
	deepest, open := 0, 0
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			open++
			deepest = max(deepest, open)
		case c == ']' || c == '}':
			open--
		}
	}
	return deepest
}

// detailType returns the type of a detail, empty if it has none that is a string. Two members of that name are an error,
// even in a detail of another type: its readers could disagree on which one holds.
func detailType(item jsontext.Value) (string, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(item), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return "", &Error{Rule: ruleObject}
	}
	typ, seen := "", false
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return "", &Error{Rule: ruleObject}
		}
		isType := name.String() == "type"
		value, err := dec.ReadValue()
		if err != nil || isType && seen {
			return "", &Error{Rule: ruleObject}
		}
		if isType {
			seen = true
			typ, _ = unquote(value)
		}
	}
	return typ, nil
}

// unquote returns the text of a JSON string and whether value is one.
func unquote(value jsontext.Value) (string, bool) {
	if value.Kind() != jsontext.KindString {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

// wireDetail is a Mercure detail before its members are looked at. Its decoder compares names byte for byte and refuses
// duplicates.
type wireDetail struct {
	Type      jsontext.Value `json:"type"`
	Actions   jsontext.Value `json:"actions"`
	Topics    jsontext.Value `json:"topics"`
	Payload   jsontext.Value `json:"payload"`
	Locations jsontext.Value `json:"locations"` // RFC 9396 §2.2; no meaning for a hub
}

// wireMatcher is a topic matcher before its members are looked at.
type wireMatcher struct {
	Match     jsontext.Value `json:"match"`
	MatchType jsontext.Value `json:"match_type"`
}

// readDetail reads a Mercure detail. The Index of the error is left to the caller.
func readDetail(item jsontext.Value, l Limits) (Detail, *Error) {
	var wire wireDetail
	if err := json.Unmarshal(item, &wire); err != nil {
		return Detail{}, &Error{Rule: ruleObject}
	}
	var d Detail
	var bad *Error
	if d.Actions, bad = readActions(wire.Actions); bad != nil {
		return Detail{}, bad
	}
	if d.Topics, bad = readTopics(wire.Topics, l); bad != nil {
		return Detail{}, bad
	}
	if d.Payload, bad = readPayload(wire.Payload); bad != nil {
		return Detail{}, bad
	}
	return d, nil
}

// readActions reads a non-empty array of strings (RAR-04, RAR-07).
func readActions(value jsontext.Value) ([]Action, *Error) {
	var names []jsontext.Value
	bad := &Error{Path: "/actions", Rule: "must be a non-empty array of strings"}
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &names) != nil || len(names) == 0 {
		return nil, bad
	}
	actions := make([]Action, len(names))
	for i, name := range names {
		text, ok := unquote(name)
		if !ok {
			return nil, bad
		}
		actions[i] = Action(text)
	}
	return actions, nil
}

// readTopics reads a non-empty array of topic matchers (RAR-08).
func readTopics(value jsontext.Value, l Limits) ([]TopicMatcher, *Error) {
	var items []jsontext.Value
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &items) != nil || len(items) == 0 {
		return nil, &Error{Path: "/topics", Rule: "must be a non-empty array of objects"}
	}
	if len(items) > l.TopicsPerDetail {
		return nil, &Error{Path: "/topics", Rule: "has too many members"}
	}
	topics := make([]TopicMatcher, len(items))
	for i, item := range items {
		var wire wireMatcher
		if item.Kind() != jsontext.KindBeginObject || json.Unmarshal(item, &wire) != nil {
			return nil, &Error{Path: matcherPath(i, ""), Rule: ruleObject}
		}
		m, bad := readMatcher(wire, l, i)
		if bad != nil {
			return nil, bad
		}
		topics[i] = m
	}
	return topics, nil
}

// readMatcher reads one topic matcher (RAR-14 to RAR-18).
func readMatcher(wire wireMatcher, l Limits, i int) (TopicMatcher, *Error) {
	match, ok := unquote(wire.Match)
	if !ok {
		return TopicMatcher{}, &Error{Path: matcherPath(i, "match"), Rule: ruleString}
	}
	if len(match) > l.PatternBytes {
		return TopicMatcher{}, &Error{Path: matcherPath(i, "match"), Rule: ruleTooLong}
	}
	if wire.MatchType == nil {
		return TopicMatcher{Match: match, MatchType: topic.Exact}, nil
	}
	name, ok := unquote(wire.MatchType)
	typ, err := topic.ParseType(name)
	if !ok || err != nil {
		return TopicMatcher{}, &Error{Path: matcherPath(i, "match_type"), Rule: ruleTypeName}
	}
	return TopicMatcher{Match: match, MatchType: typ}, nil
}

// readPayload reads an optional object (RAR-09). It comes back without insignificant white space.
func readPayload(value jsontext.Value) (stdjson.RawMessage, *Error) {
	if value == nil {
		return nil, nil
	}
	if value.Kind() != jsontext.KindBeginObject || value.Compact() != nil {
		return nil, &Error{Path: "/payload", Rule: "must be a JSON object"}
	}
	return stdjson.RawMessage(value), nil
}
