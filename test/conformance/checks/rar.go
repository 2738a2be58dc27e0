package checks

import (
	"maps"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// The checks of authorization details publish with a token of one right detail, which must be accepted, and then with a
// token whose details were changed. Where reading matters, private updates are published to a stream.
func rarChecks() []suite.Check {
	return slices.Concat(
		rarTypeChecks(),
		rarClaimChecks(),
		rarActionChecks(),
		rarTopicsChecks(),
		rarPayloadChecks(),
		rarSumChecks(),
		rarDefectChecks(),
		rarMatcherChecks(),
		rarWildcardChecks(),
		rarRoutingChecks(),
		rarOddMatcherChecks(),
	)
}

// rarCase makes of a right detail, which grants publishing on a topic, the value of the claim.
type rarCase struct {
	name  string
	claim func(detail suite.Detail) any
}

// rarMember sets a member of the detail.
func rarMember(name string, value any) func(suite.Detail) any {
	return func(d suite.Detail) any { d[name] = value; return suite.Details(d) }
}

// rarWithout removes a member of the detail.
func rarWithout(name string) func(suite.Detail) any {
	return func(d suite.Detail) any { delete(d, name); return suite.Details(d) }
}

// rarRenamed gives a member of the detail another name.
func rarRenamed(name, other string) func(suite.Detail) any {
	return func(d suite.Detail) any { d[other] = d[name]; delete(d, name); return suite.Details(d) }
}

// rarMatcherMember sets a member of the detail's only matcher.
func rarMatcherMember(name string, value any) func(suite.Detail) any {
	return func(d suite.Detail) any { rarMatcher(d)[name] = value; return suite.Details(d) }
}

// rarMatcher is the only matcher of a right detail.
func rarMatcher(d suite.Detail) suite.Matcher {
	matchers, _ := d["topics"].([]suite.Matcher)
	return matchers[0]
}

// rarTable are checks of which each publishes on a topic of its own with a right token, and then, with the changed one,
// once more, which must have one of these answers.
func rarTable(id string, cases []rarCase, status ...int) []suite.Check {
	checks := make([]suite.Check, len(cases))
	for i, c := range cases {
		checks[i] = one(id, c.name, func(t *suite.T) {
			topic := t.Topic()
			rarPublish(t, "a right detail", rarPublisher(t, suite.Details(rarRight(topic))), topic, 200)
			resp := rarPublish(t, c.name, rarPublisher(t, c.claim(rarRight(topic))), topic, status...)
			t.Observed("right detail accepted, then %s", tokAnswer(resp))
		})
	}
	return checks
}

// rarRight is a detail that grants publishing on a topic.
func rarRight(topic string) suite.Detail { return suite.CanPublish(suite.Matcher{"match": topic}) }

// rarPublisher is a token for publishing whose claim is this.
func rarPublisher(t *suite.T, claim any) string { return t.Sign(suite.Publisher, t.Claims(claim)) }

// rarSubscriber is a token for subscribing whose claim is this.
func rarSubscriber(t *suite.T, claim any) string { return t.Sign(suite.Subscriber, t.Claims(claim)) }

// rarPublish publishes on a topic with a token, which what names, and wants one of these answers.
func rarPublish(t *suite.T, what, token, topic string, status ...int) *wire.Response {
	return tokAsk(t, "publishing with "+what, suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), token), status...)
}

// rarReads says which of these topics' private updates a token opens, and that it does not open the others'. The stream
// routes them all.
func rarReads(t *suite.T, what, token string, granted, withheld []string) {
	var pairs []string
	for _, topic := range slices.Concat(granted, withheld) {
		pairs = append(pairs, "match", topic)
	}
	request := suite.Bearer(t.Get(wire.Form(pairs...)), token)
	if len(granted) == 0 && t.Target().Has(suite.Closed) {
		// Whether a subscriber who may read nothing private may connect is the hub's policy (reading 12).
		if resp := tokAsk(t, "subscribing with "+what, request, 200, 403); resp.Status == 403 {
			t.Observed("%s: refused with 403", what)
			return
		}
	}
	s := t.ListenWith(request)
	for _, topic := range withheld {
		t.Publish("topic", topic, "data", "x", "private", "on")
	}
	var ids []string
	for _, topic := range granted {
		ids = append(ids, t.Publish("topic", topic, "data", "x", "private", "on"))
	}
	events := s.Events()
	got := make([]string, len(events))
	for i, e := range events {
		got[i] = e.ID
	}
	if !slices.Equal(got, ids) {
		t.Fail("reading with %s: %d events arrived, wanted those of %d of %d topics", what, len(got), len(granted), len(granted)+len(withheld))
	}
}

