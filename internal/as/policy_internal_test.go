package as

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const testHub = "https://hub.example/.well-known/mercure"

func subscribe(match string, typ topic.Type) rar.Detail {
	return rar.Detail{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: match, MatchType: typ}}}
}

func policyServer(t *testing.T, policies ...Policy) (*Server, hubResource) {
	t.Helper()
	compiler, err := topic.NewCompiler(testHub, topic.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	hub := hubResource{Resource: Resource{ID: testHub, HubURL: testHub}, compiler: compiler}
	s := policyServerOf(hub, store.Account{})
	s.options.Policies = policies
	return s, hub
}

// policyServerOf is a server with one resource and one account.
func policyServerOf(hub hubResource, account store.Account) *Server {
	return &Server{resources: []hubResource{hub}, store: oneAccount{account: account}, logger: slog.New(slog.DiscardHandler)}
}

func TestCeiling(t *testing.T) {
	s, hub := policyServer(
		t,
		Policy{ID: "all", Grant: []rar.Detail{subscribe("https://example.com/all", topic.Exact)}, OnExcess: ExcessTrim, OnMissingRequest: MissingGrantAll},
		Policy{ID: "client", When: When{Clients: []string{"c"}}, Grant: []rar.Detail{subscribe("https://example.com/client", topic.Exact)}, OnExcess: ExcessTrim},
		Policy{ID: "role", When: When{Roles: []string{"r"}, Clients: []string{"c"}}, Grant: []rar.Detail{subscribe("https://example.com/role", topic.Exact)}},
		Policy{ID: "user", When: When{Users: []string{"ann"}}, Grant: []rar.Detail{subscribe("https://example.com/{{user.team}}", topic.Exact)}, OnExcess: ExcessTrim},
		Policy{ID: "elsewhere", When: When{Resources: []string{"https://other.example"}}, Grant: []rar.Detail{subscribe("https://example.com/other", topic.Exact)}},
	)
	matches := func(ds []rar.Detail) []string {
		var out []string
		for _, d := range ds {
			out = append(out, d.Topics[0].Match)
		}
		return out
	}
	const all, client, role, team = "https://example.com/all", "https://example.com/client", "https://example.com/role", "https://example.com/blue"
	for name, tc := range map[string]struct {
		client          store.Client
		account         store.Account
		details, unasks []string
		excess          rar.Excess
	}{
		"somebody": {store.Client{ID: "x"}, store.Account{ID: "u_1"}, []string{all}, []string{all}, rar.Trim},
		"a client": {store.Client{ID: "c"}, store.Account{ID: "u_1"}, []string{all, client}, []string{all}, rar.Trim},
		"a first-party client": {
			store.Client{ID: "c", SkipConsent: true},
			store.Account{ID: "u_1"},
			[]string{all, client},
			[]string{all, client},
			rar.Trim,
		},
		"a role, whose policy denies excess": {store.Client{ID: "c"}, store.Account{ID: "u_1", Roles: []string{"r"}}, []string{all, client, role}, []string{all}, rar.Deny},
		"a role at another client":           {store.Client{ID: "x"}, store.Account{ID: "u_1", Roles: []string{"r"}}, []string{all}, []string{all}, rar.Trim},
		"a user with the attribute": {
			store.Client{ID: "x"},
			store.Account{ID: "u_1", Username: "ann", Attributes: map[string]string{"team": "blue"}},
			[]string{all, team},
			[]string{all},
			rar.Trim,
		},
		"a user without it": {store.Client{ID: "x"}, store.Account{ID: "u_1", Username: "ann"}, []string{all}, []string{all}, rar.Trim},
		"an attribute that would escape": {
			store.Client{ID: "x"},
			store.Account{ID: "u_1", Username: "ann", Attributes: map[string]string{"team": ".."}},
			[]string{all},
			[]string{all},
			rar.Trim,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.ceiling(t.Context(), tc.client, tc.account, hub)
			if diff := cmp.Diff(tc.details, matches(c.details)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.unasks, matches(c.unasked)); diff != "" {
				t.Error(diff)
			}
			if c.excess != tc.excess {
				t.Errorf("excess: %v", c.excess)
			}
		})
	}
	t.Run("no policy, no grant", func(t *testing.T) {
		s, hub := policyServer(t)
		c := s.ceiling(t.Context(), store.Client{ID: "x", SkipConsent: true}, store.Account{ID: "u_1"}, hub)
		if len(c.details) != 0 || len(c.unasked) != 0 || c.excess != rar.Deny {
			t.Errorf("ceiling: %+v", c)
		}
	})
}

