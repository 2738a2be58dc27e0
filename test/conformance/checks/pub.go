package checks

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func pubChecks() []suite.Check {
	return slices.Concat(
		pubDispatch(), pubMediaType(), pubUTF8(), pubRequired(), pubQueryComponent(), pubDecoding(), pubTopics(), pubStar(),
		pubPrivate(), pubNames(), pubID(), pubType(), pubRetry(),
		pubUnknown(), pubAnswer(), pubRefused(), pubOdd(), pubBodies(),
	)
}

const formType = "application/x-www-form-urlencoded"

// pubCase is a case that differs from others in one text.
type pubCase struct{ name, text string }

// pubEach makes a check of each case.
func pubEach(id string, cases []pubCase, run func(t *suite.T, text string)) []suite.Check {
	checks := make([]suite.Check, len(cases))
	for i, c := range cases {
		checks[i] = one(id, c.name, func(t *suite.T) { run(t, c.text) })
	}
	return checks
}

// pubForm is a body of a topic and of further fields, which are written as they are.
func pubForm(topic, fields string) string { return wire.Form("topic", topic) + "&" + fields }

// pubPost is a publication with tok(publish *).
func pubPost(t *suite.T, form string) wire.Request { return suite.Bearer(t.Post(form), t.PublishAll()) }

// pubWant says that a publication with these further fields is answered with this status.
func pubWant(status int) func(t *suite.T, fields string) {
	return func(t *suite.T, fields string) { t.Want(pubPost(t, pubForm(t.Topic(), fields)), status) }
}

// pubArrives publishes with these further fields, and gives the event that a subscriber of the topic receives.
func pubArrives(t *suite.T, fields string) wire.Event {
	topic := t.Topic()
	s := t.ListenTo(topic)
	id := t.PublishForm(pubForm(topic, fields))
	return s.Want(id)[0]
}

// stranger is a subscriber of a topic whose token grants another one, so only what is public may reach it.
func stranger(t *suite.T, topic string) *suite.Stream {
	token := t.SubscribeToken(suite.CanSubscribe(suite.Exact(t.Topic())))
	return t.ListenWith(suite.Bearer(t.Get("match="+wire.Escape(topic)), token))
}

// refusedQuietly sends a publication that names a topic; the check fails unless the answer is one of these statuses (none:
// any 4xx) and a subscriber of the topic receives nothing.
func refusedQuietly(t *suite.T, topic string, r wire.Request, status ...int) *wire.Response {
	s := t.ListenTo(topic)
	var resp *wire.Response
	if len(status) == 0 {
		resp = t.WantRefused(r)
	} else {
		resp = t.Want(r, status...)
	}
	s.Want()
	return resp
}

func pubDispatch() []suite.Check {
	return []suite.Check{
		one("PUB-01", "dispatched", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			id := t.Publish("topic", topic, "data", "new version")
			if e := s.Want(id)[0]; e.Data != "new version" {
				t.Fail("the event's data is %q", e.Data)
			}
		}),
		one("PUB-01", "every-update", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.Publish("topic", topic, "data", "same"), t.Publish("topic", topic, "data", "same"))
		}),
		one("PUB-01", "topic-alone", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.Publish("topic", topic))
		}),
		one("PUB-01", "all-fields", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.Publish("retry", "1500", "type", "t", "id", "urn:x:"+t.Unique("id"), "private", "on", "data", "x", "topic", topic))
		}),
		one("PUB-01", "chunked", pubChunked),
	}
}

// pubChunked sends the body in chunks, the first of which ends inside an escape (RFC 9112 section 7.1). A server may ask
// for the length instead (RFC 9110 section 15.5.12).
func pubChunked(t *suite.T) {
	u, err := url.Parse(t.Target().URL)
	if err != nil {
		t.Fail("%v", err)
	}
	topic := t.Topic()
	s := t.ListenTo(topic)
	first, second := wire.Form("topic", topic, "data", "a")+"%2", "5b"
	message := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: %s\r\nAuthorization: Bearer %s\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n",
		t.Target().Path(), u.Host, formType, t.PublishAll(), len(first), first, len(second), second)
	resp, err := t.Dialer().Raw(t.Context(), "POST", []byte(message))
	switch {
	case err != nil:
		t.Fail("no answer: %v", err)
	case resp.Status == 411:
		t.Observed("the hub wants a Content-Length")
	case resp.Status != 200:
		t.Fail("answered %d, wanted 200", resp.Status)
	default:
		if e := s.Want(resp.Body)[0]; e.Data != "a%b" {
			t.Fail("the event's data is %q", e.Data)
		}
	}
}