// rarTypeChecks are those of type.
func rarTypeChecks() []suite.Check {
	kind := func(value any) func(suite.Detail) any { return rarMember("type", value) }
	return slices.Concat(
		rarTable("RAR-01", []rarCase{
			{"trailing-slash", kind(suite.DetailType + "/")},
			{"upper-case-scheme", kind(strings.Replace(suite.DetailType, "https", "HTTPS", 1))},
			{"upper-case-host", kind(strings.Replace(suite.DetailType, "mercure.rocks", "Mercure.Rocks", 1))},
			{"upper-case-path", kind(strings.Replace(suite.DetailType, "authorization", "Authorization", 1))},
			{"upper-case", kind(strings.ToUpper(suite.DetailType))},
			{"http", kind(strings.Replace(suite.DetailType, "https", "http", 1))},
			{"default-port", kind(strings.Replace(suite.DetailType, "rocks", "rocks:443", 1))},
			{"plural", kind(suite.DetailType + "s")},
			{"shorter", kind(suite.DetailType[:len(suite.DetailType)-1])},
			{"without-scheme", kind(strings.TrimPrefix(suite.DetailType, "https:"))},
			{"last-segment", kind("authorization-detail")},
			{"mercure", kind("mercure")},
			{"fragment", kind(suite.DetailType + "#")},
			{"query", kind(suite.DetailType + "?")},
			{"escaped-letter", kind(strings.Replace(suite.DetailType, "authorization", "%61uthorization", 1))},
			{"dot-segment", kind(strings.Replace(suite.DetailType, "/authorization", "/./authorization", 1))},
			{"space-before", kind(" " + suite.DetailType)},
			{"space-after", kind(suite.DetailType + " ")},
			{"U+0000-after", kind(suite.DetailType + "\x00")},
			{"empty", kind("")},
		}, 403),
		// Without a string, it is no Mercure detail, and not a detail of any other type (RFC 9396 section 2) either: it
		// grants nothing, whatever else the hub thinks of it.
		rarTable("RAR-01", []rarCase{
			{"absent", rarWithout("type")},
			{"null", kind(nil)},
			{"number", kind(1)},
			{"array", kind([]string{suite.DetailType})},
			{"object", kind(jose.Object{suite.DetailType: true})},
			{"Type", rarRenamed("type", "Type")},
		}, 401, 403),
		rarForeignChecks(),
	)
}

// rarForeignChecks are those of details of other types, which are none of the hub's business.
func rarForeignChecks() []suite.Check {
	foreign := []struct {
		name   string
		detail jose.Object
	}{
		{"bare", jose.Object{}},
		{"of-another-protocol", jose.Object{"actions": []string{"initiate", "status"}, "locations": []string{"https://example.com/payments"}, "instructedAmount": jose.Object{"currency": "EUR", "amount": "123.50"}}},
		{"actions-string", jose.Object{"actions": "publish", "topics": []any{jose.Object{"match": "*"}}}},
		{"actions-object", jose.Object{"actions": jose.Object{}}},
		{"actions-numbers", jose.Object{"actions": []any{1, nil}}},
		{"actions-empty", jose.Object{"actions": []any{}}},
		{"topics-string", jose.Object{"actions": []string{"publish"}, "topics": "*"}},
		{"topics-strings", jose.Object{"actions": []string{"publish"}, "topics": []any{"*", nil, 1}}},
		{"topics-empty", jose.Object{"actions": []string{"publish"}, "topics": []any{}}},
		{"unknown-match_type", jose.Object{"actions": []string{"publish"}, "topics": []any{jose.Object{"match": "x", "match_type": "regex"}}}},
		{"ill-formed-pattern", jose.Object{"actions": []string{"publish"}, "topics": []any{jose.Object{"match": "https://e.example/(", "match_type": "urlpattern"}}}},
		{"payload-string", jose.Object{"actions": []string{"subscribe"}, "topics": []any{jose.Object{"match": "x"}}, "payload": "x"}},
		{"nested", jose.Object{"details": []any{jose.Object{"type": suite.DetailType}}}},
	}
	var cases, alone []rarCase
	for _, f := range foreign {
		detail := jose.Object{"type": "https://example.com/other-detail"}
		maps.Copy(detail, f.detail)
		cases = append(
			cases,
			rarCase{f.name + "-before", func(d suite.Detail) any { return []any{detail, d} }},
			rarCase{f.name + "-after", func(d suite.Detail) any { return []any{d, detail} }},
		)
		alone = append(alone, rarCase{f.name + "-alone", func(suite.Detail) any { return []any{detail} }})
	}
	alone = append(alone, rarCase{"grant-alone", func(d suite.Detail) any {
		d["type"] = "https://example.com/other-detail"
		return suite.Details(d)
	}})
	return slices.Concat(rarTable("RAR-02", cases, 200), rarTable("RAR-02", alone, 403))
}

