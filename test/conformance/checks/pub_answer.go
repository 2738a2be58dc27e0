package checks

import (
	"mime"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func pubUnknown() []suite.Check {
	return pubEach("PUB-29", []pubCase{
		{"foo", "foo=bar"},
		{"Topic", "Topic=x"},
		{"data2", "data2=y"},
		{"together", "foo=bar&Topic=x&data2=y"},
		{"name-alone", "foo"},
		{"empty-name", "=x"},
		{"brackets", "topic%5B%5D=x&data%5Ba%5D=x"},
		{"of-subscriptions", "match=x&match_nope=x&last_event_id=x"},
		{"of-events", "event=x&lastEventId=x"},
		{"control-characters", "foo=%00%0A%7F"},
		{"beyond-ASCII", "%C3%A9=%E2%80%8B"},
		{"star", "foo=*"},
		{"repeated", "foo=1&foo=2"},
	}, func(t *suite.T, fields string) {
		for _, form := range []string{"data=d&" + fields, fields + "&data=d"} {
			if e := pubArrives(t, form); e.Data != "d" || e.Type != "" && e.Type != "message" {
				t.Fail("the event has the data %q and the type %q", e.Data, e.Type)
			}
		}
	})
}

func pubAnswer() []suite.Check {
	listened := func(fields ...string) func(t *suite.T) (*wire.Response, *suite.Stream) {
		return func(t *suite.T) (*wire.Response, *suite.Stream) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			return t.Do(pubPost(t, wire.Form(append([]string{"topic", topic}, fields...)...))), s
		}
	}
	type answer struct {
		name string
		send func(t *suite.T) (*wire.Response, *suite.Stream)
	}
	answers := []answer{
		{"id-generated", listened("data", "x")},
		{"private", listened("data", "x", "private", "on")},
		{"without-data", listened()},
		{"id-given", func(t *suite.T) (*wire.Response, *suite.Stream) {
			return listened("data", "x", "id", "urn:x:"+t.Unique("id"))(t)
		}},
		{"odd-id-given", func(t *suite.T) (*wire.Response, *suite.Stream) {
			return listened("data", "x", "id", t.Unique("é %41+\"<世")+":x")(t)
		}},
	}
	var checks []suite.Check
	for _, a := range answers {
		checks = append(checks,
			one("PUB-30", a.name, func(t *suite.T) {
				if resp, _ := a.send(t); resp.Status != 200 {
					t.Fail("answered %d, wanted 200", resp.Status)
				}
			}),
			one("PUB-31", a.name, func(t *suite.T) {
				resp, s := a.send(t)
				// Without the fence, which is known by the id that is in question here.
				if e := s.Next(); resp.Body != e.ID || resp.Body == "" {
					t.Fail("the body is %+q, the event's id %+q", resp.Body, e.ID)
				}
			}),
			one("PUB-32", a.name, func(t *suite.T) {
				resp, _ := a.send(t)
				types := resp.All("Content-Type")
				if len(types) != 1 {
					t.Fail("%d Content-Type fields", len(types))
				}
				media, params, err := mime.ParseMediaType(types[0])
				if err != nil || media != "text/plain" || !strings.EqualFold(params["charset"], "utf-8") {
					t.Fail("Content-Type is %q", types[0])
				}
				t.Observed("%s", types[0])
			}))
	}
	return append(checks, one("PUB-30", "no-subscriber", func(t *suite.T) {
		t.Want(pubPost(t, wire.Form("topic", t.Topic(), "data", "x")), 200)
	}))
}

