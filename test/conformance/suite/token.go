package suite

import (
	"crypto/rand"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// Role says which of an issuer's keys signs.
type Role int

// The roles.
const (
	Publisher Role = iota
	Subscriber
)

// Detail is an authorization detail; checks put anything into it.
type Detail = jose.Object

// Matcher is a topic matcher of a detail; checks put anything into it.
type Matcher = jose.Object

// Exact matches one topic.
func Exact(topic string) Matcher { return Matcher{"match": topic, "match_type": "exact"} }

// Pattern matches by a URL pattern.
func Pattern(pattern string) Matcher { return Matcher{"match": pattern, "match_type": "urlpattern"} }

// Any matches every topic.
func Any() Matcher { return Matcher{"match": "*"} }

// Grant is a detail of these actions on these topics.
func Grant(action string, topics ...Matcher) Detail {
	return Detail{"type": DetailType, "actions": []string{action}, "topics": topics}
}

// CanPublish is a detail that grants publishing.
func CanPublish(topics ...Matcher) Detail { return Grant("publish", topics...) }

// CanSubscribe is a detail that grants subscribing.
func CanSubscribe(topics ...Matcher) Detail { return Grant("subscribe", topics...) }

// Details puts several together as the claim.
func Details(details ...Detail) []Detail { return append([]Detail{}, details...) }

// Key is the key with which the first issuer signs for a role.
func (t *T) Key(role Role) jose.Key {
	if role == Publisher {
		return t.target.Issuers[0].Publish
	}
	return t.target.Issuers[0].Subscribe
}

// Claims gives a right token of the first issuer that carries these details (any value; nil: no such claim): the check
// then spoils it, and signs it with Sign.
func (t *T) Claims(details any) jose.Token {
	now := time.Now()
	return jose.Token{
		Header: jose.Object{"typ": "at+jwt"},
		Claims: jose.Object{
			"iss": t.target.Issuers[0].ID, "aud": t.target.Resource, "sub": "conformance", "client_id": "conformance",
			"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "jti": rand.Text(),
			"authorization_details": details,
		},
	}
}

// Sign signs a token with the key of a role and gives the compact serialisation.
func (t *T) Sign(role Role, token jose.Token) string { return t.SignWith(t.Key(role), token) }

// SignWith signs a token with any key.
func (t *T) SignWith(key jose.Key, token jose.Token) string {
	compact, err := token.Compact(key)
	if err != nil {
		t.Fail("the suite cannot sign: %v", err)
	}
	return compact
}

// PublishToken gives a right token of the publisher with these details.
func (t *T) PublishToken(details ...Detail) string {
	return t.Sign(Publisher, t.Claims(Details(details...)))
}

// SubscribeToken gives a right token of the subscriber with these details.
func (t *T) SubscribeToken(details ...Detail) string {
	return t.Sign(Subscriber, t.Claims(Details(details...)))
}

// PublishAll is tok(publish *).
func (t *T) PublishAll() string { return t.PublishToken(CanPublish(Any())) }

// SubscribeAll is tok(subscribe *).
func (t *T) SubscribeAll() string { return t.SubscribeToken(CanSubscribe(Any())) }

// ServerToken asks the authorization server for a token with these details, by client_credentials. It needs the
// feature TrustedServer.
func (t *T) ServerToken(details ...Detail) string {
	as := t.target.AuthorizationServer
	if as == nil {
		t.Skip("the suite was given no authorization server (-as-issuer): nobody to ask for a token")
	}
	meta := t.ServerMetadata()
	endpoint, _ := meta["token_endpoint"].(string)
	if scheme, _, _ := strings.Cut(as.Issuer, ":"); !strings.HasPrefix(endpoint, scheme+"://") {
		t.Fail("the token endpoint, %q, is no URL of the issuer's scheme, so it gets no secret", endpoint)
	}
	raw, err := json.Marshal(details)
	if err != nil {
		t.Fail("the suite cannot encode details: %v", err)
	}
	basic := jose.Basic(url.QueryEscape(as.ClientID), url.QueryEscape(as.ClientSecret))
	resp := t.Fetch(endpoint, wire.Request{Method: "POST"}.With("Authorization", basic).WithBody("application/x-www-form-urlencoded",
		wire.Form("grant_type", "client_credentials", "resource", t.target.Resource, "authorization_details", string(raw))))
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(resp.Body), &answer); err != nil || resp.Status != 200 || answer.AccessToken == "" {
		t.Fail("the authorization server answered %d and no token", resp.Status)
	}
	return answer.AccessToken
}

// ServerMetadata gets the metadata of the authorization server (RFC 8414 section 3.1).
func (t *T) ServerMetadata() jose.Object {
	issuer, err := url.Parse(t.target.AuthorizationServer.Issuer)
	if err != nil {
		t.Fail("issuer %q is no URL", t.target.AuthorizationServer.Issuer)
	}
	at := issuer.Scheme + "://" + issuer.Host + "/.well-known/oauth-authorization-server" + strings.TrimSuffix(issuer.EscapedPath(), "/")
	resp := t.Fetch(at, wire.Request{Method: "GET"})
	var meta jose.Object
	if err := json.Unmarshal([]byte(resp.Body), &meta); err != nil || resp.Status != 200 {
		t.Fail("%s answered %d, not a JSON object", at, resp.Status)
	}
	if meta["issuer"] != t.target.AuthorizationServer.Issuer {
		t.Fail("the metadata at %s is that of the issuer %v", at, meta["issuer"])
	}
	return meta
}
