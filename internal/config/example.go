package config

// ExampleHub gives a complete configuration, as the reference shows it.
func ExampleHub() Hub {
	h := DefaultHub()
	h.PublicURL = "https://hub.example.com/.well-known/mercure"
	h.ResourceName = "Example hub"
	h.TLS.CertFile, h.TLS.KeyFile = "tls.crt", "tls.key"
	h.CORSOrigins = []string{"https://app.example.com"}
	h.Issuers = []Issuer{
		{
			ID:         "https://app.example.com",
			Publisher:  IssuerRole{Keys: []IssuerKey{{Algorithm: "HS256", SecretFile: "publisher.secret"}}},
			Subscriber: IssuerRole{Keys: []IssuerKey{{Algorithm: "ES256", PEMFile: "subscriber.pem"}}},
		},
		{ID: "https://auth.example.com", AuthorizationServer: true},
	}
	h.Session.Issuer = "https://auth.example.com"
	h.Session.ClientID = "hub"
	h.Session.ClientKeyFile, h.Session.KeysFile = "broker.jwk", "session.keys"
	h.Session.Profiles = map[string]Profile{"default": {Scope: "live"}}
	h.Session.ReturnToOrigins = []string{"https://app.example.com"}
	return h
}

// ExampleAuthz gives a complete configuration, as the reference shows it.
func ExampleAuthz() Authz {
	a := DefaultAuthz()
	a.Issuer = "https://auth.example.com"
	a.TLS.CertFile, a.TLS.KeyFile = "tls.crt", "tls.key"
	a.Resources = []Resource{{
		ID: "https://hub.example.com/.well-known/mercure", Name: "Example hub", HubURL: "https://hub.example.com/.well-known/mercure",
	}}
	a.Clients = []Client{
		{
			ID: "hub", Name: "Example hub", AuthMethod: "private_key_jwt", JWKSFile: "broker.jwks",
			GrantTypes:   []string{"authorization_code", "refresh_token"},
			RedirectURIs: []string{"https://hub.example.com/.well-known/mercure/session/callback"}, SkipConsent: true, Broker: true,
		},
		{
			ID: "spa", Name: "Example app", AuthMethod: "none", GrantTypes: []string{"authorization_code", "refresh_token"},
			RedirectURIs: []string{"https://app.example.com/callback"},
		},
		{
			ID: "worker", Name: "Example worker", AuthMethod: "client_secret_basic", SecretFile: "worker.secret",
			GrantTypes: []string{"client_credentials"},
		},
	}
	own := Detail{Actions: []string{"subscribe"}, Topics: []Topic{{Match: "https://app.example.com/users/{{sub}}/*", MatchType: "urlpattern"}}}
	a.Policies = []Policy{{
		ID: "own-namespace", When: When{Clients: []string{"hub", "spa"}}, Grant: []Detail{own},
		OnMissingRequest: "grant_all", OnExcess: "trim",
	}, {
		ID: "worker-publishes", When: When{Clients: []string{"worker"}},
		Grant: []Detail{{
			Actions: []string{"publish"},
			Topics:  []Topic{{Match: "https://app.example.com/*", MatchType: "urlpattern"}},
		}},
		OnMissingRequest: "grant_all", OnExcess: "deny",
	}}
	a.Scopes = map[string][]Detail{"live": {{
		Actions: []string{"subscribe"}, Topics: []Topic{{Match: "*"}},
	}}}
	return a
}
