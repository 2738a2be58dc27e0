package mercure

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Update is a publication. Values from ParseUpdate satisfy the protocol's rules, save
// the reserved namespace, which the hub checks.
type Update struct {
	// Topics holds the canonical topic first, then its alternates.
	Topics []string
	// Data is the payload; it may be empty and may have any line ends.
	Data string
	// Private keeps the update from readers without a grant.
	Private bool
	// ID is the publisher's event id; empty means that the hub makes one.
	ID string
	// Type is the event type; empty means the default one.
	Type string
	// Retry is the reconnection time in milliseconds, ASCII digits; empty means none.
	Retry string
}

// Canonical returns the update's first topic, or "" when there is none.
func (u *Update) Canonical() string {
	if len(u.Topics) == 0 {
		return ""
	}
	return u.Topics[0]
}

// ParseUpdate reads a publication from the pairs of its body. Unknown fields are
// ignored (PUB-29); of a repeated data, id, type or retry the first counts; an
// empty id, type or retry counts as absent; private counts by its presence
// (PUB-15).
//
// The error is a *FieldError. A broken rule is reported before an exceeded limit.
func ParseUpdate(pairs []Pair, l Limits) (*Update, error) {
	p := updateParser{limits: l, update: &Update{}}
	for i := range pairs {
		p.pair(&pairs[i])
	}
	u := p.update
	if !p.hasTopic {
		p.fail(FieldTopic, "is required", "")
	}
	p.checkTopics()
	p.checkLine(FieldID, u.ID, l.IDBytes)
	p.checkLine(FieldType, u.Type, l.TypeBytes)
	p.checkReserved()
	switch {
	case p.broken != nil:
		return nil, p.broken
	case p.large != nil:
		return nil, p.large
	default:
		return u, nil
	}
}

// updateParser collects an update and the first violation of either kind.
type updateParser struct {
	limits   Limits
	update   *Update
	hasTopic bool
	seen     [4]bool // data, id, type, retry
	broken   *FieldError
	large    *FieldError
}

func (p *updateParser) pair(f *Pair) {
	if !utf8.ValidString(f.Name) {
		p.fail(f.Name, "has a name that is not valid UTF-8", "")
	}
	if !utf8.ValidString(f.Value) {
		p.fail(f.Name, "is not valid UTF-8", "")
	}
	switch f.Name {
	case FieldTopic:
		p.hasTopic = true
		p.update.Topics = append(p.update.Topics, f.Value)
	case FieldPrivate:
		p.update.Private = true
	case FieldData:
		p.first(0, &p.update.Data, f.Value)
	case FieldID:
		p.first(1, &p.update.ID, f.Value)
	case FieldType:
		p.first(2, &p.update.Type, f.Value)
	case FieldRetry:
		p.first(3, &p.update.Retry, f.Value)
	}
}

// first keeps the first value of the field with the given slot.
func (p *updateParser) first(slot int, dst *string, value string) {
	if !p.seen[slot] {
		p.seen[slot] = true
		*dst = value
	}
}

func (p *updateParser) fail(field, rule, hint string) {
	if p.broken == nil {
		p.broken = &FieldError{Field: field, Rule: rule, Hint: hint}
	}
}

func (p *updateParser) limit(field string, n, most int, unit string) {
	if exceeds(n, most) && p.large == nil {
		p.large = &FieldError{Field: field, Rule: "exceeds the limit of " + strconv.Itoa(most) + " " + unit, TooLarge: true}
	}
}

func (p *updateParser) checkTopics() {
	p.limit(FieldTopic, len(p.update.Topics), p.limits.Topics, "values")
	for _, t := range p.update.Topics {
		p.limit(FieldTopic, len(t), p.limits.TopicBytes, "bytes")
		if rule := characterRule(t); rule != "" {
			p.fail(FieldTopic, rule, "")
		}
		if t == topic.Wildcard {
			p.fail(FieldTopic, `must not be "*", which is the wildcard of matchers`, "")
		}
	}
}

// checkLine checks a field that becomes one line of the event.
func (p *updateParser) checkLine(field, value string, most int) {
	p.limit(field, len(value), most, "bytes")
	if rule := characterRule(value); rule != "" {
		p.fail(field, rule, "")
	}
}

func (p *updateParser) checkReserved() {
	u := p.update
	if strings.HasPrefix(u.ID, "#") {
		p.fail(FieldID, `must not start with "#"`, "")
	}
	if u.ID == Earliest {
		p.fail(FieldID, "must not be the reserved word "+Earliest, "")
	}
	if u.Type == ReservedEventType {
		p.fail(FieldType, "must not be "+ReservedEventType+", which is the type of the hub's own events", "")
	}
	p.limit(FieldRetry, len(u.Retry), p.limits.RetryBytes, "bytes")
	if strings.Trim(u.Retry, "0123456789") != "" {
		p.fail(FieldRetry, "must consist of ASCII digits only", "it is the reconnection time in milliseconds")
	}
}

// characterRule returns the character rule that s breaks, or "" (TOPIC-01 to
// TOPIC-06; the same characters are forbidden in ids, types and matchers).
func characterRule(s string) string {
	err := topic.Check(s)
	if err == nil {
		return ""
	}
	// The text names the offset, which helps with characters that nobody can see, and never the value.
	return "is not acceptable: " + strings.TrimPrefix(err.Error(), "topic: ")
}