func TestClientMayHave(t *testing.T) {
	s, hub := policyServer(
		t,
		Policy{ID: "p", When: When{Clients: []string{"c"}, Roles: []string{"anybody"}}, Grant: []rar.Detail{
			subscribe("https://example.com/users/{{sub}}/*", topic.URLPattern),
			subscribe("urn:team:{{user.team}}:news:{{sub}}", topic.Exact),
			subscribe("https://{{user.team}}.example.com/x", topic.URLPattern),
			subscribe("/rooms/:id", topic.URLPattern),
		}},
	)
	for name, tc := range map[string]struct {
		detail rar.Detail
		want   bool
	}{
		"somebody's corner":              {subscribe("https://example.com/users/u_1/x", topic.Exact), true},
		"a part of it":                   {subscribe("https://example.com/users/u_1/orders/*", topic.URLPattern), true},
		"dot segments out of it":         {subscribe("https://example.com/users/u_1/../../admin", topic.Exact), false},
		"another path":                   {subscribe("https://example.com/admin", topic.Exact), false},
		"another host":                   {subscribe("https://example.com.evil.example/users/u_1/x", topic.Exact), false},
		"everything":                     {subscribe("*", topic.Exact), false},
		"an exact template":              {subscribe("urn:team:blue:news:u_1", topic.Exact), true},
		"an exact template cut short":    {subscribe("urn:team:blue:new:u_1", topic.Exact), false},
		"a pattern for exact template":   {subscribe("urn:team:blue:news:u_1", topic.URLPattern), false},
		"a host label":                   {subscribe("https://blue.example.com/x", topic.Exact), true},
		"a relative pattern":             {subscribe("https://hub.example/rooms/7", topic.Exact), true},
		"another action":                 {rar.Detail{Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "https://hub.example/rooms/7", MatchType: topic.Exact}}}, false},
		"a pattern that is none":         {subscribe("https://e/(", topic.URLPattern), false},
		"one good wish beside a bad one": {rar.Detail{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "/rooms/:id", MatchType: topic.URLPattern}, {Match: "x", MatchType: topic.Exact}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.clientMayHave(store.Client{ID: "c"}, hub, []rar.Detail{tc.detail}); got != tc.want {
				t.Errorf("got %v", got)
			}
			if s.clientMayHave(store.Client{ID: "other"}, hub, []rar.Detail{tc.detail}) {
				t.Error("a client without policy may have it")
			}
		})
	}
}

func TestSplitTemplate(t *testing.T) {
	for template, want := range map[string][]string{
		"":                     {""},
		"a":                    {"a"},
		"{{sub}}":              {"", ""},
		"a{{sub}}b{{user.x}}c": {"a", "b", "c"},
		"a{{sub":               {"a{{sub"},
		"a{{x}}{{y}}":          {"a", "", ""},
	} {
		if diff := cmp.Diff(want, splitTemplate(template)); diff != "" {
			t.Errorf("%q: %s", template, diff)
		}
	}
	if diff := cmp.Diff([]string{"sub", "user.x"}, templateNames("a{{sub}}b{{ user.x }}c{{")); diff != "" {
		t.Error(diff)
	}
}

// TestClientMayHave_oneBudget asks for what a client may have, in the most laborious way: whoever asks has proven nothing yet.
func TestClientMayHave_oneBudget(t *testing.T) {
	both := func(match string) rar.Detail {
		d := subscribe(match, topic.URLPattern)
		d.Actions = []rar.Action{rar.Subscribe, rar.Publish}
		return d
	}
	var policies []Policy
	for i := range 50 {
		policies = append(policies, Policy{Grant: []rar.Detail{both(fmt.Sprintf("https://example.com/*/updates/*/x%d", i))}})
	}
	policies = append(policies, Policy{Grant: []rar.Detail{both("https://example.com/*")}})
	s, hub := policyServer(t, policies...)
	var wanted []rar.Detail
	for i := range 16 {
		wanted = append(wanted, both(fmt.Sprintf("https://example.com/%d%s", i, strings.Repeat("*/updates/", 3))))
	}
	for i := range wanted {
		if !s.clientMayHave(store.Client{ID: "x"}, hub, wanted[i:i+1]) {
			t.Fatalf("wish %d alone is refused", i)
		}
	}
	if s.clientMayHave(store.Client{ID: "x"}, hub, wanted) {
		t.Error("each wish had a budget of its own")
	}
}