func pubMediaType() []suite.Check {
	checks := pubEach("PUB-03", []pubCase{
		{"mixed-case-and-charset", "Application/X-WWW-Form-UrlEncoded; charset=UTF-8"},
		{"upper-case", "APPLICATION/X-WWW-FORM-URLENCODED"},
		{"lower-case-charset", "application/x-www-form-urlencoded;charset=utf-8"},
		{"quoted-charset", `application/x-www-form-urlencoded; charset="utf-8"`},
		{"other-parameter", "application/x-www-form-urlencoded; x=y"},
		{"space-before-parameter", "application/x-www-form-urlencoded ; charset=UTF-8"},
	}, func(t *suite.T, contentType string) {
		topic := t.Topic()
		s := t.ListenTo(topic)
		r := wire.Request{Method: "POST", Target: t.Target().Path()}.WithBody(contentType, wire.Form("topic", topic, "data", "x"))
		s.Want(t.PublishWith(suite.Bearer(r, t.PublishAll())))
	})
	refuse := func(contentType string, body func(topic string) string) func(*suite.T) {
		return func(t *suite.T) {
			topic := t.Topic()
			r := wire.Request{Method: "POST", Target: t.Target().Path()}.WithBody(contentType, body(topic))
			refusedQuietly(t, topic, suite.Bearer(r, t.PublishAll()))
		}
	}
	form := func(topic string) string { return wire.Form("topic", topic, "data", "x") }
	return append(checks,
		one("PUB-03", "JSON", refuse("application/json", func(topic string) string {
			return `{"topic":"` + topic + `","data":"x"}`
		})),
		one("PUB-03", "multipart", refuse("multipart/form-data; boundary=b", func(topic string) string {
			return strings.ReplaceAll("--b\nContent-Disposition: form-data; name=\"topic\"\n\n"+topic+
				"\n--b\nContent-Disposition: form-data; name=\"data\"\n\nx\n--b--\n", "\n", "\r\n")
		})),
		// The media type is looked at, not only the body.
		one("PUB-03", "form-called-JSON", refuse("application/json", form)),
		one("PUB-03", "form-called-text", refuse("text/plain", form)),
		one("PUB-03", "longer-media-type", refuse(formType+"x", form)),
		one("PUB-03", "media-type-as-parameter", refuse("text/plain; x="+formType, form)),
	)
}

func pubUTF8() []suite.Check {
	checks := pubEach("PUB-04", []pubCase{
		{"data-FF", "data=%FF"},
		{"data-FF-inside", "data=a%FFb"},
		{"data-truncated", "data=a%C3"},
		{"data-overlong", "data=%C0%AF"},
		{"data-surrogate", "data=%ED%A0%80"},
		{"data-beyond-U+10FFFF", "data=%F4%90%80%80"},
		{"data-stray-continuation", "data=%80"},
		{"data-raw-octet", "data=\xFF"},
		{"data-split-by-plus", "data=%C3+%A9"},
		{"id", "id=a%FF"},
		{"type", "type=a%FF"},
	}, func(t *suite.T, fields string) {
		topic := t.Topic()
		refusedQuietly(t, topic, pubPost(t, pubForm(topic, fields)), 400)
	})
	return append(checks, one("PUB-04", "another-charset", func(t *suite.T) {
		topic := t.Topic()
		r := wire.Request{Method: "POST", Target: t.Target().Path()}.WithBody(formType+"; charset=ISO-8859-1", pubForm(topic, "data=%E9"))
		refusedQuietly(t, topic, suite.Bearer(r, t.PublishAll()))
	}))
}

func pubRequired() []suite.Check {
	return pubEach("PUB-05", []pubCase{
		{"data-alone", "data=x"},
		{"empty-body", ""},
		{"all-but-topic", "data=x&private=on&id=urn%3Ax&type=t&retry=1"},
		{"other-case", "Topic=https%3A%2F%2Fexample.com%2Fx&data=x"},
		{"similar-names", "topics=https%3A%2F%2Fexample.com%2Fx&topic%5B%5D=https%3A%2F%2Fexample.com%2Fx"},
	}, func(t *suite.T, form string) { t.Want(pubPost(t, form), 400) })
}