// pubRefused sends requests of each kind that a hub refuses, each with a good topic that a subscriber listens to.
func pubRefused() []suite.Check {
	type refusal struct {
		name   string
		send   func(t *suite.T, topic string) wire.Request
		status []int
	}
	fields := func(name, fields string) refusal {
		return refusal{name, func(t *suite.T, topic string) wire.Request { return pubPost(t, pubForm(topic, fields)) }, []int{400}}
	}
	token := func(name string, status int, token func(t *suite.T, topic string) string) refusal {
		return refusal{name, func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), token(t, topic))
		}, []int{status}}
	}
	refusals := []refusal{
		fields("400-bad-id", "data=x&id=%23x"),
		fields("400-bad-type", "data=x&type=a%0Ab"),
		fields("400-bad-retry", "data=x&retry=abc"),
		fields("400-reserved-type", "data=x&type=mercure"),
		fields("400-bad-data", "data=%FF"),
		fields("400-star-as-alternate", "data=x&topic=*"),
		fields("400-bad-alternate", "data=x&topic=a%00b"),
		{"400-reserved-alternate", func(t *suite.T, topic string) wire.Request {
			return pubPost(t, wire.Form("topic", topic, "data", "x", "topic", t.Target().Path()+"/x"))
		}, []int{400}},
		{"401-no-token", func(t *suite.T, topic string) wire.Request { return t.Post(wire.Form("topic", topic, "data", "x")) }, []int{401}},
		token("401-bad-signature", 401, func(t *suite.T, _ string) string { return forged(t, suite.Publisher, suite.CanPublish(suite.Any())) }),
		token("401-expired", 401, func(t *suite.T, _ string) string { return expired(t, suite.Publisher, suite.CanPublish(suite.Any())) }),
		token("401-bad-details", 401, func(t *suite.T, _ string) string {
			return t.PublishToken(suite.CanPublish(suite.Any()), suite.Detail{"type": suite.DetailType, "actions": []string{"publish"}})
		}),
		token("403-other-topic", 403, func(t *suite.T, _ string) string {
			return t.PublishToken(suite.CanPublish(suite.Exact(t.Topic())))
		}),
		{"403-one-topic-of-two", func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(t.Post(wire.Form("topic", topic, "topic", t.Topic(), "data", "x")), t.PublishToken(suite.CanPublish(suite.Exact(topic))))
		}, []int{403}},
	}
	var checks []suite.Check
	for _, r := range refusals {
		checks = append(checks, one("PUB-33", r.name, func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, r.send(t, topic), r.status...)
		}))
		if !slices.Contains([]string{"400-bad-id", "400-star-as-alternate", "401-expired", "403-other-topic"}, r.name) {
			continue
		}
		// What was refused is not kept either.
		checks = append(checks, one("PUB-33", r.name+"-in-history", func(t *suite.T) {
			topic := t.Topic()
			first := t.Publish("topic", topic, "data", "kept")
			t.Want(r.send(t, topic), r.status...)
			s := t.Listen(wire.Form("match", topic, "last_event_id", first))
			s.Want()
		}, suite.History))
	}
	publish := func(name string, token func(t *suite.T, r wire.Request) wire.Request, status ...int) suite.Check {
		return one("PUB-35", name, func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, token(t, t.Post(wire.Form("topic", topic, "data", "x"))), status...)
		})
	}
	return append(checks,
		publish("no-token", func(_ *suite.T, r wire.Request) wire.Request { return r }, 401),
		publish("no-grant", func(t *suite.T, r wire.Request) wire.Request { return suite.Bearer(r, t.PublishToken()) }, 403),
		publish("other-topic", func(t *suite.T, r wire.Request) wire.Request {
			return suite.Bearer(r, t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
		}, 403),
		// With separate keys the token may be refused for what it claims (TOK-26).
		publish("subscriber", func(t *suite.T, r wire.Request) wire.Request { return suite.Bearer(r, t.SubscribeAll()) }, 403, 401),
		one("PUB-35", "authorised", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			r := suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), t.PublishToken(suite.CanPublish(suite.Exact(topic))))
			s.Want(t.PublishWith(r))
		}),
	)
}

