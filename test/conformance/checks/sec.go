package checks

import (
	"net/url"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func secChecks() []suite.Check {
	return slices.Concat(secForgery(), secHeader(), secInjection())
}

// secFields are Origin and Referer fields of a publication by cookie; empty ones are not sent.
type secFields struct{ origin, referer string }

func (f secFields) on(r wire.Request) wire.Request {
	if f.origin != "" {
		r = r.With("Origin", f.origin)
	}
	if f.referer != "" {
		r = r.With("Referer", f.referer)
	}
	return r
}

// lookAlikes are origins that are not the allowed one, but resemble it.
func lookAlikes(allowed string) []pubCase {
	u, err := url.Parse(allowed)
	if err != nil || u.Host == "" {
		return nil
	}
	host, port, end := u.Hostname(), u.Port(), ""
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		end = ":" + port
	}
	scheme := map[string]string{"http": "https", "https": "http"}[u.Scheme]
	otherPort := ":8445"
	if end == otherPort {
		otherPort = ":8446"
	}
	return []pubCase{
		{"other-host", u.Scheme + "://evil.example"},
		{"other-host-same-port", u.Scheme + "://evil.example" + end},
		{"suffix", allowed + ".evil.example"},
		{"host-suffix", u.Scheme + "://" + host + ".evil.example" + end},
		{"host-prefix", u.Scheme + "://evil" + host + end},
		{"sub-domain", u.Scheme + "://evil." + host + end},
		{"other-scheme", scheme + "://" + host + end},
		{"other-port", u.Scheme + "://" + host + otherPort},
		{"host-as-userinfo", u.Scheme + "://" + host + "@evil.example"},
		{"origin-as-userinfo", allowed + "@evil.example"},
	}
}

// lookAlike gives the origin of this name.
func lookAlike(t *suite.T, name string) string {
	for _, c := range lookAlikes(t.Target().PublishOrigin) {
		if c.name == name {
			return c.text
		}
	}
	t.Fail("%q is no origin", t.Target().PublishOrigin)
	return ""
}

// secForgery publishes by cookie, as a page of another site could make a browser do.
func secForgery() []suite.Check {
	refused := func(id, name string, fields func(t *suite.T) secFields) suite.Check {
		return one(id, name, func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, fields(t).on(t.InCookie(publication(t, topic), t.PublishAll())))
		}, suite.Cookie)
	}
	fixed := func(origin, referer string) func(t *suite.T) secFields {
		return func(*suite.T) secFields { return secFields{origin, referer} }
	}
	const evil = "https://evil.example"
	checks := []suite.Check{
		refused("SEC-05", "foreign-origin", fixed(evil, "")),
		refused("SEC-05", "foreign-origin-and-referer", fixed(evil, evil+"/page")),
		one("SEC-05", "foreign-origin-private", func(t *suite.T) {
			topic := t.Topic()
			r := t.InCookie(t.Post(wire.Form("topic", topic, "data", "x", "private", "on")), t.PublishAll())
			refusedQuietly(t, topic, r.With("Origin", evil))
		}, suite.Cookie),
		one("SEC-05", "foreign-origin-beside-other-cookies", func(t *suite.T) {
			topic := t.Topic()
			r := publication(t, topic).With("Cookie", "a=b; "+t.Target().CookieName+"="+t.PublishAll()).With("Origin", evil)
			refusedQuietly(t, topic, r)
		}, suite.Cookie),
		refused("SEC-06", "foreign-origin-own-referer", func(t *suite.T) secFields {
			return secFields{evil, t.Target().PublishOrigin + "/page"}
		}),
		refused("SEC-06", "list-of-origins", func(t *suite.T) secFields {
			return secFields{t.Target().PublishOrigin + " " + evil, ""}
		}),
		refused("SEC-06", "list-of-origins-foreign-first", func(t *suite.T) secFields {
			return secFields{evil + " " + t.Target().PublishOrigin, ""}
		}),
		refused("SEC-06", "foreign-referer", fixed("", evil+"/page")),
		refused("SEC-06", "own-origin-in-path-of-referer", func(t *suite.T) secFields {
			return secFields{"", evil + "/" + t.Target().PublishOrigin + "/"}
		}),
		refused("SEC-06", "own-origin-in-query-of-referer", func(t *suite.T) secFields {
			return secFields{"", evil + "/?" + t.Target().PublishOrigin + "/"}
		}),
		refused("SEC-06", "own-origin-in-fragment-of-referer", func(t *suite.T) secFields {
			return secFields{"", evil + "/#" + t.Target().PublishOrigin + "/"}
		}),
		refused("SEC-07", "both-missing", fixed("", "")),
		one("SEC-07", "both-empty", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, t.InCookie(publication(t, topic), t.PublishAll()).With("Origin", "").With("Referer", ""))
		}, suite.Cookie),
		refused("SEC-07", "referer-without-origin", fixed("", "about:blank")),
		refused("SEC-07", "relative-referer", fixed("", "/page")),
		refused("SEC-13", "null", fixed("null", "")),
		refused("SEC-13", "null-and-own-referer", func(t *suite.T) secFields {
			return secFields{"null", t.Target().PublishOrigin + "/page"}
		}),
		refused("SEC-13", "null-and-null-referer", fixed("null", "null")),
		refused("SEC-13", "null-as-referer", fixed("", "null")),
	}
	for _, c := range lookAlikes("https://placeholder.example") {
		checks = append(checks,
			refused("SEC-06", c.name+"-as-origin", func(t *suite.T) secFields { return secFields{lookAlike(t, c.name), ""} }),
			refused("SEC-06", c.name+"-as-referer", func(t *suite.T) secFields { return secFields{"", lookAlike(t, c.name) + "/page"} }))
	}
	published := func(name string, fields func(origin string) secFields) suite.Check {
		return one("SEC-06", name, func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			r := fields(t.Target().PublishOrigin).on(t.InCookie(publication(t, topic), t.PublishAll()))
			s.Want(t.PublishWith(r))
		}, suite.Cookie)
	}
	return append(checks,
		published("own-origin", func(origin string) secFields { return secFields{origin, ""} }),
		published("own-origin-and-referer", func(origin string) secFields { return secFields{origin, origin + "/page"} }),
		published("own-referer", func(origin string) secFields { return secFields{"", origin + "/page?q=1"} }),
		published("own-referer-without-path", func(origin string) secFields { return secFields{"", origin + "/"} }),
	)
}

