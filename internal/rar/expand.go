package rar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// maxVariableBytes is the longest value of a template variable.
const maxVariableBytes = 256

// maxLabelBytes is the longest label of a hostname (RFC 1035 §2.3.4).
const maxLabelBytes = 63

// Errors of Expand.
var (
	// ErrTemplate reports a placeholder that is malformed, unknown, or in a place where its value could change what the
	// matcher means.
	ErrTemplate = errors.New("rar: invalid placeholder in template")
	// ErrVariable reports a variable without a value that could safely be put in.
	ErrVariable = errors.New("rar: no usable value for a template variable")
)

// Variables holds the values of template variables by name: "sub", "client_id", "user.<attribute>" ("user.name" is the
// login name) and "claims.<name>".
type Variables map[string]string

// Expand replaces every {{name}} in the matchers of template, and in the strings of its payloads, by the value of that
// variable.
//
// In a matcher the value is percent-encoded except for unreserved characters, so that it can hold no syntax of URLs or
// URL Patterns; publishers encode the same way. A placeholder may stand in one path segment, in the value of a query
// parameter, or in a label of the hostname that is not the last one (there the value must match [a-z0-9-]{1,63}); in
// exact matchers that are no URLs, anywhere. It must be surrounded by literal text alone, and between two of them must
// stand a character that percent-encoding would hide. Values that are empty, "." or "..", longer than 256 bytes or hold
// characters that topics may not hold are refused. No expansion is "*".
//
// The errors wrap [ErrTemplate] or [ErrVariable] and name no value. The result shares the payloads without placeholders
// with template.
func Expand(template []Detail, v Variables) ([]Detail, error) {
	out := make([]Detail, len(template))
	for i, d := range template {
		e := Detail{Actions: d.Actions, Payload: d.Payload, Topics: make([]TopicMatcher, len(d.Topics))}
		for j, tm := range d.Topics {
			match, err := expandMatcher(tm, v)
			if err != nil {
				return nil, fmt.Errorf("expand matcher %d of detail %d: %w", j, i, err)
			}
			e.Topics[j] = TopicMatcher{Match: match, MatchType: tm.MatchType}
		}
		if bytes.Contains(d.Payload, []byte("{{")) || bytes.ContainsRune(d.Payload, '\\') {
			var err error
			if e.Payload, err = expandPayload(d.Payload, v); err != nil {
				return nil, fmt.Errorf("expand payload of detail %d: %w", i, err)
			}
		}
		out[i] = e
	}
	return out, nil
}

// value returns the value of name if it is fit for use.
func (v Variables) value(name string) (string, error) {
	value := v[name]
	if value == "" || value == "." || value == ".." || len(value) > maxVariableBytes || topic.Check(value) != nil {
		return "", fmt.Errorf("%w: %s", ErrVariable, name)
	}
	return value, nil
}

func expandMatcher(tm TopicMatcher, v Variables) (string, error) {
	t, err := cutTemplate(tm.Match)
	if err != nil || len(t.names) == 0 {
		return tm.Match, err
	}
	if strings.ContainsRune(tm.Match, placeholderMark) {
		return "", ErrTemplate
	}
	skeleton := strings.Join(t.literals, string(placeholderMark))
	ls := lexExact(skeleton)
	if tm.MatchType == topic.URLPattern {
		if ls, err = lexPattern(skeleton); err != nil {
			return "", err
		}
	}
	regions, err := place(ls, tm.MatchType == topic.URLPattern)
	if err != nil {
		return "", err
	}
	if len(regions) != len(t.names) {
		return "", ErrTemplate
	}
	var b strings.Builder
	for i, name := range t.names {
		value, err := v.value(name)
		if err != nil {
			return "", err
		}
		if regions[i] == hostRegion && !isHostLabel(value) {
			return "", fmt.Errorf("%w: %s", ErrVariable, name)
		}
		b.WriteString(t.literals[i])
		b.WriteString(topic.PercentEncode(value))
	}
	b.WriteString(t.literals[len(t.names)])
	if b.String() == topic.Wildcard {
		return "", ErrVariable
	}
	return b.String(), nil
}

func isHostLabel(s string) bool {
	return s != "" && len(s) <= maxLabelBytes && !strings.ContainsFunc(s, func(r rune) bool { return !labelRune(r) })
}

func unreservedRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		r == '-' || r == '.' || r == '_' || r == '~'
}

// expandPayload replaces placeholders in the strings of a JSON object. The names of its members can not hold any.
func expandPayload(payload json.RawMessage, v Variables) (json.RawMessage, error) {
	if !jsontext.Value(payload).IsValid() {
		return nil, ErrTemplate
	}
	dec := jsontext.NewDecoder(bytes.NewReader(payload))
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out)
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return json.RawMessage(bytes.TrimSpace(out.Bytes())), nil
		}
		if err != nil {
			return nil, ErrTemplate
		}
		if tok.Kind() == jsontext.KindString {
			kind, length := dec.StackIndex(dec.StackDepth())
			isName := kind == jsontext.KindBeginObject && length%2 == 1
			text := tok.String()
			if isName && strings.Contains(text, "{{") {
				return nil, ErrTemplate
			}
			if text, err = expandText(text, v); err != nil {
				return nil, err
			}
			tok = jsontext.String(text)
		}
		if err := enc.WriteToken(tok); err != nil {
			return nil, ErrTemplate
		}
	}
}

// expandText replaces placeholders by the values as they are.
func expandText(s string, v Variables) (string, error) {
	t, err := cutTemplate(s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, name := range t.names {
		value, err := v.value(name)
		if err != nil {
			return "", err
		}
		b.WriteString(t.literals[i])
		b.WriteString(value)
	}
	b.WriteString(t.literals[len(t.names)])
	return b.String(), nil
}
