package checks

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// limPublish is a way to publish too much.
type limPublish struct {
	name  string
	id    string // of the requirement that there be a limit
	sizes []int
	form  func(topic string, n int) string
	// unfit says that a big value may be refused for what it is, so the status is not looked at.
	unfit bool
	// ignored says whether the answer shows that the hub has no use for the field.
	ignored func(n int, resp *wire.Response) bool
}

func limPublications() []limPublish {
	field := func(name, start string) func(topic string, n int) string {
		return func(topic string, n int) string {
			return wire.Form("topic", topic, "data", "x", name, start+strings.Repeat("1", n))
		}
	}
	topics, lengths, bodies := limSizes(16, 1<<20), limSizes(16, 256<<10), limSizes(64<<10, 8<<20)
	return []limPublish{
		{name: "body", id: "LIM-06", sizes: bodies, form: func(topic string, n int) string {
			return "topic=" + wire.Escape(topic) + "&data=" + strings.Repeat("x", n)
		}},
		// A body of fields that mean nothing is as big.
		{name: "body-of-unknown-fields", id: "LIM-06", sizes: bodies, form: func(topic string, n int) string {
			return "topic=" + wire.Escape(topic) + strings.Repeat("&x="+strings.Repeat("y", 1021), n>>10)
		}},
		{name: "number-of-topics", id: "LIM-07", sizes: limSizes(8, 100_000), form: func(topic string, n int) string {
			var b strings.Builder
			b.WriteString("data=x")
			for i := range n - 1 {
				fmt.Fprintf(&b, "&topic=t%d", i)
			}
			return b.String() + "&topic=" + wire.Escape(topic)
		}},
		{name: "length-of-topic", id: "LIM-07", sizes: topics, form: func(topic string, n int) string {
			return wire.Form("topic", topic+"/"+strings.Repeat("x", n), "data", "x")
		}},
		{name: "length-of-alternate", id: "LIM-07", sizes: topics, form: func(topic string, n int) string {
			return wire.Form("topic", topic, "topic", topic+"/"+strings.Repeat("x", n), "data", "x")
		}},
		{name: "length-of-id", id: "LIM-07", sizes: lengths, form: field("id", "urn:x-long:"), ignored: func(n int, resp *wire.Response) bool {
			return len(resp.Body) < n
		}},
		{name: "length-of-type", id: "LIM-07", sizes: lengths, form: field("type", "t")},
		{name: "length-of-retry", id: "LIM-07", sizes: lengths, form: field("retry", "1"), unfit: true},
	}
}

func limPublishChecks() []suite.Check {
	var checks []suite.Check
	for _, p := range limPublications() {
		checks = append(checks, one(p.id, p.name, func(t *suite.T) {
			f := p.search(t, t.Topic())
			switch {
			case f.resp == nil:
				t.Fail("no limit up to %d", p.sizes[len(p.sizes)-1])
			case f.resp.Status < 400 || f.resp.Status > 499:
				t.Fail("size %d: answered %d, wanted a refusal", f.size, f.resp.Status)
			case p.id == "LIM-07":
				// What is refused because of the body is limited as well, but the reader of the report may want to know.
				form := wire.Form("topic", t.Topic(), "data", strings.Repeat("x", len(f.request.Body)))
				if limTry(t, suite.Bearer(t.Post(form), t.PublishAll()), f.size).Status == f.resp.Status {
					t.Observed("a body of that size is refused whatever the field")
				}
			}
		}))
		if !p.unfit {
			checks = append(checks, one("LIM-08", p.name, func(t *suite.T) {
				topic := t.Topic()
				s := t.ListenTo(topic)
				f := p.search(t, topic)
				p.whole(t, s, f)
				if f.resp == nil {
					t.Skip("the hub has no limit up to %d, so it reports none", p.sizes[len(p.sizes)-1])
				}
				if f.resp.Status != 413 {
					t.Fail("size %d: answered %d, wanted 413", f.size, f.resp.Status)
				}
			}))
		}
	}
	return append(checks,
		one("LIM-06", "chunked", func(t *suite.T) {
			if resp := limChunked(t, limChunks); resp.Status < 400 || resp.Status > 499 {
				t.Fail("a chunked body of 8 MiB: answered %d, wanted a refusal", resp.Status)
			}
		}),
		one("LIM-08", "chunked", func(t *suite.T) {
			// A hub that reads no chunked bodies says so whatever their length (RFC 9112 section 6.3, RFC 9110 section 15.5.12).
			small := limChunked(t, 1)
			resp := limChunked(t, limChunks)
			switch {
			case resp.Status == 413:
			case small.Status == 200 && resp.Status == 200:
				t.Skip("the hub has no limit up to 8 MiB, so it reports none")
			case small.Status == resp.Status && (resp.Status == 411 || resp.Status == 501):
				t.Observed("the hub reads no chunked bodies at all, and says so")
			default:
				t.Fail("a chunked body of 64 KiB: answered %d; one of 8 MiB: answered %d, wanted 413", small.Status, resp.Status)
			}
		}),
	)
}

