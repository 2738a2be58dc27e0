package refhub

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// detailType is the type of the protocol's authorization details, compared byte by byte (RAR-01).
const detailType = "https://mercure.rocks/authorization-detail"

// The actions. Others may be in a token, and grant nothing (RAR-05, RAR-06).
const (
	actionPublish   = "publish"
	actionSubscribe = "subscribe"
)

// detail is a Mercure authorization detail: its actions on its topics (RAR-10).
type detail struct {
	actions []string
	topics  []matcher
	payload json.RawMessage // nil: none
}

// parseDetails reads the claim. A token whose claim has one bad Mercure detail is refused (RAR-12).
func (h *Hub) parseDetails(claims object) ([]detail, bool) {
	raw, present := claims["authorization_details"]
	if !present {
		return nil, !h.fault("details-required")
	}
	var entries []json.RawMessage
	if h.fault("claim-object-accepted") && len(raw) > 0 && raw[0] == '{' {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	if s, ok := text(raw); ok && h.fault("claim-in-string-accepted") {
		raw = json.RawMessage(s)
	}
	if string(raw) == "null" || json.Unmarshal(raw, &entries) != nil {
		return nil, false
	}
	if h.fault("empty-details-refused") && len(entries) == 0 {
		return nil, false
	}
	var details []detail
	count := 0
	for i, entry := range entries {
		var members object
		if json.Unmarshal(entry, &members) != nil || members == nil {
			return nil, false
		}
		kind, ok := text(members["type"])
		switch {
		case ok && kind == detailType || h.datum().detailType.same != nil && h.datum().detailType.same(kind, detailType):
		case h.fault("foreign-details-parsed"):
		case h.fault("foreign-details-refused"):
			return nil, false
		default:
			continue // of another type: none of our business (RAR-02)
		}
		if count++; count > h.detailLimit() {
			return nil, false
		}
		if h.fault("details-after-first-unread") && i > 0 && len(details) > 0 {
			continue
		}
		d, ok := h.parseDetail(members)
		if ok {
			details = append(details, d)
		} else if !h.fault("bad-details-skipped") && !h.faultIf("bad-details-after-good-skipped", len(details) > 0) {
			return nil, false
		}
	}
	return h.pooled(details), true
}

func (h *Hub) detailLimit() int {
	switch {
	case h.fault("details-unlimited"):
		return maxBody
	case h.fault("detail-limit-of-5"):
		return 5
	}
	return maxDetails
}

// pooled is where a fault mixes the actions and the topics of all details.
func (h *Hub) pooled(details []detail) []detail {
	if !h.fault("actions-and-topics-pooled") {
		return details
	}
	var all detail
	for _, d := range details {
		all.actions = append(all.actions, d.actions...)
		all.topics = append(all.topics, d.topics...)
	}
	return []detail{all}
}

// parseDetail reads one Mercure detail (RAR-04 to RAR-09).
func (h *Hub) parseDetail(members object) (d detail, ok bool) {
	if h.fault("members-case-insensitive") {
		members = folded(members)
	}
	if h.fault("extra-members-refused") {
		for name := range members {
			if !slices.Contains([]string{"type", "actions", "topics", "payload"}, name) {
				return d, false
			}
		}
	}
	if d.actions, ok = h.parseActions(members["actions"]); !ok {
		return d, false
	}
	if h.fault("bad-details-for-other-actions-unseen") && !slices.Contains(d.actions, actionSubscribe) {
		d.topics, _ = h.parseTopics(members["topics"])
		return d, true
	}
	if d.topics, ok = h.parseTopics(members["topics"]); !ok {
		return d, false
	}
	if raw, present := members["payload"]; present {
		if h.fault("payload-refused") {
			return d, false
		}
		var payload object
		if (json.Unmarshal(raw, &payload) != nil || payload == nil) && !h.fault("payload-of-any-type") {
			return d, false
		}
		d.payload = h.keptPayload(raw)
	}
	return d, true
}

// keptPayload is where faults change a payload.
func (h *Hub) keptPayload(raw json.RawMessage) json.RawMessage {
	var members map[string]any
	switch {
	case h.fault("payload-numbers-rounded"):
		if json.Unmarshal(raw, &members) == nil {
			for name, value := range members {
				if number, ok := value.(float64); ok {
					members[name] = int64(number)
				}
			}
			return encode(members)
		}
	case h.fault("payload-nulls-dropped"):
		if json.Unmarshal(raw, &members) == nil {
			for name, value := range members {
				if value == nil {
					delete(members, name)
				}
			}
			return encode(members)
		}
	case h.fault("payload-empty-dropped"):
		if string(raw) == "{}" {
			return nil
		}
	}
	return raw
}

func (h *Hub) parseActions(raw json.RawMessage) ([]string, bool) {
	if one, ok := text(raw); ok && h.fault("actions-string-accepted") {
		return []string{one}, true
	}
	switch {
	case h.fault("actions-optional") && raw == nil,
		h.fault("actions-null-accepted") && string(raw) == "null",
		h.fault("actions-object-ignored") && len(raw) > 0 && raw[0] == '{',
		h.fault("actions-empty-accepted") && isEmptyArray(raw):
		return nil, true
	}
	var entries []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &entries) != nil || len(entries) == 0 {
		return nil, false
	}
	var actions []string
	for _, entry := range entries {
		action, ok := text(entry)
		switch {
		case !ok && (h.fault("actions-of-other-shape-ignored") || h.fault("null-action-ignored") && string(entry) == "null"):
			continue
		case !ok,
			h.fault("unknown-actions-refused") && action != actionPublish && action != actionSubscribe:
			return nil, false
		case h.fault("actions-case-insensitive"):
			action = strings.ToLower(action)
		}
		actions = append(actions, action)
	}
	if h.fault("details-without-known-action-refused") && !slices.Contains(actions, actionPublish) && !slices.Contains(actions, actionSubscribe) {
		return nil, false
	}
	return actions, true
}

