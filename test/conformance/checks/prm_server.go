package checks

import (
	"encoding/json"
	"net/url"
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// prmServer asks the authorization server for what a hub needs to find its keys (RFC 8414).
func prmServer() []suite.Check {
	return []suite.Check{
		one("PRM-15", "issuer", func(t *suite.T) {
			// The two must be identical, without any normalisation (RFC 8414 section 3.3).
			if issuer := t.ServerMetadata()["issuer"]; issuer != t.Target().AuthorizationServer.Issuer {
				t.Fail("issuer is %s, wanted %q", prmJSON(issuer), t.Target().AuthorizationServer.Issuer)
			}
		}, suite.TrustedServer),
		one("PRM-15", "jwks_uri", func(t *suite.T) {
			t.Observed("%d keys", len(prmServerKeys(t)))
		}, suite.TrustedServer),
		one("PRM-15", "jwks-public-only", func(t *suite.T) {
			for i, key := range prmServerKeys(t) {
				for _, secret := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
					if _, ok := key[secret]; ok {
						t.Fail("key %d of the set has the private member %q", i, secret)
					}
				}
			}
		}, suite.TrustedServer),
		one("PRM-15", "detail-type", func(t *suite.T) {
			value := t.ServerMetadata()["authorization_details_types_supported"]
			if list, ok := prmStrings(value); !ok || !slices.Contains(list, suite.DetailType) {
				t.Fail("authorization_details_types_supported is %s, wanted %s in it", prmJSON(value), suite.DetailType)
			}
		}, suite.TrustedServer),
	}
}

// prmServerKeys gets the key set that the metadata of the authorization server names (RFC 7517 section 5).
func prmServerKeys(t *suite.T) []jose.Object {
	value := t.ServerMetadata()["jwks_uri"]
	at, _ := value.(string)
	if u, err := url.Parse(at); err != nil || u.Host == "" {
		t.Fail("jwks_uri is %s, wanted an absolute URL", prmJSON(value))
	}
	resp := t.Fetch(at, wire.Request{Method: "GET"})
	var set struct {
		Keys []jose.Object `json:"keys"`
	}
	if err := json.Unmarshal([]byte(resp.Body), &set); resp.Status != 200 || err != nil || len(set.Keys) == 0 {
		t.Fail("%s answers %d and no JWK Set with a key", at, resp.Status)
	}
	for i, key := range set.Keys {
		if kind, ok := key["kty"].(string); !ok || kind == "" {
			t.Fail("key %d of the set has no kty", i)
		}
	}
	return set.Keys
}
