package checks

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// prmChecks ask for the protected resource metadata (RFC 9728). The protocol wants the member resource and leaves the
// others to the hub ("MAY include the others"): where one of them is absent, that is noted and passes.
func prmChecks() []suite.Check {
	checks := slices.Concat(prmDocument(), prmOptional(), prmBearer(), prmExtensions(), prmChallenge(), prmServer())
	slices.SortStableFunc(checks, func(a, b suite.Check) int { return strings.Compare(a.ID, b.ID) })
	return checks
}

// prmAsk asks for the document, without a token.
func prmAsk(t *suite.T) *wire.Response {
	return t.Fetch(t.Target().MetadataURL(), wire.Request{Method: "GET"})
}

// prmText gets the document as it is served. That it is served at all is for PRM-01 alone to say.
func prmText(t *suite.T) *wire.Response {
	resp := prmAsk(t)
	if resp.Status != 200 {
		t.Skip("%s answers %d, which PRM-01 judges: there is no document to look into", t.Target().MetadataURL(), resp.Status)
	}
	return resp
}

// prmMetadata gets the members of the document. That it is an object is for PRM-10 alone to say.
func prmMetadata(t *suite.T) jose.Object {
	var members jose.Object
	if err := json.Unmarshal([]byte(prmText(t).Body), &members); err != nil || members == nil {
		t.Skip("the metadata is no JSON object, which PRM-10 judges: it has no members to look at: %v", err)
	}
	return members
}

// prmJSON shows a value in a report.
func prmJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v", v)
	}
	const most = 200
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}

