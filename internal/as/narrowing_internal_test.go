package as

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// oneAccount is a store that knows one account and nothing else.
type oneAccount struct {
	store.Store

	account store.Account
}

func (s oneAccount) Account(context.Context, string) (store.Account, error) { return s.account, nil }

func drawDetails(t *rapid.T, label string, least int) []rar.Detail {
	matchers := []rar.TopicMatcher{
		{Match: "*", MatchType: topic.Exact},
		{Match: "https://example.com/*", MatchType: topic.URLPattern},
		{Match: "https://example.com/a/*", MatchType: topic.URLPattern},
		{Match: "https://example.com/a/:x", MatchType: topic.URLPattern},
		{Match: "https://example.com/u_1/*", MatchType: topic.URLPattern},
		{Match: "https://example.com/a/1", MatchType: topic.Exact},
		{Match: "https://example.com/a/2", MatchType: topic.Exact},
		{Match: "https://example.com/b", MatchType: topic.Exact},
		{Match: "/relative", MatchType: topic.URLPattern},
	}
	detail := rapid.Custom(func(t *rapid.T) rar.Detail {
		return rar.Detail{
			Actions: rapid.SliceOfNDistinct(rapid.SampledFrom([]rar.Action{rar.Subscribe, rar.Publish}), 1, 2, rapid.ID).Draw(t, "actions"),
			Topics:  rapid.SliceOfNDistinct(rapid.SampledFrom(matchers), 1, 3, rapid.ID).Draw(t, "topics"),
		}
	})
	return rapid.SliceOfN(detail, least, 3).Draw(t, label)
}

// within says whether all of a is proved to be in b.
func within(a, b []rar.Detail, c *topic.Compiler) error {
	_, err := rar.Narrow(a, b, c, rar.Deny)
	return err
}

// TestProperty_refreshNeverWidens has one grant refreshed again and again, under policies that change and with requests for this and
// that: no token ever says more than the grant, nor more than the policy of its moment, and the grant itself never changes.
func TestProperty_refreshNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compiler, err := topic.NewCompiler(testHub, topic.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		hub := hubResource{Resource: Resource{ID: testHub, HubURL: testHub}, compiler: compiler}
		account := store.Account{ID: "u_1", Username: "ann", Roles: []string{"user"}}
		client := store.Client{ID: "c"}
		granted := drawDetails(t, "granted", 1)
		sess := &session{Subject: account.ID, Resource: testHub, Granted: rar.Encode(granted), Scopes: []string{"a", "b"}}
		before := string(sess.Granted)
		for i := range 4 {
			s := policyServerOf(hub, account)
			s.options.Policies = []Policy{
				{ID: "one", Grant: drawDetails(t, fmt.Sprintf("policy %d", i), 0), OnExcess: ExcessTrim},
				{ID: "others", When: When{Roles: []string{"staff"}}, Grant: []rar.Detail{{Actions: []rar.Action{rar.Publish, rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "*"}}}}},
			}
			s.options.Scopes = map[string][]rar.Detail{"a": drawDetails(t, "scope a", 1), "b": drawDetails(t, "scope b", 1), "c": drawDetails(t, "scope c", 1)}
			asked := wishes{scopes: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID).Draw(t, "scopes")}
			if rapid.Bool().Draw(t, "asks for details") {
				asked.details = drawDetails(t, "asked", 1)
			}
			got, err := s.grantedNow(context.Background(), client, hub, sess, asked)
			if string(sess.Granted) != before {
				t.Fatalf("the grant changed to %s", sess.Granted)
			}
			if _, refused := errors.AsType[*OAuthError](err); refused {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := within(got.details, granted, compiler); err != nil {
				t.Fatalf("beyond the grant: %s, granted %s: %v", rar.Encode(got.details), before, err)
			}
			if err := within(got.details, s.options.Policies[0].Grant, compiler); err != nil {
				t.Fatalf("beyond the policy: %s, policy %s: %v", rar.Encode(got.details), rar.Encode(s.options.Policies[0].Grant), err)
			}
			if asked.details != nil && len(got.scopes) == 0 {
				if err := within(got.details, asked.details, compiler); err != nil {
					t.Fatalf("beyond the request: %s, asked %s: %v", rar.Encode(got.details), rar.Encode(asked.details), err)
				}
			}
			for _, scope := range got.scopes {
				if scope == "c" {
					t.Fatal("a scope that is no part of the grant")
				}
			}
		}
	})
}
