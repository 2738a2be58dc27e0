package checks

import (
	"mime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func sseChecks() []suite.Check {
	return slices.Concat(sseMediaType(), sseKeepAlive(), sseData(), sseFields(), sseIDs(), sseLines(), sseInjection(),
		sseSpaces(), sseDefaultType(), sseRetry(), sseOrder())
}

// sseGet publishes an update with these fields and gives the event that a subscriber of its topic receives: exactly
// one, with the id that the publisher was told.
func sseGet(t *suite.T, pairs ...string) wire.Event {
	topic := t.Topic()
	s := t.ListenTo(topic)
	return s.Want(t.Publish(append([]string{"topic", topic}, pairs...)...))[0]
}

// sseValues are the values of the field lines of this name, as they stand in the stream.
func sseValues(e wire.Event, name string) []string {
	var values []string
	for _, l := range e.Lines {
		if l.Name == name {
			values = append(values, l.Value)
		}
	}
	return values
}

// sseMediaType is SSE-01.
func sseMediaType() []suite.Check {
	check := func(name string, request func(t *suite.T, query string) wire.Request, needs ...suite.Feature) suite.Check {
		return one("SSE-01", name, func(t *suite.T) {
			topic := t.Topic()
			r := request(t, wire.Form("match", topic))
			sseIsStream(t, t.Do(r))
			s := t.ListenWith(r)
			s.Want(t.Publish("topic", topic, "data", "x"))
		}, needs...)
	}
	without := func(t *suite.T, query string) wire.Request {
		r := t.Get(query)
		r.Fields = nil
		return suite.Bearer(r, t.SubscribeAll())
	}
	return []suite.Check{
		check("accept", func(t *suite.T, query string) wire.Request { return suite.Bearer(t.Get(query), t.SubscribeAll()) }),
		check("no-accept", without),
		check("accept-anything", func(t *suite.T, query string) wire.Request { return without(t, query).With("Accept", "*/*") }),
		check("anonymous", func(t *suite.T, query string) wire.Request { return t.Get(query) }, suite.Anonymous),
		check("cookie", func(t *suite.T, query string) wire.Request { return t.InCookie(t.Get(query), t.SubscribeAll()) }, suite.Cookie),
		check("query-method", func(t *suite.T, query string) wire.Request {
			return suite.Bearer(t.Query("", query), t.SubscribeAll())
		}, suite.QueryMethod),
		one("SSE-01", "resumed", func(t *suite.T) {
			sseIsStream(t, t.Do(suite.Bearer(t.Get(wire.Form("match", t.Topic(), "last_event_id", "earliest")), t.SubscribeAll())))
		}),
	}
}

// sseIsStream wants the media type of an event stream. The standard knows one charset for it.
func sseIsStream(t *suite.T, resp *wire.Response) {
	all := resp.All("Content-Type")
	if resp.Status != 200 || len(all) != 1 {
		t.Fail("answered %d with %d Content-Type fields, wanted 200 with one", resp.Status, len(all))
	}
	media, params, err := mime.ParseMediaType(all[0])
	if err != nil || media != "text/event-stream" {
		t.Fail("Content-Type is %q, wanted text/event-stream", all[0])
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		t.Fail("Content-Type is %q, but an event stream is always UTF-8", all[0])
	}
	t.Observed("Content-Type %q", all[0])
}

// sseKeepAlive is SSE-02.
func sseKeepAlive() []suite.Check {
	check := func(name string, comments int, first bool) suite.Check {
		c := one("SSE-02", name, func(t *suite.T) {
			// A hub may end the stream at its maximum lifetime, which is not the matter here.
			for try := 1; ; try++ {
				topic := t.Topic()
				s, opened := t.ListenTo(topic), time.Now()
				if first {
					s.Want(t.Publish("topic", topic, "data", "x"))
				}
				err := sseComments(t, s, comments)
				if err == nil {
					return
				}
				if lifetime := t.Target().Lifetime; try == 3 || lifetime <= 0 || time.Since(opened) < lifetime-time.Second {
					t.Fail("an idle stream with a keep-alive period of %s: %v", t.Target().KeepAlive, err)
				}
				s.Close()
			}
		}, suite.KeepAlive)
		c.Time = 6 * time.Minute
		return c
	}
	return []suite.Check{check("comment", 1, false), check("again", 2, false), check("after-an-event", 1, true)}
}

