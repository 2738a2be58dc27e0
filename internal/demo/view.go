package demo

import (
	"net/url"
	"strings"
)

// view is what the start page's template shows.
type view struct {
	HubURL    string // absolute, as clients are told it
	HubPath   string // the same origin's spelling, which the page's own requests use
	Session   string // path of the session document
	Login     string // path that starts a sign-in and returns here
	Issuer    string
	Metadata  string // path of the hub's metadata (RFC 9728)
	ASMeta    string // URL of the authorization server's metadata (RFC 8414)
	Resource  string // path of the demo resource
	Topic     string // what the form publishes to
	Pattern   string // what the page subscribes to
	TopicBase string
	Data      string // what the form publishes
	User      string
	OtherFace string
	Version   string
	Commands  []Command
	Problem   string // the outcome of a sign-in that failed, in words
}

func newView(o Options, hub *url.URL) view {
	hubPath := hub.EscapedPath()
	v := view{
		HubURL:    o.HubURL,
		HubPath:   hubPath,
		Session:   hubPath + "/session",
		Login:     hubPath + "/session/login?return_to=%2F",
		Issuer:    o.Issuer,
		Metadata:  "/.well-known/oauth-protected-resource" + hubPath,
		Resource:  bookPath + "1",
		Topic:     o.TopicBase + "/books/1",
		Pattern:   o.TopicBase + "/*",
		TopicBase: o.TopicBase,
		User:      o.User,
		OtherFace: o.OtherFace,
		Version:   o.Version,
		Commands:  o.Commands,
	}
	v.Data = `{"status": "available"}`
	if issuer, err := url.Parse(o.Issuer); err == nil {
		// RFC 8414 section 3.1: the well-known path stands between host and path.
		issuer.Path = "/.well-known/oauth-authorization-server" + strings.TrimSuffix(issuer.Path, "/")
		v.ASMeta = issuer.String()
	}
	return v
}

// problemText puts the broker's session_error values into words. An unknown value says nothing: the parameter can be
// written by anybody.
func problemText(code string) string {
	switch code {
	case "login_denied":
		return "You were not signed in: the request was declined. Nothing was changed."
	case "login_failed":
		return "Signing in did not work. The server's log says why."
	case "temporarily_unavailable":
		return "The sign-in service cannot be reached at the moment. Try again shortly."
	case "token_too_large":
		return "You were granted more topics than fit into a browser cookie. Grant fewer or wider topic patterns."
	}
	return ""
}
