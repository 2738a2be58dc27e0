package mercure_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

func TestSubscriptionsTopic(t *testing.T) {
	const hub = mercure.DefaultHubPath
	for _, tc := range []struct{ name, matchType, match, subscriber, want string }{
		{"ACT-25 all", "", "", "", hub + "/subscriptions"},
		{"ACT-25 of a matcher", "exact", "https://e.example/1", "", hub + "/subscriptions/exact/https%3A%2F%2Fe.example%2F1"},
		{"ACT-04 one", "urlpattern", "/:id", "urn:uuid:1", hub + "/subscriptions/urlpattern/%2F%3Aid/urn%3Auuid%3A1"},
		{"ACT-06 only unreserved characters stay", "exact", "aZ09-._~ b%20c:é*!'()", "s", hub + "/subscriptions/exact/aZ09-._~%20b%2520c%3A%C3%A9%2A%21%27%28%29/s"},
		{"ACT-07 encoded once", "exact", "%41", "s", hub + "/subscriptions/exact/%2541/s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := mercure.SubscriptionsTopic(hub, tc.matchType, tc.match, tc.subscriber); got != tc.want {
				t.Errorf("SubscriptionsTopic() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSubscription_AppendJSON(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    mercure.Subscription
		want map[string]any
	}{
		{
			"ACT-14 all members",
			mercure.Subscription{
				ID: "/hub/subscriptions/exact/a/s", MatchType: "exact", Match: "a\"\\\n\u2028<é>", Subscriber: "s", Active: true,
				Payload: json.RawMessage(`{"a":{"b":[1,"é"]}}`),
			},
			map[string]any{
				"id": "/hub/subscriptions/exact/a/s", "type": "subscription", "match_type": "exact", "match": "a\"\\\n\u2028<é>",
				"subscriber": "s", "active": true, "payload": map[string]any{"a": map[string]any{"b": []any{1.0, "é"}}},
			},
		},
		{
			"PAY-08 no payload, ACT-18 ended",
			mercure.Subscription{ID: "i", MatchType: "urlpattern", Match: "*", Subscriber: "s"},
			map[string]any{"id": "i", "type": "subscription", "match_type": "urlpattern", "match": "*", "subscriber": "s", "active": false},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw := tc.s.AppendJSON([]byte("x"))
			var got map[string]any
			if err := json.Unmarshal(raw[1:], &got); err != nil {
				t.Fatalf("%q: %v", raw, err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("AppendJSON() = %s (-want +got):\n%s", raw, d)
			}
		})
	}
	broken := mercure.Subscription{Match: "\xff"}
	if raw := broken.AppendJSON(nil); !json.Valid(raw) {
		t.Errorf("AppendJSON of bytes that are not UTF-8 = %q", raw)
	}
}