// pubQueryComponent publishes with fields in the query component, which must not count. Refusing such a request is no
// use of them either.
func pubQueryComponent() []suite.Check {
	type look func(t *suite.T, id string, events []wire.Event)
	with := func(name, query, fields string, look look) suite.Check {
		return one("PUB-06", name, func(t *suite.T) {
			topic := t.Topic()
			s := stranger(t, topic)
			r := pubPost(t, pubForm(topic, fields))
			r.Target += "?" + query
			resp := t.Do(r)
			if resp.Status >= 400 && resp.Status < 500 {
				s.Want()
				t.Observed("refused with %d", resp.Status)
				return
			}
			if resp.Status != 200 {
				t.Fail("answered %d", resp.Status)
			}
			look(t, resp.Body, s.Want(resp.Body))
		})
	}
	arrives := func(*suite.T, string, []wire.Event) {}
	return []suite.Check{
		one("PUB-06", "topic", func(t *suite.T) {
			topic := t.Topic()
			r := pubPost(t, "data=x")
			r.Target += "?" + wire.Form("topic", topic)
			refusedQuietly(t, topic, r, 400)
		}),
		one("PUB-06", "further-topic", func(t *suite.T) {
			body, query := t.Topic(), t.Topic()
			s := t.ListenTo(query)
			r := pubPost(t, pubForm(body, "data=x"))
			r.Target += "?" + wire.Form("topic", query)
			if resp := t.Do(r); resp.Status >= 500 {
				t.Fail("answered %d", resp.Status)
			}
			s.Want()
		}),
		with("data", "data=q", "type=t", func(t *suite.T, _ string, events []wire.Event) {
			if events[0].Data != "" {
				t.Fail("the event's data is %q", events[0].Data)
			}
		}),
		with("data-in-both", "data=q", "data=b", func(t *suite.T, _ string, events []wire.Event) {
			if events[0].Data != "b" {
				t.Fail("the event's data is %q", events[0].Data)
			}
		}),
		with("private", "private=on", "data=x", arrives),
		with("id", "id=urn%3Ax%3Aquery", "data=x", func(t *suite.T, id string, _ []wire.Event) {
			if id == "urn:x:query" {
				t.Fail("the id is that of the query")
			}
		}),
		with("type", "type=query", "data=x", func(t *suite.T, _ string, events []wire.Event) {
			if events[0].Type == "query" {
				t.Fail("the type is that of the query")
			}
		}),
		with("retry", "retry=4321", "data=x", func(t *suite.T, _ string, events []wire.Event) {
			if events[0].Retry == "4321" {
				t.Fail("the retry is that of the query")
			}
		}),
	}
}

func pubDecoding() []suite.Check {
	type decoded struct{ name, field, want string }
	var checks []suite.Check
	for _, c := range []decoded{
		{"plus", "data=a+b", "a b"},
		{"encoded-plus", "data=a%2Bb", "a+b"},
		{"encoded-space", "data=a%20b", "a b"},
		{"pluses-at-the-ends", "data=+a++b+", " a  b "},
		{"lower-case-hex", "data=%c3%a9%2b", "é+"},
		{"separators", "data=%26a%3Db%3Bc%25", "&a=b;c%"},
		{"once", "data=%252B%2541%25", "%2B%41%"},
		{"unescaped-marks", "data=*-._%7E", "*-._~"},
		{"name", "%64at%61=x", "x"},
		{"name-with-plus", "data+=x", ""},
		{"name-encoded-twice", "d%2561ta=x", ""},
	} {
		checks = append(checks, one("PUB-07", c.name, func(t *suite.T) {
			if e := pubArrives(t, c.field); e.Data != c.want {
				t.Fail("%s is received as %+q, wanted %+q", c.field, e.Data, c.want)
			}
		}))
	}
	return append(checks,
		one("PUB-07", "topic-name", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.PublishForm("%74opic=" + wire.Escape(topic) + "&data=x"))
		}),
		one("PUB-07", "topic-value", func(t *suite.T) {
			topic := t.Topic()
			s := t.Listen(wire.Form("match", topic+" b+c"))
			s.Want(t.PublishForm("topic=" + wire.Escape(topic) + "+b%2Bc&data=x"))
		}),
		one("PUB-07", "private-name", func(t *suite.T) {
			topic := t.Topic()
			s := stranger(t, topic)
			t.PublishForm(pubForm(topic, "%70rivat%65=on"))
			s.Want()
		}),
	)
}