// prmStrings gives the entries of an array of strings; ok is false when it is anything else.
func prmStrings(v any) (list []string, ok bool) {
	entries, ok := v.([]any)
	if !ok {
		return nil, false
	}
	for _, e := range entries {
		s, ok := e.(string)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

func prmDocument() []suite.Check {
	return []suite.Check{
		one("PRM-01", "served", func(t *suite.T) {
			resp := prmAsk(t)
			if resp.Status != 200 {
				t.Fail("GET %s without a token: answered %d, wanted 200", t.Target().MetadataURL(), resp.Status)
			}
			t.Observed("%s: 200", t.Target().MetadataURL())
		}, suite.Metadata),
		one("PRM-02", "value", func(t *suite.T) {
			value, ok := prmMetadata(t)["resource"]
			if !ok {
				t.Fail("the metadata has no resource")
			}
			if value != t.Target().Resource {
				t.Fail("resource is %s, the identifier of the hub is %q", prmJSON(value), t.Target().Resource)
			}
		}, suite.Metadata),
		one("PRM-10", "media-type", func(t *suite.T) {
			if media := prmText(t).MediaType(); media != "application/json" {
				t.Fail("the media type is %q, wanted application/json", media)
			}
		}, suite.Metadata),
		one("PRM-10", "object", func(t *suite.T) {
			body := prmText(t).Body
			var members map[string]json.RawMessage
			if err := json.Unmarshal([]byte(body), &members); err != nil || members == nil || !utf8.ValidString(body) {
				t.Fail("the body is no JSON object: %v", err)
			}
		}, suite.Metadata),
		one("PRM-10", "no-empty-array", func(t *suite.T) {
			for name, v := range prmMetadata(t) {
				if list, ok := v.([]any); ok && len(list) == 0 {
					t.Fail("%s is an empty array; parameters with zero values are left out", name)
				}
			}
		}, suite.Metadata),
		one("PRM-13", "allowed-origin", func(t *suite.T) {
			origin := t.Target().CORSOrigin
			prmText(t)
			resp := t.Fetch(t.Target().MetadataURL(), wire.Request{Method: "GET"}.With("Origin", origin))
			// The document is public and asked for without credentials, so * serves as well.
			if allowed := resp.Get("Access-Control-Allow-Origin"); allowed != origin && allowed != "*" {
				t.Fail("GET with Origin %s: Access-Control-Allow-Origin is %q", origin, allowed)
			}
		}, suite.Metadata, suite.CORS),
	}
}

// prmMember is a check of a member that may be absent. The judge says what is wrong with the value, or nothing.
func prmMember(id, name, member string, judge func(t *suite.T, value any) string, needs ...suite.Feature) suite.Check {
	return one(id, name, func(t *suite.T) {
		value, ok := prmMetadata(t)[member]
		if !ok {
			t.Observed("%s is absent, as it may be", member)
			return
		}
		if problem := judge(t, value); problem != "" {
			t.Fail("%s is %s: %s", member, prmJSON(value), problem)
		}
		t.Observed("%s is %s", member, prmJSON(value))
	}, append([]suite.Feature{suite.Metadata}, needs...)...)
}

// prmLists is a judge: the value is an array of strings with this entry.
func prmLists(entry string) func(*suite.T, any) string {
	return func(_ *suite.T, value any) string {
		list, ok := prmStrings(value)
		switch {
		case !ok:
			return "wanted an array of strings"
		case !slices.Contains(list, entry):
			return "wanted " + entry + " among them"
		}
		return ""
	}
}

// prmListsNot is a judge: no entry of the array is this one.
func prmListsNot(entry, why string) func(*suite.T, any) string {
	return func(_ *suite.T, value any) string {
		if list, ok := value.([]any); ok && slices.Contains(list, any(entry)) {
			return why
		}
		return ""
	}
}

func prmOptional() []suite.Check {
	return []suite.Check{
		prmMember("PRM-04", "issuer-urls", "authorization_servers", func(_ *suite.T, value any) string {
			list, ok := prmStrings(value)
			if !ok || len(list) == 0 {
				return "wanted an array of at least one issuer identifier"
			}
			for _, issuer := range list {
				u, err := url.Parse(issuer)
				if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.ContainsAny(issuer, "?#") {
					return fmt.Sprintf("%q is no issuer identifier, which is a URL without query and fragment", issuer)
				}
			}
			return ""
		}),
		prmMember("PRM-04", "configured-server", "authorization_servers", func(t *suite.T, value any) string {
			if list, _ := prmStrings(value); !slices.Contains(list, t.Target().AuthorizationServer.Issuer) {
				return "the trusted server " + t.Target().AuthorizationServer.Issuer + " is not among them"
			}
			return ""
		}, suite.TrustedServer),
		prmMember("PRM-04", "no-self-issuer", "authorization_servers", func(t *suite.T, value any) string {
			list, _ := prmStrings(value)
			for _, issuer := range t.Target().Issuers {
				as := t.Target().AuthorizationServer
				if slices.Contains(list, issuer.ID) && (as == nil || as.Issuer != issuer.ID) {
					return "tokens of " + issuer.ID + " are self-issued: there is no server to ask for them"
				}
			}
			return ""
		}),
		prmMember("PRM-05", "mercure-type", "authorization_details_types_supported", prmLists(suite.DetailType)),
	}
}

func prmBearer() []suite.Check {
	const member = "bearer_methods_supported"
	return []suite.Check{
		prmMember("PRM-06", "header", member, prmLists("header")),
		prmMember("PRM-06", "no-query", member, prmListsNot("query", "the access_token query parameter is not part of the protocol")),
		prmMember("PRM-06", "no-body", member, prmListsNot("body", "the access_token form field is not part of the protocol")),
		prmMember("PRM-06", "no-cookie", member, prmListsNot("cookie", "a cookie is no method of RFC 6750; it has a member of its own")),
		prmMember("PRM-06", "nothing-else", member, func(_ *suite.T, value any) string {
			list, ok := prmStrings(value)
			if !ok {
				return "wanted an array of strings"
			}
			for _, method := range list {
				// The other cases judge these.
				if !slices.Contains([]string{"header", "query", "body", "cookie"}, method) {
					return fmt.Sprintf("there is no method %q", method)
				}
			}
			return ""
		}),
	}
}

func prmExtensions() []suite.Check {
	return []suite.Check{
		prmMember("PRM-07", "string", "mercure_cookie", func(_ *suite.T, value any) string {
			syntax := regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // RFC 6265 section 4.1.1
			if name, ok := value.(string); !ok || !syntax.MatchString(name) {
				return "wanted a string that is the name of a cookie; without cookies, the member is left out"
			}
			return ""
		}),
		prmMember("PRM-07", "works", "mercure_cookie", func(t *suite.T, value any) string {
			name, ok := value.(string)
			if !ok {
				t.Skip("mercure_cookie is no string, which the other case of PRM-07 judges: it names no cookie to try")
			}
			topic := t.Topic()
			r := t.Get("match="+wire.Escape(topic)).With("Cookie", name+"="+t.SubscribeAll())
			// Only a token opens the way for a private update.
			s := t.ListenWith(r)
			s.Want(t.Publish("topic", topic, "data", "x", "private", "on"))
			return ""
		}),
		prmMember("PRM-08", "strings", "mercure_matcher_types_supported", func(_ *suite.T, value any) string {
			if _, ok := prmStrings(value); !ok {
				return "wanted an array of strings"
			}
			return ""
		}),
		prmMember("PRM-08", "exact", "mercure_matcher_types_supported", prmLists("exact")),
		prmMember("PRM-08", "urlpattern", "mercure_matcher_types_supported", prmLists("urlpattern")),
		prmMember("PRM-09", "true-or-absent", "mercure_subscriptions", func(_ *suite.T, value any) string {
			if value != true {
				return "wanted true, or no such member"
			}
			return ""
		}),
		prmMember("PRM-09", "implemented", "mercure_subscriptions", func(t *suite.T, _ any) string {
			resp := t.Do(suite.Bearer(t.At(t.Target().Path()+"/subscriptions"), t.SubscribeAll()))
			if resp.Status == 200 {
				return ""
			}
			if t.Target().Has(suite.NoSubscriptions) {
				return fmt.Sprintf("but the feature is off, and the subscription API answers %d", resp.Status)
			}
			// Events without the API are possible (ACT-24): then one of them is the proof.
			p := newActPresence(t)
			p.begin()
			return ""
		}),
	}
}

// prmPointer gives the parameter resource_metadata of a response's challenges (RFC 9728 section 5.1).
func prmPointer(resp *wire.Response) (at string, ok bool) {
	parameter := regexp.MustCompile(`(?i)[\s,]resource_metadata\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))`)
	m := parameter.FindStringSubmatch(" " + strings.Join(resp.All("WWW-Authenticate"), ", "))
	if m == nil {
		return "", false
	}
	return m[1] + m[2], true
}

// prmChallenge asks whether challenges point to the document. That they point at all is ERR-03 and ERR-10, save where
// no token is presented, which is in both sections of the protocol.
func prmChallenge() []suite.Check {
	points := func(name string, status int, required bool, request func(t *suite.T) wire.Request) suite.Check {
		return one("PRM-11", name, func(t *suite.T) {
			here := prmMetadata(t)
			resp := t.Want(request(t), status)
			at, ok := prmPointer(resp)
			if !ok {
				if required {
					t.Fail("the challenge names no resource_metadata: %q", resp.Get("WWW-Authenticate"))
				}
				t.Observed("the challenge names no resource_metadata")
				return
			}
			named := t.Fetch(at, wire.Request{Method: "GET"})
			var there jose.Object
			if err := json.Unmarshal([]byte(named.Body), &there); named.Status != 200 || err != nil {
				t.Fail("resource_metadata is %q, which answers %d and no JSON object", at, named.Status)
			}
			if !reflect.DeepEqual(there, here) {
				t.Fail("resource_metadata is %q, another document than the one at %s", at, t.Target().MetadataURL())
			}
			t.Observed("resource_metadata is %q", at)
		}, suite.Metadata)
	}
	return []suite.Check{
		points("no-token", 401, true, func(t *suite.T) wire.Request { return t.Post("topic=" + wire.Escape(t.Topic())) }),
		points("invalid-token", 401, false, func(t *suite.T) wire.Request {
			token := t.Claims(suite.Details(suite.CanPublish(suite.Any())))
			token.Claims["aud"] = "https://elsewhere.example/"
			return suite.Bearer(t.Post("topic="+wire.Escape(t.Topic())), t.Sign(suite.Publisher, token))
		}),
		points("insufficient-scope", 403, false, func(t *suite.T) wire.Request {
			return suite.Bearer(t.Post("topic="+wire.Escape(t.Topic())), t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
		}),
	}
}