// search publishes more and more.
func (p limPublish) search(t *suite.T, topic string) limFound {
	token := t.PublishAll()
	return limSearch(t, p.sizes, func(n int) wire.Request { return suite.Bearer(t.Post(p.form(topic, n)), token) }, func(n int, resp *wire.Response) {
		if p.ignored != nil && p.ignored(n, resp) {
			t.Skip("the hub ignores the field, as it may: no length of it is too much")
		}
	})
}

// limMostLooked bounds what is looked at as an event.
const limMostLooked = 1 << 20

// whole says that everything that was accepted arrived as it was sent, and nothing of what was refused.
func (p limPublish) whole(t *suite.T, s *suite.Stream, f limFound) {
	var accepted []int
	for _, n := range p.sizes {
		if f.resp != nil && n == f.size {
			break
		}
		accepted = append(accepted, n)
	}
	if p.name == "length-of-topic" {
		return // the stream selects another topic
	}
	if len(accepted) > 0 && len(p.form("", accepted[len(accepted)-1])) > limMostLooked {
		s.Close()
		return // more than a reader should be asked to read
	}
	events := s.Events()
	if len(events) != len(accepted) {
		t.Fail("%d publications were accepted, %d events arrived", len(accepted), len(events))
	}
	for i, e := range events {
		// What the form says, apart from the topics, is what must arrive.
		form := p.form("", accepted[i])
		data, kind, id := limValue(t, form, "data"), limValue(t, form, "type"), limValue(t, form, "id")
		if e.Data != data || e.Type != kind || id != "" && e.ID != id {
			t.Fail("size %d was accepted, but not dispatched as a whole: data of %d bytes, type of %d, id of %d; wanted %d, %d, %d",
				accepted[i], len(e.Data), len(e.Type), len(e.ID), len(data), len(kind), len(id))
		}
	}
}

// limValue gives the first value of a name in a form. url.ParseQuery has limits itself.
func limValue(t *suite.T, form, name string) string {
	for pair := range strings.SplitSeq(form, "&") {
		if n, value, _ := strings.Cut(pair, "="); n == name {
			value, err := url.QueryUnescape(value)
			if err != nil {
				t.Fail("the suite cannot read its own form: %v", err)
			}
			return value
		}
	}
	return ""
}

// Sizes of bodies in chunks: 8 MiB in all.
const (
	limChunk  = 64 << 10
	limChunks = 128
)

// limChunked publishes so many chunks, so that the size is not known beforehand.
func limChunked(t *suite.T, chunks int) *wire.Response {
	u, err := url.Parse(t.Target().URL)
	if err != nil {
		t.Fail("the hub URL: %v", err)
	}
	var b strings.Builder
	b.WriteString("POST " + t.Target().Path() + " HTTP/1.1\r\nHost: " + u.Host + "\r\nConnection: close\r\n" +
		"Authorization: Bearer " + t.PublishAll() + "\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n")
	write := func(s string) { fmt.Fprintf(&b, "%x\r\n%s\r\n", len(s), s) }
	write("topic=" + wire.Escape(t.Topic()) + "&data=")
	data := strings.Repeat("x", limChunk)
	for range chunks {
		write(data)
	}
	b.WriteString("0\r\n\r\n")
	for range 3 {
		var resp *wire.Response
		if resp, err = t.Dialer().Raw(t.Context(), "POST", []byte(b.String())); err == nil {
			t.Observed("POST of %d bytes in chunks: %d", chunks*limChunk, resp.Status)
			return resp
		}
	}
	t.Fail("POST of %d bytes in chunks: no answer: %v", chunks*limChunk, err)
	return nil
}