func isEmptyArray(raw json.RawMessage) bool {
	var entries []json.RawMessage
	return bytes.HasPrefix(raw, []byte("[")) && json.Unmarshal(raw, &entries) == nil && len(entries) == 0
}

func (h *Hub) parseTopics(raw json.RawMessage) ([]matcher, bool) {
	everything := []matcher{{exact, wildcard}}
	if one, ok := text(raw); ok && h.fault("topics-string-accepted") {
		return []matcher{{exact, one}}, true
	}
	switch {
	case h.fault("topics-optional") && raw == nil, h.fault("topics-null-is-everything") && string(raw) == "null":
		return everything, true
	case h.fault("topics-empty-accepted") && isEmptyArray(raw):
		return nil, true
	}
	var entries []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &entries) != nil || len(entries) == 0 {
		return nil, false
	}
	if len(entries) > maxDetailTopics && !h.fault("detail-topics-unlimited") {
		return nil, false
	}
	var topics []matcher
	for _, entry := range entries {
		if s, ok := text(entry); ok && h.fault("matcher-strings-accepted") {
			topics = append(topics, matcher{exact, s})
			continue
		}
		var members object
		if json.Unmarshal(entry, &members) != nil || members == nil {
			if string(entry) == "null" && h.fault("null-matcher-skipped") || len(entry) > 0 && entry[0] == '[' && h.fault("array-matcher-skipped") {
				continue
			}
			return nil, false
		}
		m, ok := h.parseMatcher(members)
		switch {
		case ok:
			topics = append(topics, m)
		case !h.fault("bad-matchers-in-token-skipped"):
			return nil, false
		}
	}
	return topics, true
}

// parseMatcher reads a topic matcher object (RAR-14 to RAR-21).
func (h *Hub) parseMatcher(members object) (matcher, bool) {
	if h.fault("members-case-insensitive") {
		members = folded(members)
	}
	pattern, ok := text(members["match"])
	switch {
	case ok:
	case h.fault("match-optional") && members["match"] == nil, h.fault("match-null-is-everything") && string(members["match"]) == "null":
		pattern = wildcard
	case h.fault("match-number-accepted"):
		pattern = string(members["match"])
	default:
		return matcher{}, false
	}
	kind, ok := h.matchType(members)
	if !ok {
		return matcher{}, false
	}
	if h.fault("urlpattern-unknown-in-tokens") && kind == urlPatterns {
		return matcher{}, false
	}
	if h.fault("urlpattern-is-exact-in-tokens") {
		kind = exact
	}
	m, err := h.newMatcher(inToken, kind, pattern)
	return m, err == nil
}

