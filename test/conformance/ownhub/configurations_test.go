package ownhub_test

import "time"

// configuration is one of our hub's, with what the suite is told of it.
type configuration struct {
	name  string // heads its column
	about string

	tls      bool   // the hub speaks TLS
	nginx    bool   // nginx in front of it does
	path     string // of the hub URL; empty: the default one
	resource string // the resource identifier; empty: the hub URL
	issuers  []issuer
	server   bool // it also trusts an authorization server
	segments bool // history in segments; otherwise in memory
	closed   bool // no anonymous subscribers

	subscriptions bool // active ones

	cors      string // an origin that may use the hub
	publisher string // an origin that may publish with the cookie

	heartbeat, lifetime time.Duration // 0: as by default, which is too long to wait for

	heavy bool // the load-shaped checks run here
	usual bool // it runs without -all too
}

// issuer signs tokens with keys that we hold.
type issuer struct {
	id       string
	alg      string
	separate bool // a key for each role
}

// configurations lists what is tested, the longest first.
func configurations() []configuration {
	self := func(algs ...string) []issuer { // further issuers are asked rarely: what is slow to sign with is there
		ids := []string{"https://issuer.example", "https://second.example"}
		list := make([]issuer, len(algs))
		for i, alg := range algs {
			list[i] = issuer{id: ids[i], alg: alg}
		}
		return list
	}
	return []configuration{
		{
			name: "timed", about: "http, a heartbeat of 1 s, connections of 20 s at most; HS384",
			issuers: self("HS384"), heartbeat: time.Second, lifetime: 20 * time.Second,
		},
		{
			name: "plain", about: "http, anonymous subscribers, history in memory, one key; HS256",
			issuers: self("HS256"), heavy: true, usual: true,
		},
		{
			name: "nginx", about: "http behind nginx, which ends TLS; active subscriptions, history in segments; ES256",
			subscriptions: true, nginx: true, issuers: self("ES256"), segments: true, heavy: true,
		},
		{
			name: "closed", about: "https, no anonymous subscribers, history in segments, a key for each role; ES256",
			tls: true, closed: true, segments: true, usual: true, issuers: []issuer{{id: "https://issuer.example", alg: "ES256", separate: true}},
			cors: "https://app.example.com", publisher: "https://app.example.com",
		},
		{
			name: "browser", about: "https, with the origins of pages that use the hub and of those that publish with the cookie; RS256",
			tls: true, issuers: self("RS256"), cors: "https://app.example.com", publisher: "https://editor.example.com",
		},
		{
			name: "issuers", about: "http, two issuers, history in segments; HS512 and ES512",
			issuers: self("HS512", "ES512"), segments: true,
		},
		{
			name: "server", about: "http, an authorization server beside two issuers; EdDSA and ES384",
			issuers: self("EdDSA", "ES384"), server: true,
		},
		{
			name: "path", about: "http at /hubs/live, a resource identifier that is not the hub URL, active subscriptions, history in segments; EdDSA and PS256",
			subscriptions: true, path: "/hubs/live", resource: "https://live.example.com/", segments: true, issuers: self("EdDSA", "PS256"),
		},
		{
			name: "watched", about: "http, active subscriptions, connections of 20 s at most; ES256",
			subscriptions: true, segments: true, lifetime: 20 * time.Second, issuers: self("ES256"), cors: "https://app.example.com", publisher: "https://app.example.com",
		},
	}
}