// sseComments waits for some keep-alives. What a hub writes when the stream opens is read before the clock starts: the
// fence has passed by then.
func sseComments(t *suite.T, s *suite.Stream, n int) error {
	s.Want()
	period := t.Target().KeepAlive
	for n > 0 {
		began := time.Now()
		e, err := s.Block(period + max(10*time.Second, period))
		if err != nil {
			return err
		}
		if e.Dispatched || e.HasID {
			t.Fail("an idle stream received an event (data %+q), wanted a comment", e.Data)
		}
		if len(e.Comments) > 0 {
			t.Observed("a comment after %s", time.Since(began).Round(time.Second/10))
			n--
		}
	}
	return nil
}

// sseOrder is SSE-20: what is published one after the other arrives in this order, and streams agree on the order of
// what is published at the same time.
func sseOrder() []suite.Check {
	const updates = 50
	return []suite.Check{
		one("SSE-20", "one-topic", func(t *suite.T) {
			topic := t.Topic()
			streams := []*suite.Stream{t.ListenTo(topic), t.ListenTo(topic), t.Listen(wire.Form("match_urlpattern", topic))}
			var ids []string
			for range updates {
				ids = append(ids, t.Publish("topic", topic, "data", "x"))
			}
			for _, s := range streams {
				s.Want(ids...)
			}
		}),
		one("SSE-20", "several-topics", func(t *suite.T) {
			folder := t.Folder()
			topics := []string{folder + "/a", folder + "/b", folder + "/c"}
			all := wire.Form("match", topics[0], "match", topics[1], "match", topics[2])
			streams := []*suite.Stream{t.Listen(all), t.Listen(wire.Form("match_urlpattern", folder+"/:x")), t.ListenTo(topics[1])}
			var ids, second []string
			for i := range updates {
				id := t.Publish("topic", topics[i%3], "data", strings.Repeat("x", i%7*500))
				ids = append(ids, id)
				if i%3 == 1 {
					second = append(second, id)
				}
			}
			streams[0].Want(ids...)
			streams[1].Want(ids...)
			streams[2].Want(second...)
		}),
		one("SSE-20", "private-and-public", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			var ids []string
			for i := range updates {
				pairs := []string{"topic", topic, "data", "x"}
				if i%2 == 1 {
					pairs = append(pairs, "private", "on")
				}
				ids = append(ids, t.Publish(pairs...))
			}
			s.Want(ids...)
		}),
		one("SSE-20", "concurrent", sseConcurrent),
	}
}

// sseConcurrent publishes from several connections at once. Each one waits for its answer before it goes on, so its own
// updates have an order; the others' may stand anywhere between, but at the same place for everybody. What is written
// for several updates at a time must not be mixed up either.
func sseConcurrent(t *suite.T) {
	const publishers, each = 4, 12
	topic := t.Topic()
	streams := []*suite.Stream{t.ListenTo(topic), t.ListenTo(topic), t.Listen(wire.Form("match_urlpattern", topic))}
	token := t.PublishAll()
	ids, texts := make([][]string, publishers), make([]string, publishers)
	var wg sync.WaitGroup
	for p := range publishers {
		texts[p] = strings.Repeat(strings.Repeat(string(rune('a'+p)), 1000)+"\n", 8)
		wg.Go(func() {
			for range each {
				resp, err := t.Try(suite.Bearer(t.Post(wire.Form("topic", topic, "data", texts[p])), token))
				if err != nil || resp.Status != 200 {
					return
				}
				ids[p] = append(ids[p], resp.Body)
			}
		})
	}
	wg.Wait()
	var first []string
	for i, s := range streams {
		got := map[string]string{}
		var order []string
		for _, e := range s.Events() {
			got[e.ID] = e.Data
			order = append(order, e.ID)
		}
		for p := range ids {
			sseWantOwnOrder(t, order, ids[p], each)
			for _, id := range ids[p] {
				if got[id] != texts[p] {
					t.Fail("data was received with a difference: %s", sseDifference(got[id], texts[p]))
				}
			}
		}
		if i == 0 {
			first = order
		}
		if !slices.Equal(order, first) || len(order) != publishers*each {
			t.Fail("stream %d received %d updates in another order or number than stream 1", i+1, len(order))
		}
	}
	t.Observed("%d publishers, %d streams, one order", publishers, len(streams))
}

// sseWantOwnOrder wants the updates of one publisher in the order in which it published them.
func sseWantOwnOrder(t *suite.T, order, own []string, n int) {
	if len(own) != n {
		t.Fail("a publisher was answered %d of %d times", len(own), n)
	}
	got := slices.DeleteFunc(slices.Clone(order), func(id string) bool { return !slices.Contains(own, id) })
	if !slices.Equal(got, own) {
		t.Fail("the updates of one publisher arrived in another order than they were published")
	}
}