func pubOdd() []suite.Check {
	below := func(t *suite.T, r wire.Request) {
		resp := t.Do(r)
		if resp.Status >= 500 {
			t.Fail("answered %d", resp.Status)
		}
		t.Observed("answered %d", resp.Status)
		t.Publish("topic", t.Topic(), "data", "still there")
	}
	checks := pubEach("PUB-36", []pubCase{
		{"data-twice", "data=a&data=b"},
		{"id-twice", "id=urn%3Ax%3A1&id=urn%3Ax%3A2"},
		{"type-twice", "type=a&type=b"},
		{"retry-twice", "retry=1&retry=2"},
		{"private-twice", "private=on&private=off"},
		{"retry-of-1000-digits", "retry=" + strings.Repeat("9", 1000)},
		{"empty-id", "id="},
		{"empty-type", "type="},
		{"empty-retry", "retry="},
		{"empty-topic", "topic="},
		{"names-alone", "data&id&type&retry&private"},
		{"unknown-name-not-UTF-8", "%FF=x"},
		{"unknown-value-not-UTF-8", "foo=%FF"},
		{"private-not-UTF-8", "private=%FF"},
	}, func(t *suite.T, fields string) { below(t, pubPost(t, pubForm(t.Topic(), fields))) })
	checks = append(checks, pubEach("PUB-36", []pubCase{
		{"separators-alone", "&&&"}, {"equals-alone", "="}, {"percent-alone", "%"}, {"U+0000-raw", "topic=\x00"},
	}, func(t *suite.T, form string) { below(t, pubPost(t, form)) })...)
	request := func(r func(t *suite.T, form string) wire.Request) func(t *suite.T) {
		return func(t *suite.T) {
			below(t, suite.Bearer(r(t, wire.Form("topic", t.Topic(), "data", "x")), t.PublishAll()))
		}
	}
	return append(checks,
		one("PUB-36", "no-media-type", request(func(t *suite.T, form string) wire.Request {
			return wire.Request{Method: "POST", Target: t.Target().Path(), Body: []byte(form)}
		})),
		one("PUB-36", "bad-media-type", request(func(t *suite.T, form string) wire.Request {
			return wire.Request{Method: "POST", Target: t.Target().Path()}.WithBody(`;;="`, form)
		})),
		one("PUB-36", "no-body", request(func(t *suite.T, _ string) wire.Request {
			return wire.Request{Method: "POST", Target: t.Target().Path()}
		})),
		one("PUB-36", "bad-query", request(func(t *suite.T, form string) wire.Request {
			r := t.Post(form)
			r.Target += "?%zz=%FF;&="
			return r
		})),
	)
}

// pubBodies has bodies that no serialiser makes.
func pubBodies() []suite.Check {
	kept := func(t *suite.T, c pubBody) {
		topic := t.Topic()
		s := t.ListenTo(topic)
		resp := t.Do(pubPost(t, strings.ReplaceAll(c.form, "T", wire.Escape(topic))))
		if c.refusable && resp.Status >= 400 && resp.Status < 500 {
			s.Want()
			t.Observed("refused with %d", resp.Status)
			return
		}
		if resp.Status != 200 {
			t.Fail("answered %d, wanted 200", resp.Status)
		}
		if e := s.Want(resp.Body)[0]; e.Data != c.data {
			t.Fail("%s is received as %+q, wanted %+q", c.form, e.Data, c.data)
		}
	}
	var checks []suite.Check
	for _, c := range []pubBody{
		{"semicolon", "topic=T&data=a;b", "a;b", true},
		{"semicolon-is-no-separator", "data=a;topic=x&topic=T", "a;topic=x", true},
		{"percent-at-the-end", "topic=T&data=100%", "100%", true},
		{"percent-in-the-middle", "data=100%&topic=T", "100%", true},
		{"percent-before-letters", "topic=T&data=%zz", "%zz", true},
		{"percent-before-one-digit", "topic=T&data=%4", "%4", true},
		{"percent-before-an-escape", "topic=T&data=%%41", "%A", true},
		{"further-equals", "topic=T&data=a=b", "a=b", false},
		{"equals-in-front", "topic=T&data==b=", "=b=", false},
		{"empty-pairs", "&&topic=T&", "", false},
		{"empty-pairs-inside", "&topic=T&&&data=x&&", "x", false},
		{"raw-UTF-8", "topic=T&data=é", "é", false},
		{"raw-quotes", "topic=T&data=\"<a>\"", `"<a>"`, false},
	} {
		checks = append(checks, one("PUB-37", c.name, func(t *suite.T) { kept(t, c) }))
	}
	return checks
}

// pubBody is a body, T standing for the topic, and the data that it gives when read by the parser of the standard.
type pubBody struct {
	name, form, data string
	refusable        bool // reading 15 tolerates a refusal
}
