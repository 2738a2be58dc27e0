package rar

import (
	"encoding/json"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// DetailType is the type of Mercure's authorization details, compared byte for byte (RAR-01).
const DetailType = "https://mercure.rocks/authorization-detail"

// Action is the name of an action as it appears on the wire. Names other than the constants are kept and grant nothing.
type Action string

// The actions of the protocol.
const (
	Publish   Action = "publish"
	Subscribe Action = "subscribe"
)

// ActionSet is a set of known actions. The zero value is empty.
type ActionSet uint8 //nolint:recvcheck // Add is the one method that changes the set

// The members of an ActionSet.
const (
	publishBit ActionSet = 1 << iota
	subscribeBit
)

// Actions returns the set of the known actions among as.
func Actions(as ...Action) ActionSet {
	var s ActionSet
	for _, a := range as {
		s.Add(a)
	}
	return s
}

func bit(a Action) ActionSet {
	switch a {
	case Publish:
		return publishBit
	case Subscribe:
		return subscribeBit
	}
	return 0
}

// Has reports whether a is in the set. Unknown actions never are.
func (s ActionSet) Has(a Action) bool { return s&bit(a) != 0 }

// Add puts a into the set. Unknown actions are ignored (RAR-05).
func (s *ActionSet) Add(a Action) { *s |= bit(a) }

// Contains reports whether every action of other is in s.
func (s ActionSet) Contains(other ActionSet) bool { return other&^s == 0 }

// Slice returns the actions of the set in canonical order: publish, subscribe.
func (s ActionSet) Slice() []Action {
	as := make([]Action, 0, 2)
	for _, a := range [...]Action{Publish, Subscribe} {
		if s.Has(a) {
			as = append(as, a)
		}
	}
	return as
}

// String returns the actions of the set, separated by a space.
func (s ActionSet) String() string {
	as := s.Slice()
	names := make([]string, len(as))
	for i, a := range as {
		names[i] = string(a)
	}
	return strings.Join(names, " ")
}

// TopicMatcher is a topic matcher as it appears in a detail. An absent match_type is [topic.Exact] (RAR-16).
type TopicMatcher struct {
	Match     string
	MatchType topic.Type
}

// Detail is one Mercure authorization detail.
type Detail struct {
	// Actions holds the names as given, unknown ones included.
	Actions []Action
	Topics  []TopicMatcher
	// Payload is a JSON object, or nil.
	Payload json.RawMessage
}

// ActionSet returns the known actions of the detail.
func (d Detail) ActionSet() ActionSet { return Actions(d.Actions...) }
