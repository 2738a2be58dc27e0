package suite

import (
	"strings"
	"time"
)

// Check observes one case of one requirement.
type Check struct {
	ID    string    // of the requirement
	Case  string    // what tells it from the other cases of the requirement: short, without spaces
	Needs []Feature // what the hub must have for the check to mean anything; otherwise it is skipped
	// Quiet checks run alone, because they look at what the hub dispatched last, to anybody.
	Quiet bool
	// Heavy checks run alone, after all others.
	Heavy bool
	// Time bounds the check; zero: a minute, or four times the patience of the run if that is more.
	Time time.Duration
	Run  func(t *T)
}

// Name is ID/case.
func (c Check) Name() string { return c.ID + "/" + c.Case }

// Area is the part of the id before the hyphen.
func (c Check) Area() string { a, _, _ := strings.Cut(c.ID, "-"); return a }

// Feature is what a hub may have or lack without being wrong, or what is known of it.
type Feature string

// The features.
const (
	Anonymous       Feature = "anonymous"            // subscribers need no token
	Closed          Feature = "closed"               // every subscriber needs one
	Cookie          Feature = "cookie"               // tokens are accepted in a cookie
	CORS            Feature = "cors"                 // an allowed origin is known
	QueryMethod     Feature = "query"                // the QUERY method is supported
	History         Feature = "history"              // updates are kept for subscribers that reconnect
	Subscriptions   Feature = "subscriptions"        // active subscriptions: events and API
	SubscriptionAPI Feature = "subscription-api"     // active subscriptions with their API, which a hub with the events only should have (ACT-24)
	NoSubscriptions Feature = "no-subscriptions"     // the feature is off
	Metadata        Feature = "metadata"             // protected resource metadata is served
	TLS             Feature = "tls"                  // the hub URL is https
	HTTP2           Feature = "http2"                // the hub speaks HTTP/2 when it is offered
	OneKey          Feature = "one-key"              // one key signs tokens for both roles
	SeparateKeys    Feature = "separate-keys"        // each role has its own key
	AsymmetricKey   Feature = "asymmetric-key"       // a trusted key is asymmetric
	TwoIssuers      Feature = "two-issuers"          // a second issuer is trusted
	TrustedServer   Feature = "authorization-server" // an authorization server is trusted, and issues tokens to us
	OtherPath       Feature = "other-path"           // the hub's path is not the default one
	ShortLifetime   Feature = "lifetime"             // the maximum lifetime of a connection is known and short enough to wait for
	KeepAlive       Feature = "keep-alive"           // the keep-alive period is known and short enough to wait for
)

// Choices are the features that a user switches on or off; all others follow from what else is known of the hub.
func Choices() []Feature {
	return []Feature{Anonymous, Cookie, QueryMethod, History, Subscriptions, Metadata}
}

// lacking says that a hub is not known to have the feature, and how it would be known.
func (f Feature) lacking() string {
	how := map[Feature]string{
		SubscriptionAPI: "it answers 404 to all of it, which ACT-24 judges", HTTP2: "it chooses another protocol when HTTP/2 is offered",
		Anonymous: "-features", Cookie: "-features and -cookie", QueryMethod: "-features", History: "-features", Subscriptions: "-features", Metadata: "-features",
		CORS: "-cors-origin", TLS: "an https URL", OneKey: "one -issuer for both roles", SeparateKeys: "an -issuer for each role",
		AsymmetricKey: "an -issuer with an asymmetric key", TwoIssuers: "a second -issuer", TrustedServer: "-as-issuer",
		OtherPath: "a hub URL with another path", ShortLifetime: "-lifetime of at most 30s", KeepAlive: "-keep-alive of at most 30s",
	}
	text := "the hub is not known to have " + string(f)
	if flag, ok := how[f]; ok {
		text += " (" + flag + ")"
	}
	return text
}