func pubTopics() []suite.Check {
	// Each listens with a query and publishes; the one update must arrive once.
	dispatched := func(listen func(topics []string) string, publish func(topics []string) string) func(t *suite.T) {
		return func(t *suite.T) {
			topics := []string{t.Topic(), t.Topic(), t.Topic()}
			s := t.Listen(listen(topics))
			s.Want(t.PublishForm(publish(topics)))
		}
	}
	three := func(topics []string) string {
		return wire.Form("topic", topics[0], "topic", topics[1], "topic", topics[2], "data", "x")
	}
	interleaved := func(topics []string) string {
		return wire.Form("data", "x", "topic", topics[0], "private", "", "topic", topics[1], "type", "t", "topic", topics[2])
	}
	topic := func(i int) func([]string) string {
		return func(topics []string) string { return wire.Form("match", topics[i]) }
	}
	pattern := func(i int) func([]string) string {
		return func(topics []string) string { return wire.Form("match_urlpattern", topics[i]) }
	}
	return []suite.Check{
		one("PUB-08", "two", func(t *suite.T) {
			t.Want(pubPost(t, wire.Form("topic", t.Topic(), "topic", t.Topic(), "data", "x")), 200)
		}),
		one("PUB-08", "five", func(t *suite.T) {
			t.Want(pubPost(t, wire.Form("topic", t.Topic(), "topic", t.Topic(), "topic", t.Topic(), "topic", t.Topic(), "topic", t.Topic())), 200)
		}),
		one("PUB-09", "canonical", dispatched(topic(0), three)),
		one("PUB-09", "alternate", dispatched(topic(1), three)),
		one("PUB-09", "last-alternate", dispatched(topic(2), three)),
		one("PUB-09", "canonical-by-pattern", dispatched(pattern(0), three)),
		one("PUB-09", "alternate-by-pattern", dispatched(pattern(1), three)),
		one("PUB-09", "alternate-between-fields", dispatched(topic(1), interleaved)),
		one("PUB-09", "last-alternate-between-fields", dispatched(topic(2), interleaved)),
		one("PUB-09", "canonical-and-alternate-once", dispatched(func(topics []string) string {
			return wire.Form("match", topics[0], "match", topics[1])
		}, three)),
		one("PUB-09", "same-topic-twice", dispatched(topic(0), func(topics []string) string {
			return wire.Form("topic", topics[0], "topic", topics[0], "data", "x")
		})),
		one("PUB-09", "two-subscribers", func(t *suite.T) {
			canonical, alternate := t.Topic(), t.Topic()
			c, a := t.ListenTo(canonical), t.ListenTo(alternate)
			id := t.Publish("topic", canonical, "topic", alternate, "data", "x")
			c.Want(id)
			a.Want(id)
		}),
	}
}

func pubStar() []suite.Check {
	refused := func(t *suite.T, form string) { t.Want(pubPost(t, form), 400) }
	checks := pubEach("PUB-10", []pubCase{
		{"alone", "topic=*&data=x"},
		{"encoded", "topic=%2A&data=x"},
		{"private", "topic=*&data=x&private=on"},
	}, refused)
	for _, c := range []struct {
		name, before, after string
	}{
		{"alternate", "", "&topic=*"},
		{"canonical", "topic=*&", ""},
		{"third", "", "&topic=https%3A%2F%2Fexample.com%2Fa&topic=*"},
	} {
		checks = append(checks, one("PUB-10", c.name, func(t *suite.T) {
			refused(t, c.before+wire.Form("topic", t.Topic())+c.after+"&data=x")
		}))
	}
	// Only the whole value is reserved.
	for _, c := range []pubCase{{"two-stars", "**"}, {"star-in-front", "*/"}} {
		checks = append(checks, one("PUB-10", "not-exactly-"+c.name, func(t *suite.T) {
			topic := c.text + t.Unique("t")
			s := t.ListenTo(topic)
			s.Want(t.Publish("topic", topic, "data", "x"))
		}))
	}
	path := func(t *suite.T) string { return t.Target().Path() + "/subscriptions/exact/a/b" }
	whatever := func(topic func(t *suite.T) string, matcher func(topic string) suite.Matcher) func(t *suite.T) {
		return func(t *suite.T) {
			topic := topic(t)
			t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), t.PublishToken(suite.CanPublish(matcher(topic)))), 400)
		}
	}
	star := func(*suite.T) string { return "*" }
	return append(checks,
		one("PUB-11", "star-granted-by-wildcard", whatever(star, func(string) suite.Matcher { return suite.Any() })),
		one("PUB-11", "star-granted-as-exact", whatever(star, suite.Exact)),
		one("PUB-11", "star-granted-as-pattern", whatever(star, suite.Pattern)),
		one("PUB-11", "namespace-granted-by-wildcard", whatever(path, func(string) suite.Matcher { return suite.Any() })),
		one("PUB-11", "namespace-granted-as-exact", whatever(path, suite.Exact)),
		one("PUB-11", "namespace-granted-as-pattern", whatever(path, suite.Pattern)),
	)
}