// secHeader publishes with the header, which no page of another site can make a browser send.
func secHeader() []suite.Check {
	published := func(name string, change func(t *suite.T, r wire.Request) wire.Request, needs ...suite.Feature) suite.Check {
		return one("SEC-08", name, func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.PublishWith(change(t, suite.Bearer(publication(t, topic), t.PublishAll()))))
		}, needs...)
	}
	return []suite.Check{
		published("no-origin", func(_ *suite.T, r wire.Request) wire.Request { return r }),
		published("no-origin-private", func(t *suite.T, r wire.Request) wire.Request {
			r.Body = append(slices.Clone(r.Body), "&private=on"...)
			return r
		}),
		published("no-origin-and-a-cookie", func(t *suite.T, r wire.Request) wire.Request {
			return t.InCookie(r, t.PublishAll())
		}, suite.Cookie),
		published("own-origin", func(t *suite.T, r wire.Request) wire.Request { return r.With("Origin", t.Target().PublishOrigin) }),
	}
}

// secInjection tries to write lines of its own into the streams of others.
func secInjection() []suite.Check {
	const evil = "data: injected"
	breaks := []struct{ name, text string }{{"LF", "\n"}, {"CR", "\r"}, {"CRLF", "\r\n"}}
	// No event may have a line that was injected, whatever the hub makes of the request.
	unharmed := func(t *suite.T, topic, form string) {
		s := t.ListenTo(topic)
		resp := t.Do(pubPost(t, form))
		if resp.Status >= 500 {
			t.Fail("answered %d", resp.Status)
		}
		t.Observed("answered %d", resp.Status)
		events := s.Events()
		for _, e := range events {
			for _, l := range e.Lines {
				if strings.Contains(l.Value, "injected") {
					t.Fail("a line %q arrived", l.Name)
				}
			}
		}
		if resp.Status == 200 && len(events) != 1 || resp.Status != 200 && len(events) != 0 {
			t.Fail("%d events arrived after a %d", len(events), resp.Status)
		}
	}
	var checks []suite.Check
	for _, b := range breaks {
		for _, field := range []string{"id", "type", "retry"} {
			// The value is one that the field may have, up to the line break.
			good := map[string]string{"id": "urn:x:y", "type": "t", "retry": "1"}[field]
			bad := good + b.text + evil + b.text + b.text
			checks = append(checks,
				one("SEC-10", field+"-"+b.name, func(t *suite.T) {
					topic := t.Topic()
					refusedQuietly(t, topic, pubPost(t, wire.Form("topic", topic, "data", "x", field, bad)), 400)
				}),
				// Which of two values counts is open, but not whether it is looked at.
				one("SEC-10", field+"-"+b.name+"-after-a-good-one", func(t *suite.T) {
					topic := t.Topic()
					unharmed(t, topic, wire.Form("topic", topic, "data", "x", field, good, field, bad))
				}),
				one("SEC-10", field+"-"+b.name+"-before-a-good-one", func(t *suite.T) {
					topic := t.Topic()
					unharmed(t, topic, wire.Form("topic", topic, "data", "x", field, bad, field, good))
				}))
		}
		checks = append(checks, one("SEC-10", "topic-"+b.name, func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, pubPost(t, wire.Form("topic", topic, "topic", t.Topic()+b.text+evil+b.text+b.text, "data", "x")), 400)
		}))
	}
	return checks
}
