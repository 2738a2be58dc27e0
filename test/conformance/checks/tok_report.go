package checks

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// tokDefects are one defect of each kind that a token may have.
func tokDefects(f *tokForger) []tokForgery {
	changed := func(name string, c tokChange) tokForgery {
		return tokForgery{name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			c(t, &right)
			return []string{t.SignWith(key, right)}
		}}
	}
	return []tokForgery{
		changed("typ", tokHeader("typ", "JWT")),
		changed("no-typ", tokHeader("typ", nil)),
		changed("unknown-alg", tokHeader("alg", "XX256")),
		{"alg-none", func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.Header["alg"], right.NoSignature = "none", true
			return []string{t.SignWith(key, right)}
		}},
		{"public-key-as-secret", func(t *suite.T, key jose.Key, right jose.Token) []string {
			if key.Symmetric() {
				return nil
			}
			return []string{tokUnderSecret(t, right, "HS256", tokPEMs(t, key)[0])}
		}},
		{"signature", func(t *suite.T, key jose.Key, right jose.Token) []string {
			header, payload, signature := tokParts(t, key, right)
			return []string{header + "." + payload + "." + jose.Encode(tokFlipped(tokDecoded(t, signature), 0))}
		}},
		{"no-signature", func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.NoSignature = true
			return []string{t.SignWith(key, right)}
		}},
		{"unknown-key", func(t *suite.T, key jose.Key, right jose.Token) []string { return f.signed(t, key, right, key.Alg) }},
		{"jwk", func(t *suite.T, _ jose.Key, right jose.Token) []string {
			own := f.key(t, "ES256", "")
			right.Header["jwk"] = tokJWK(t, own)
			return []string{t.SignWith(own, right)}
		}},
		changed("crit", tokBoth(tokHeader("crit", []string{"x"}), tokHeader("x", 1))),
		changed("payload", tokRaw("[]")),
		changed("expired", tokFrom("exp", -time.Hour, 0)),
		changed("no-exp", tokClaim("exp", nil)),
		changed("not-yet-valid", tokFrom("nbf", time.Hour, 0)),
		changed("other-aud", tokClaim("aud", "https://other.example/")),
		changed("no-aud", tokClaim("aud", nil)),
		changed("unknown-iss", tokClaim("iss", "https://unknown.example")),
		changed("no-iss", tokClaim("iss", nil)),
	}
}

// tokReportChecks are those of what a refusal says: the same for each defect, to publishers and to subscribers.
func tokReportChecks(f *tokForger) []suite.Check {
	var checks []suite.Check
	for _, d := range tokDefects(f) {
		checks = append(checks, one("TOK-23", d.name, func(t *suite.T) {
			none := true
			for _, issuer := range t.Target().Issuers {
				writer, reader := tokRight(t, issuer), tokReader(t, issuer)
				for _, token := range d.forge(t, issuer.Publish, tokAnother(writer)) {
					none = false
					tokPublish(t, tokRightOf(issuer), t.SignWith(issuer.Publish, writer), 200)
					tokWantError(t, tokPublish(t, d.name, token, 401), "invalid_token")
				}
				for _, token := range d.forge(t, issuer.Subscribe, tokAnother(reader)) {
					none = false
					tokSubscribe(t, tokRightOf(issuer), t.SignWith(issuer.Subscribe, reader), 200)
					tokWantError(t, tokSubscribe(t, d.name, token, 401), "invalid_token")
				}
			}
			if none {
				t.Skip(tokNoKind)
			}
			t.Observed("401 with invalid_token, to publishers and to subscribers")
		}))
	}
	return checks
}

// tokSubscribeChecks are those of subscribers: who presents a token that is refused does not become an anonymous
// subscriber.
func tokSubscribeChecks(f *tokForger) []suite.Check {
	var checks []suite.Check
	for _, d := range tokDefects(f) {
		checks = append(checks, one("TOK-25", d.name, func(t *suite.T) {
			none := true
			for _, issuer := range t.Target().Issuers {
				right := tokReader(t, issuer)
				made := d.forge(t, issuer.Subscribe, tokAnother(right))
				if len(made) == 0 {
					continue
				}
				none = false
				tokSubscribe(t, tokRightOf(issuer), t.SignWith(issuer.Subscribe, right), 200)
				seen := map[int]int{}
				for _, token := range made {
					seen[tokSubscribe(t, d.name, token, 401).Status]++
				}
				tokNote(t, issuer.Subscribe, seen)
			}
			if none {
				t.Skip(tokNoKind)
			}
		}))
	}
	ways := []struct {
		name    string
		request func(t *suite.T, token string) wire.Request
		needs   []suite.Feature
	}{
		{"by-cookie", func(t *suite.T, token string) wire.Request {
			return t.InCookie(t.Get(wire.Form("match", t.Topic())), token)
		}, []suite.Feature{suite.Cookie}},
		{"by-QUERY", func(t *suite.T, token string) wire.Request {
			return suite.Bearer(t.Query("", wire.Form("match", t.Topic())), token)
		}, []suite.Feature{suite.QueryMethod}},
		{"with-a-cursor", func(t *suite.T, token string) wire.Request {
			return suite.Bearer(t.Get(wire.Form("match", t.Topic(), "last_event_id", "earliest")), token)
		}, nil},
		{"subscription-API", func(t *suite.T, token string) wire.Request {
			t.Need(suite.SubscriptionAPI)
			return suite.Bearer(t.At(t.Target().Path()+"/subscriptions"), token)
		}, []suite.Feature{suite.Subscriptions}},
	}
	for _, way := range ways {
		checks = append(checks, one("TOK-25", way.name, func(t *suite.T) {
			issuer := t.Target().Issuers[0]
			right := tokReader(t, issuer)
			t.Want(way.request(t, t.SignWith(issuer.Subscribe, right)), 200)
			expired, foreign := tokAnother(right), tokAnother(right)
			expired.Claims["exp"] = time.Now().Add(-time.Hour).Unix()
			foreign.Claims["aud"] = "https://other.example/"
			for _, token := range []string{
				t.SignWith(issuer.Subscribe, expired), t.SignWith(issuer.Subscribe, foreign),
				t.SignWith(f.key(t, issuer.Subscribe.Alg, issuer.Subscribe.Kid), tokAnother(right)),
			} {
				t.Want(way.request(t, token), 401)
			}
		}, way.needs...))
	}
	return checks
}

