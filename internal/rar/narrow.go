package rar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// narrowSteps is the budget of all proofs of one Narrow. What is not proved when it is used up counts as excess.
const narrowSteps = 1 << 20

// Errors of Narrow.
var (
	// ErrExcess reports a request beyond the ceiling under [Deny].
	ErrExcess = errors.New("rar: the request exceeds what may be granted")
	// ErrNothingLeft reports that nothing of the request may be granted.
	ErrNothingLeft = errors.New("rar: nothing of the request may be granted")
)

// Excess says what becomes of a wish that is not within the ceiling.
type Excess uint8

// The treatments of excess.
const (
	// Deny refuses the whole request.
	Deny Excess = iota
	// Trim grants those entries of the ceiling that the wish contains, so that "*" yields all of them.
	Trim
)

// Narrow returns the details that requested and ceiling have in common. A pair of action and matcher is kept when an
// entry of the ceiling with the same action is proved to contain it; onExcess says what becomes of the others. As
// actions and topics of a detail form a cross product, a detail whose pairs fare differently is split. The order of the
// request is kept, because the first matching detail decides the payload (PAY-02).
//
// The payload of a pair that grants subscribe is that of the first entry of the ceiling that contains it; only if that
// has none, the one requested.
//
// The errors are [ErrExcess], [ErrNothingLeft] and, for a matcher in requested that does not compile, an *[Error]. A
// matcher in ceiling that does not compile is a mistake of the configuration: the error wraps one of package topic.
func Narrow(requested, ceiling []Detail, c *topic.Compiler, onExcess Excess) ([]Detail, error) {
	n := &narrower{prover: topic.NewProver(narrowSteps), onExcess: onExcess}
	if err := n.setCeiling(ceiling, c); err != nil {
		return nil, err
	}
	var out []Detail
	for i, d := range requested {
		var rows []row
		for j, tm := range d.Topics {
			m, err := c.Compile(tm.MatchType, tm.Match)
			if err != nil {
				return nil, compileError(i, j, err)
			}
			kept, err := n.narrow(d, wish{tm, m})
			if err != nil {
				return nil, err
			}
			rows = append(rows, kept...)
		}
		out = append(out, regroup(rows)...)
	}
	if len(out) == 0 {
		return nil, ErrNothingLeft
	}
	return out, nil
}

// wish is a topic matcher in both its forms.
type wish struct {
	TopicMatcher
	matcher *topic.Matcher
}

// entry is one topic matcher of the ceiling.
type entry struct {
	wish
	actions []Action
	payload json.RawMessage
}

// row is a topic matcher of the result with what is granted on it.
type row struct {
	topic   TopicMatcher
	key     topic.Key
	actions []Action
	payload json.RawMessage
}

type narrower struct {
	entries  []entry
	prover   *topic.Prover
	onExcess Excess
}

func (n *narrower) setCeiling(ceiling []Detail, c *topic.Compiler) error {
	for _, d := range ceiling {
		for _, tm := range d.Topics {
			m, err := c.Compile(tm.MatchType, tm.Match)
			if err != nil {
				return fmt.Errorf("compile ceiling: %w", err)
			}
			n.entries = append(n.entries, entry{wish: wish{tm, m}, actions: d.Actions, payload: d.Payload})
		}
	}
	return nil
}

// narrow returns what the ceiling leaves of one topic matcher of d.
func (n *narrower) narrow(d Detail, w wish) ([]row, error) {
	var rows []row
	for _, a := range d.Actions {
		container := n.container(a, w)
		switch {
		case container != nil:
			rows = addRow(rows, w, a, payloadOf(a, container.payload, d.Payload))
		case n.onExcess != Trim:
			return nil, ErrExcess
		default:
			for i := range n.entries {
				e := &n.entries[i]
				if slices.Contains(e.actions, a) && n.prover.Contains(w.matcher, e.matcher) {
					rows = addRow(rows, e.wish, a, payloadOf(a, e.payload, d.Payload))
				}
			}
		}
	}
	return rows, nil
}

// container returns the first entry of the ceiling that is proved to contain w for a.
func (n *narrower) container(a Action, w wish) *entry {
	for i := range n.entries {
		e := &n.entries[i]
		if slices.Contains(e.actions, a) && n.prover.Contains(e.matcher, w.matcher) {
			return e
		}
	}
	return nil
}

// payloadOf returns the payload of a pair; payloads belong to subscriptions (PAY-07).
func payloadOf(a Action, ceiling, requested json.RawMessage) json.RawMessage {
	switch {
	case a != Subscribe:
		return nil
	case ceiling != nil:
		return ceiling
	default:
		return requested
	}
}

// addRow adds the grant of a on w to rows, in which a matcher occurs once; the first payload stands.
func addRow(rows []row, w wish, a Action, payload json.RawMessage) []row {
	key := w.matcher.Key()
	i := slices.IndexFunc(rows, func(r row) bool { return r.key == key })
	if i < 0 {
		return append(rows, row{topic: w.TopicMatcher, key: key, actions: []Action{a}, payload: payload})
	}
	if !slices.Contains(rows[i].actions, a) {
		rows[i].actions = append(rows[i].actions, a)
		if a == Subscribe {
			rows[i].payload = payload
		}
	}
	return rows
}

// regroup joins the rows of one requested detail into as few details as possible. Rows with the same actions and payload
// join across others only when all rows have the same payload; else the order of the details would change which
// payload comes first.
func regroup(rows []row) []Detail {
	if len(rows) == 0 {
		return nil
	}
	onePayload := !slices.ContainsFunc(rows, func(r row) bool { return !bytes.Equal(r.payload, rows[0].payload) })
	var out []Detail
	for _, r := range rows {
		from := max(len(out)-1, 0)
		if onePayload {
			from = 0
		}
		i := slices.IndexFunc(out[from:], func(d Detail) bool {
			return slices.Equal(d.Actions, r.actions) && bytes.Equal(d.Payload, r.payload)
		})
		if i < 0 {
			out = append(out, Detail{Actions: r.actions, Topics: []TopicMatcher{r.topic}, Payload: r.payload})
			continue
		}
		d := &out[from+i]
		if !slices.Contains(d.Topics, r.topic) {
			d.Topics = append(d.Topics, r.topic)
		}
	}
	return out
}