// matchType reads match_type, which is exact when absent (RAR-16), and case-sensitive (RAR-17, RAR-18).
func (h *Hub) matchType(members object) (string, bool) {
	raw, present := members["match_type"]
	if !present {
		if h.fault("default-match-type-is-urlpattern") {
			return urlPatterns, true
		}
		return exact, true
	}
	kind, ok := text(raw)
	switch {
	case h.fault("match-type-case-insensitive"):
		kind = strings.ToLower(kind)
	case h.datum().matchType.same != nil && ok && h.datum().matchType.same(kind, exact):
		kind = exact
	case h.datum().matchType.same != nil && ok && h.datum().matchType.same(kind, urlPatterns):
		kind = urlPatterns
	case h.fault("match-type-upper-exact-accepted") && kind == "Exact":
		kind = exact
	case h.fault("match-type-empty-is-exact") && ok && kind == "":
		kind = exact
	case h.fault("match-type-null-is-exact") && string(raw) == "null":
		return exact, true
	case h.fault("match-type-number-is-exact") && !ok && string(raw) != "null":
		return exact, true
	case h.fault("unknown-match-type-is-exact") && ok && kind != "" && kind == strings.ToLower(kind) && kind != urlPatterns:
		return exact, true
	}
	return kind, ok && (kind == exact || kind == urlPatterns)
}

// grants says whether the token grants an action on a topic: one detail has both (RAR-10).
func (t *token) grants(h *Hub, action, topic string) bool {
	if t == nil {
		return false
	}
	return t.grantsAny(h, action, h.selectionOf([]string{topic}))
}

// grantsAny says whether the token grants an action on one of the topics of a selection.
func (t *token) grantsAny(h *Hub, action string, topics *selection) bool {
	if t == nil {
		return false
	}
	if h.fault("no-details-grant-everything") && len(t.details) == 0 {
		return true
	}
	for i, d := range t.details {
		if h.fault("first-detail-only") && i > 0 {
			break
		}
		if !slices.Contains(d.actions, action) && !h.otherActionCounts(d, action) && !h.similarAction(d, action) {
			continue
		}
		if slices.ContainsFunc(d.topics, func(m matcher) bool { return topics.matchedBy(inToken, m) }) {
			return true
		}
	}
	return false
}

func (h *Hub) similarAction(d detail, action string) bool {
	f := h.datum().action
	return f.same != nil && slices.ContainsFunc(d.actions, func(given string) bool { return f.same(given, action) })
}

// otherActionCounts is where faults take one action for another (PRIV-08).
func (h *Hub) otherActionCounts(d detail, action string) bool {
	switch {
	case h.fault("subscribe-grant-publishes"):
		return action == actionPublish && slices.Contains(d.actions, actionSubscribe)
	case h.fault("publish-grant-reads"):
		return action == actionSubscribe && slices.Contains(d.actions, actionPublish)
	case h.fault("any-action-counts"):
		return true
	}
	return false
}

// payloadFor gives the payload of the first subscribe detail that matches the subscription's own matcher, taken as a
// topic (PAY); nil when that detail has none, or when there is no such detail.
func (t *token) payloadFor(h *Hub, m matcher) json.RawMessage {
	if t == nil || h.fault("payload-missing") {
		return nil
	}
	own := h.selectionOf([]string{m.pattern})
	var last json.RawMessage
	for _, d := range t.details {
		if h.fault("payload-of-single-action-only") && len(d.actions) > 1 {
			continue
		}
		if !slices.Contains(d.actions, actionSubscribe) && !h.fault("payload-of-any-action") {
			continue
		}
		if h.fault("payload-of-first-detail") {
			return d.payload
		}
		matched := slices.ContainsFunc(d.topics, func(g matcher) bool {
			switch {
			case h.fault("payload-exact-only"):
				return g.kind == exact && own.matchedBy(inToken, g)
			case h.fault("payload-urlpattern-only"):
				return g.kind == urlPatterns && own.matchedBy(inToken, g)
			case h.fault("payload-wildcard-ignored"):
				return g.pattern != wildcard && own.matchedBy(inToken, g)
			}
			return own.matchedBy(inToken, g)
		})
		switch {
		case !matched:
		case h.fault("payload-falls-through") && d.payload == nil:
		case h.fault("payload-last-wins"):
			last = d.payload
		default:
			return d.payload
		}
	}
	return last
}
