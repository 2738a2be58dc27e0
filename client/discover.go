package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// ErrNoHub says that a resource names no hub.
var ErrNoHub = errors.New("client: the resource names no hub")

// maxRedirects bounds the redirects that Discover follows.
const maxRedirects = 5

// Discovery is what a resource says about its live updates (Mercure, "Discovery").
type Discovery struct {
	// HubURL is the URL of the hub, absolute. It is the resource's word: whoever sends a token there should know the host.
	HubURL string
	// Topic is the topic to subscribe to: the resource's canonical URL, or the one it was read from.
	Topic string
	// Cursor is the id of the last event at the time the resource was read, for [Subscription.Cursor]; empty when it says none.
	Cursor string
	// ContentType is the media type of the updates' data: what the resource says about them, or its own.
	ContentType string
	// EventType is the event type of the updates; empty means "message" when all have the same, and nothing otherwise.
	EventType string
}

// Discover asks a resource for its hub: it sends a GET and reads the Link fields of the response (RFC 8288), not its body. Of
// several hubs it takes the first. At most 5 redirects are followed, none of them from https to http, for at most 30 seconds. A nil
// client is one without credentials that bounds what it reads.
//
// It returns [ErrNoHub] when the resource names none, else an [*Error].
func Discover(ctx context.Context, client *http.Client, resource string) (Discovery, error) {
	ctx, cancel := limited(ctx, defaultTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, resource, http.NoBody)
	if err != nil {
		return Discovery{}, failed("discover", context.Cause(ctx), err)
	}
	resp, err := discoverer(client).Do(req)
	if err != nil {
		return Discovery{}, failed("discover", context.Cause(ctx), err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return Discovery{}, refused("discover", resp)
	}
	_ = resp.Body.Close() // its header is what counts
	return readLinks(resp.Header, resp.Request.URL)
}

// discoverer gives a copy of the client with a stricter redirect policy.
func discoverer(given *http.Client) *http.Client {
	var c http.Client
	if given != nil {
		c = *given
	} else {
		t := newTransport(nil)
		t.DisableKeepAlives = true // nobody could close them
		c.Transport = t
	}
	policy := c.CheckRedirect
	c.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https":
			return errors.New("a redirect from https to " + next.URL.Scheme)
		case policy != nil:
			return policy(next, via)
		}
		return nil
	}
	return &c
}

// readLinks reads what the header of the resource at base says.
func readLinks(h http.Header, base *url.URL) (Discovery, error) {
	own := *base
	own.Fragment, own.RawFragment, own.User = "", "", nil
	d := Discovery{Topic: own.String()}
	var self bool
	for _, l := range parseLinks(h.Values("Link")) {
		target, ok := l.resolve(&own)
		if !ok {
			continue
		}
		if d.HubURL == "" && l.has(relHub) && target.Host != "" && (target.Scheme == "https" || target.Scheme == "http") {
			d.HubURL = target.String()
			d.Cursor, d.EventType, d.ContentType = l.params["last-event-id"], l.params["type"], l.params["content-type"]
		}
		if !self && l.has(relSelf) {
			self = true
			d.Topic = target.String()
		}
	}
	if d.HubURL == "" {
		return Discovery{}, ErrNoHub
	}
	if d.ContentType == "" {
		d.ContentType = h.Get("Content-Type")
	}
	return d, nil
}