// tokRoleChecks are those of separate keys: each opens the endpoint of its own role only (reading 19).
func tokRoleChecks() []suite.Check {
	both := func(token jose.Token) jose.Token {
		token = tokAnother(token)
		token.Claims["authorization_details"] = suite.Details(suite.CanPublish(suite.Any()), suite.CanSubscribe(suite.Any()))
		return token
	}
	publish := func(grant func(jose.Token) jose.Token) func(t *suite.T) {
		return func(t *suite.T) {
			issuer := t.Target().Issuers[0]
			right := tokRight(t, issuer)
			tokPublish(t, "a right token", t.SignWith(issuer.Publish, right), 200)
			for _, k := range []jose.Key{issuer.Publish, issuer.Subscribe} {
				for _, token := range tokKids(grant(right), k) {
					// That it may have been accepted where it belongs changes nothing.
					tokSubscribe(t, "the subscriber key", t.SignWith(issuer.Subscribe, token), 200, 401, 403)
					tokPublish(t, "the subscriber key", t.SignWith(issuer.Subscribe, token), 401)
				}
			}
			t.Observed("the subscriber key publishes nothing")
		}
	}
	subscribe := func(grant func(jose.Token) jose.Token) func(t *suite.T) {
		return func(t *suite.T) {
			issuer := t.Target().Issuers[0]
			right := tokReader(t, issuer)
			tokSubscribe(t, "a right token", t.SignWith(issuer.Subscribe, right), 200)
			for _, k := range []jose.Key{issuer.Publish, issuer.Subscribe} {
				for _, token := range tokKids(grant(right), k) {
					tokPublish(t, "the publisher key", t.SignWith(issuer.Publish, token), 200, 401, 403)
					tokSubscribe(t, "the publisher key", t.SignWith(issuer.Publish, token), 401)
				}
			}
			t.Observed("the publisher key opens no subscription")
		}
	}
	return []suite.Check{
		one("TOK-26", "publish-by-the-subscriber-key", publish(tokAnother), suite.SeparateKeys),
		one("TOK-26", "publish-by-the-subscriber-key-with-both-actions", publish(both), suite.SeparateKeys),
		one("TOK-26", "subscribe-by-the-publisher-key", subscribe(tokAnother), suite.SeparateKeys),
		one("TOK-26", "subscribe-by-the-publisher-key-with-both-actions", subscribe(both), suite.SeparateKeys),
	}
}

// tokServerChecks are those of an authorization server, and of the resource identifier.
func tokServerChecks() []suite.Check {
	return slices.Concat(
		[]suite.Check{
			one("TOK-27", "publish", func(t *suite.T) {
				t.Observed("%d", tokPublish(t, "a token of the authorization server", t.ServerToken(suite.CanPublish(suite.Any())), 200).Status)
			}, suite.TrustedServer),
			one("TOK-27", "subscribe", func(t *suite.T) {
				topic := t.Topic()
				s := t.ListenWith(suite.Bearer(t.Get(wire.Form("match", topic)), t.ServerToken(suite.CanSubscribe(suite.Exact(topic)))))
				s.Want(t.Publish("topic", topic, "data", "x", "private", "on"))
			}, suite.TrustedServer),
			one("TOK-21", "authorization-server", func(t *suite.T) {
				token := t.ServerToken(suite.CanPublish(suite.Any()))
				tokPublish(t, "a token of the authorization server", token, 200)
				at := len(token) - 20 // in the signature, where no bit is unused
				letter := byte('A')
				if token[at] == letter {
					letter = 'B'
				}
				tokPublish(t, "the same with another signature", token[:at]+string(letter)+token[at+1:], 401)
			}, suite.TrustedServer),
			one("TOK-28", "metadata", func(t *suite.T) {
				if t.Target().Resource != t.Target().URL {
					t.Skip("the operator chose another resource identifier, as the recommendation allows")
				}
				resp := t.Fetch(t.Target().MetadataURL(), wire.Request{Method: "GET"})
				var meta struct {
					Resource string `json:"resource"`
				}
				if err := json.Unmarshal([]byte(resp.Body), &meta); err != nil || resp.Status != 200 {
					t.Fail("the metadata is no JSON object: status %d", resp.Status)
				}
				if meta.Resource != t.Target().URL {
					t.Fail("resource is %q, wanted the hub URL %q", meta.Resource, t.Target().URL)
				}
				t.Observed("resource is %q", meta.Resource)
			}, suite.Metadata),
		},
	)
}
