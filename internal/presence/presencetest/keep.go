package presencetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

func (s *suite) testKeep(t *testing.T) {
	t.Run("ACT-03 what was put is reaped by the next process", func(t *testing.T) {
		f := s.fixture(t)
		f.put(subscribers(0, 1)...)
		f.put(subscribers(1, 500)...)
		f.reopen()
		f.wantReaped(subscribers(0, 501)...)
	})
	t.Run("all of a subscriber is kept as it is", func(t *testing.T) {
		f := s.fixture(t)
		f.put(odd()...)
		f.reopen()
		f.wantReaped(odd()...)
	})
	t.Run("what several processes left is reaped", func(t *testing.T) {
		f := s.fixture(t)
		for n := range 4 {
			f.put(subscribers(10*n, 10)...)
			f.reopen()
		}
		f.wantReaped(subscribers(0, 40)...)
	})
	t.Run("nothing is put", func(t *testing.T) {
		f := s.fixture(t)
		f.put()
		f.reopen()
		f.wantReaped()
	})
}

// odd gives subscribers at the bounds of what there can be. Payloads are compared byte for byte, so they are no JSON that a codec would write.
func odd() []presence.Subscriber {
	long := strings.Repeat("é", 2048) // 4096 bytes
	many := make([]presence.Subscription, 256)
	for i := range many {
		many[i] = presence.Subscription{MatchType: "URLPattern", Match: fmt.Sprintf("%03d", i) + long[:4092], Payload: json.RawMessage(`{"i":1}`)}
	}
	all := []presence.Subscriber{{ID: "many", Subscriptions: many}}
	for i, sub := range []presence.Subscription{
		{MatchType: "Exact", Match: "*"},
		{MatchType: "Exact", Match: ""},
		{MatchType: "Exact", Match: long},
		{MatchType: "Exact", Match: "a\x00b\x00"},
		{MatchType: "Exact", Match: "<script>&\u2028\u2029\ufffd\U0010ffff\u0301\r\n\t\"\\'"},
		{MatchType: "Exact", Match: "none"},
		{MatchType: "Exact", Match: "empty object", Payload: json.RawMessage(`{}`)},
		{MatchType: "Exact", Match: "spaces", Payload: json.RawMessage(" {\n\t\"b\" : 1.0e2,\r\n \"a\":\"\\u003c<\\/\" , \"b\":null } ")},
		{MatchType: "Exact", Match: "long payload", Payload: json.RawMessage(`{"k":"` + strings.Repeat("v", 1<<16) + `"}`)},
		{MatchType: "", Match: "no type"},
	} {
		all = append(all, presence.Subscriber{ID: fmt.Sprintf("urn:odd:%d", i), Subscriptions: []presence.Subscription{sub}})
	}
	two := presence.Subscription{MatchType: "Exact", Match: "the same twice"}
	return append(all,
		presence.Subscriber{ID: "two", Subscriptions: []presence.Subscription{two, two}},
		presence.Subscriber{ID: "id with \x00 and ü", Subscriptions: []presence.Subscription{two}},
		presence.Subscriber{ID: "long id " + long, Subscriptions: []presence.Subscription{two}},
	)
}
