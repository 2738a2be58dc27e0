package rar

import (
	"encoding/json"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Grants is what the details of one token allow. A nil *Grants grants nothing. It is immutable and safe for concurrent
// use.
type Grants struct {
	actions   ActionSet
	publish   grantSet
	subscribe grantSet
	payloads  []payloadRule
}

// grantSet holds the distinct matchers granted for one action.
type grantSet struct {
	matchers []*topic.Matcher // all, in claim order
	wildcard bool
	exact    map[string]struct{}
	patterns []*topic.Matcher
	seen     map[topic.Key]struct{} // while compiling
}

// payloadRule is one detail that grants subscribe.
type payloadRule struct {
	matchers []*topic.Matcher
	payload  json.RawMessage
}

// Compile turns details into grants, with the hub URL of c as the base of relative patterns (RAR-24). Equal matchers are
// kept once. The error is an *[Error]: an unsupported match_type (RAR-18), an ill-formed pattern (RAR-21) or one that is
// too long for c.
func Compile(ds []Detail, c *topic.Compiler) (*Grants, error) {
	g := &Grants{}
	compiled := map[topic.Key]*topic.Matcher{}
	for i, d := range ds {
		set := d.ActionSet()
		rule := payloadRule{payload: d.Payload}
		for j, tm := range d.Topics {
			// Every matcher is compiled, whatever the actions, because a bad one refuses the token (RAR-25).
			m, err := c.Compile(tm.MatchType, tm.Match)
			if err != nil {
				return nil, compileError(i, j, err)
			}
			if old, ok := compiled[m.Key()]; ok {
				m = old
			} else {
				compiled[m.Key()] = m
			}
			if set.Has(Publish) {
				g.publish.add(m)
			}
			if set.Has(Subscribe) {
				g.subscribe.add(m)
				rule.matchers = append(rule.matchers, m)
			}
		}
		g.actions |= set
		if set.Has(Subscribe) {
			g.payloads = append(g.payloads, rule)
		}
	}
	g.publish.seen, g.subscribe.seen = nil, nil
	return g, nil
}

func (s *grantSet) add(m *topic.Matcher) {
	if _, ok := s.seen[m.Key()]; ok {
		return
	}
	if s.seen == nil {
		s.seen = map[topic.Key]struct{}{}
		s.exact = map[string]struct{}{}
	}
	s.seen[m.Key()] = struct{}{}
	s.matchers = append(s.matchers, m)
	switch {
	case m.Wildcard():
		s.wildcard = true
	case m.Type() == topic.Exact:
		s.exact[m.Pattern()] = struct{}{}
	default:
		s.patterns = append(s.patterns, m)
	}
}

func (s *grantSet) allows(t *topic.Topic) bool {
	if s.wildcard {
		return true
	}
	if _, ok := s.exact[t.Raw()]; ok {
		return true
	}
	for _, m := range s.patterns {
		if m.Match(t) {
			return true
		}
	}
	return false
}

// set returns the grants for a, nil if there are none.
func (g *Grants) set(a Action) *grantSet {
	switch {
	case g == nil:
		return nil
	case a == Publish:
		return &g.publish
	case a == Subscribe:
		return &g.subscribe
	}
	return nil
}

// Actions returns the actions that any detail names, whether or not it is of use.
func (g *Grants) Actions() ActionSet {
	if g == nil {
		return 0
	}
	return g.actions
}

// Matchers returns the distinct matchers granted for a, in claim order. The slice must not be modified.
func (g *Grants) Matchers(a Action) []*topic.Matcher {
	if s := g.set(a); s != nil {
		return s.matchers
	}
	return nil
}

// Allows reports whether a detail grants both the action a and the topic t (RAR-10, RAR-11).
func (g *Grants) Allows(a Action, t *topic.Topic) bool {
	s := g.set(a)
	return s != nil && s.allows(t)
}

// AllowsAll reports whether a is granted on every one of ts and there is at least one (PRIV-02).
func (g *Grants) AllowsAll(a Action, ts []*topic.Topic) bool {
	for _, t := range ts {
		if !g.Allows(a, t) {
			return false
		}
	}
	return len(ts) > 0
}

// AllowsAny reports whether a is granted on at least one of ts (PRIV-05).
func (g *Grants) AllowsAny(a Action, ts []*topic.Topic) bool {
	for _, t := range ts {
		if g.Allows(a, t) {
			return true
		}
	}
	return false
}

// Payload returns the payload for a subscription with the matcher m: that of the first detail, in claim order, which grants
// subscribe and one of whose matchers selects the string of m as if it were a topic (PAY-01 to PAY-07). It reports false
// when there is none, or when that detail has no payload (PAY-08, PAY-11). The bytes must not be modified.
func (g *Grants) Payload(m *topic.Matcher, c *topic.Compiler) (json.RawMessage, bool) {
	if g == nil {
		return nil, false
	}
	t := c.Topic(m.Pattern())
	for _, rule := range g.payloads {
		for _, granted := range rule.matchers {
			if granted.Match(t) {
				return rule.payload, rule.payload != nil
			}
		}
	}
	return nil, false
}