// rarClaimChecks are those of the claim as a whole.
func rarClaimChecks() []suite.Check {
	checks := slices.Concat(
		// There is no detail to read: 401 is expected, 403 tolerated (reading 7).
		rarTable("RAR-22", []rarCase{
			{"string", func(suite.Detail) any { return "publish" }},
			{"empty-string", func(suite.Detail) any { return "" }},
			{"object", func(d suite.Detail) any { return d }},
			{"object-by-number", func(d suite.Detail) any { return jose.Object{"0": d} }},
			{"number", func(suite.Detail) any { return 1 }},
			{"bool", func(suite.Detail) any { return true }},
			{"null", func(suite.Detail) any { return jose.Null }},
			{"array-of-null", func(suite.Detail) any { return []any{nil} }},
			{"array-of-string", func(suite.Detail) any { return []any{"*"} }},
			{"array-of-number", func(suite.Detail) any { return []any{1} }},
			{"deep-array", func(suite.Detail) any {
				deep := any(jose.Object{})
				for range 500 {
					deep = []any{deep}
				}
				return deep
			}},
			{"array-of-array", func(d suite.Detail) any { return []any{[]any{d}} }},
		}, 401, 403),
		[]suite.Check{one("RAR-22", "JSON-in-string", func(t *suite.T) {
			topic := t.Topic()
			claim := suite.Details(rarRight(topic))
			rarPublish(t, "a right detail", rarPublisher(t, claim), topic, 200)
			resp := rarPublish(t, "the claim as JSON text", rarPublisher(t, string(tokJSON(t, claim))), topic, 401, 403)
			t.Observed("right detail accepted, then %s", tokAnswer(resp))
		})},
	)
	for _, c := range []struct {
		name  string
		spoil func(claims jose.Object)
	}{
		{"absent", func(claims jose.Object) { delete(claims, "authorization_details") }},
		{"empty", func(claims jose.Object) { claims["authorization_details"] = []any{} }},
		// Names of claims are case-sensitive.
		{"Authorization_Details", func(claims jose.Object) {
			claims["Authorization_Details"] = claims["authorization_details"]
			delete(claims, "authorization_details")
		}},
		{"other-claims", func(claims jose.Object) {
			delete(claims, "authorization_details")
			claims["mercure"] = jose.Object{"publish": []string{"*"}, "subscribe": []string{"*"}}
			claims["scope"], claims["actions"], claims["roles"] = "publish subscribe", []string{"publish"}, []string{"admin"}
		}},
	} {
		checks = append(checks, one("RAR-03", c.name, func(t *suite.T) {
			topic := t.Topic()
			token := t.Claims(suite.Details(rarRight(topic)))
			rarPublish(t, "a right detail", t.Sign(suite.Publisher, token), topic, 200)
			c.spoil(token.Claims)
			resp := rarPublish(t, "no detail", t.Sign(suite.Publisher, token), topic, 403)
			tokWantError(t, resp, "insufficient_scope")
			t.Observed("right detail accepted, then %s", tokAnswer(resp))
		}), one("RAR-03", c.name+"-reads-nothing", func(t *suite.T) {
			topic := t.Topic()
			token := t.Claims(suite.Details(suite.CanSubscribe(suite.Exact(topic))))
			rarReads(t, "a right detail", t.Sign(suite.Subscriber, token), []string{topic}, nil)
			c.spoil(token.Claims)
			rarReads(t, "no detail", t.Sign(suite.Subscriber, token), nil, []string{topic})
			t.Observed("a private update was withheld")
		}))
	}
	return checks
}

// rarForm is a form of these topics.
func rarForm(topics ...string) string {
	pairs := []string{"data", "x"}
	for _, topic := range topics {
		pairs = append(pairs, "topic", topic)
	}
	return wire.Form(pairs...)
}
