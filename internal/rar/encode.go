package rar

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Encode returns the canonical form of ds: no white space; members in the order type, actions, topics, payload; known
// actions first, each action once; no match_type for exact matchers and the wildcard. Text that is not UTF-8, which no
// parsed detail holds, is replaced. Payloads keep their bytes, without insignificant white space.
func Encode(ds []Detail) json.RawMessage {
	b := []byte{'['}
	for i, d := range ds {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendDetail(b, d)
	}
	return append(b, ']')
}

func appendDetail(b []byte, d Detail) []byte {
	b = append(b, `{"type":`...)
	b = appendString(b, DetailType)
	b = append(b, `,"actions":[`...)
	for i, a := range canonicalActions(d.Actions) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(a))
	}
	b = append(b, `],"topics":[`...)
	for i, tm := range d.Topics {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"match":`...)
		b = appendString(b, tm.Match)
		if tm.MatchType != topic.Exact && tm.MatchType != "" && tm.Match != topic.Wildcard {
			b = append(b, `,"match_type":`...)
			b = appendString(b, string(tm.MatchType))
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if d.Payload != nil {
		b = append(b, `,"payload":`...)
		b = appendPayload(b, d.Payload)
	}
	return append(b, '}')
}

// canonicalActions returns actions with the known ones first and each once.
func canonicalActions(actions []Action) []Action {
	out := Actions(actions...).Slice()
	seen := map[Action]bool{}
	for _, a := range actions {
		if bit(a) == 0 && !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error reports replaced bytes
	return b
}

func appendPayload(b []byte, payload json.RawMessage) []byte {
	value := jsontext.Value(payload).Clone()
	if value.Compact() != nil {
		return append(b, "{}"...) // not JSON: a payload that no parser made
	}
	return append(b, value...)
}
