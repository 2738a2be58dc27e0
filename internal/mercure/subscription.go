package mercure

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// SubscriptionsPath is what follows the path of the hub's URL in the topics of subscription events and in the URLs of the subscription
// API (ACT-04, ACT-25).
const SubscriptionsPath = "/subscriptions"

// SubscriptionsTopic returns the topic of all subscriptions, of those with one matcher when matchType is not empty, or of a single one when
// subscriber is not empty either (ACT-04, ACT-25). Each variable is percent-encoded once (ACT-06, ACT-07).
func SubscriptionsTopic(hubPath, matchType, match, subscriber string) string {
	s := hubPath + SubscriptionsPath
	if matchType == "" {
		return s
	}
	s += "/" + topic.PercentEncode(matchType) + "/" + topic.PercentEncode(match)
	if subscriber == "" {
		return s
	}
	return s + "/" + topic.PercentEncode(subscriber)
}

// Subscription is what the document of a subscription says (ACT-14 to ACT-18).
type Subscription struct {
	// ID is the subscription's topic, see [SubscriptionsTopic].
	ID string
	// MatchType is the canonical name of the matcher's type, and Match the matcher itself.
	MatchType, Match string
	// Subscriber identifies the connection.
	Subscriber string
	// Active is true until the subscription has ended.
	Active bool
	// Payload is a JSON object, or nil when there is none.
	Payload json.RawMessage
}

// AppendJSON appends the document of s, on one line if the payload is. Strings that are not UTF-8 are mended: no matcher is one.
func (s *Subscription) AppendJSON(dst []byte) []byte {
	for _, member := range []struct{ name, value string }{
		{`{"id":`, s.ID},
		{`,"type":`, "subscription"},
		{`,"match_type":`, s.MatchType},
		{`,"match":`, s.Match},
		{`,"subscriber":`, s.Subscriber},
	} {
		dst = append(dst, member.name...)
		dst, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(member.value, "\uFFFD")) // the one error is about UTF-8
	}
	if s.Active {
		dst = append(dst, `,"active":true`...)
	} else {
		dst = append(dst, `,"active":false`...)
	}
	if s.Payload != nil {
		dst = append(dst, `,"payload":`...)
		dst = append(dst, s.Payload...)
	}
	return append(dst, '}')
}
