package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/client"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// all is a subscription of everything.
func all() client.Subscription { return client.Subscription{Topics: []string{"*"}} }

// take gives up to n events, and the error that ended them before.
func take(n int, updates iter.Seq2[client.Event, error]) (got []client.Event, err error) {
	for e, err := range updates {
		if err != nil {
			return got, err
		}
		if got = append(got, e); len(got) == n {
			return got, nil
		}
	}
	return got, errors.New("the iteration has ended without an error")
}

// ids gives the ids of events, with a mark where updates may be missing before.
func ids(events []client.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Gap {
			b.WriteByte('!')
		}
		b.WriteString(e.ID)
	}
	return b.String()
}

func TestSubscribe_asksForTopicsAndPatterns(t *testing.T) {
	hub := &script{answers: []answer{events("id: a\nevent: sold\ndata: 1\ndata: 2\n\n").silent()}}
	got, err := take(1, hub.client(t, client.Options{Token: always("secret")}).Subscribe(t.Context(), client.Subscription{
		Topics: []string{"https://example.com/a&b", "x=y;%+z"}, Patterns: []string{"/books/:id"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]client.Event{{ID: "a", Type: "sold", Data: "1\n2"}}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	r := hub.requests()[0]
	want := url.Values{"match": {"https://example.com/a&b", "x=y;%+z"}, "match_urlpattern": {"/books/:id"}, "tenant": {"1"}}
	if diff := cmp.Diff(want, r.URL.Query()); diff != "" {
		t.Errorf("SUB-13, SUB-22: query (-want +got):\n%s", diff)
	}
	if r.Method != http.MethodGet || r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("%s with %v", r.Method, r.Header)
	}
	if hub.closed != 1 {
		t.Errorf("%d bodies closed, want 1", hub.closed)
	}
}

func TestSubscribe_needsAMatcher(t *testing.T) {
	hub := &script{}
	_, err := take(1, hub.client(t, client.Options{}).Subscribe(t.Context(), client.Subscription{}))
	if err == nil || !strings.HasPrefix(err.Error(), "client: a subscription needs") || len(hub.requests()) != 0 {
		t.Errorf("Subscribe = %v after %d requests", err, len(hub.requests()))
	}
}

// What ends a stream, and what the next request asks for.
func TestSubscribe_resumes(t *testing.T) {
	ab := "id: a\ndata: 1\n\nid: b\ndata: 2\n\n"
	for name, c := range map[string]struct {
		cursor  string
		answers []answer
		cursors []string
		ids     string
		gaps    string // what Opened was told
	}{
		"REC-03 after the last event": {
			answers: []answer{events(ab), events("id: c\ndata: 3\n\n").from("b")}, cursors: []string{"", "h:b"}, ids: "abc", gaps: "->|b->b|",
		},
		"REC-04 from the given cursor on, in the URL": {
			cursor: "z", answers: []answer{events("").from("z"), events(ab).from("z"), events("id: c\ndata: 3\n\n").from("b")},
			cursors: []string{"q:z", "q:z", "h:b"}, ids: "abc", gaps: "z->z|z->z|b->b|",
		},
		"everything there is": {cursor: client.Earliest, answers: []answer{events(ab).from("earliest")}, cursors: []string{"q:earliest"}, ids: "ab", gaps: "earliest->earliest|"},
		"an event that breaks off has not been": {
			answers: []answer{events("id: a\ndata: 1\n\nid: b\ndata: 2\n"), events("id: b\ndata: 2\n\n").from("a")}, cursors: []string{"", "h:a"}, ids: "ab", gaps: "->|a->a|",
		},
		"REC-21 the hub does not know the event": {
			cursor: "z", answers: []answer{events("").from("earliest"), events(ab).from("earliest")},
			cursors: []string{"q:z", "h:earliest"}, ids: "!ab", gaps: "!z->earliest|earliest->earliest|",
		},
		"REC-21 it starts elsewhere": {
			answers: []answer{events("id: a\ndata: 1\n\n"), events("").from("y"), events("id: c\ndata: 3\n\n").from("y")},
			cursors: []string{"", "h:a", "h:y"}, ids: "a!c", gaps: "->|!a->y|y->y|",
		},
		"REC-21 it does not say": {cursor: "z", answers: []answer{events(ab)}, cursors: []string{"q:z"}, ids: "!ab", gaps: "!z->|"},
		"nothing to resume after": {
			answers: []answer{events(""), events(ab)}, cursors: []string{"", ""}, ids: "!ab", gaps: "->|!->|",
		},
		"REC-24 ids of all kinds": {
			answers: []answer{
				events("id: é %+\"\ndata: 1\n\n"), events("id:  x \ndata: 2\n\n").from("é %+\""), events("id: c\ndata: 3\n\n").from("x"),
			},
			cursors: []string{"", "h:é %+\"", "q: x "}, ids: "é %+\" x c", gaps: "->|é %+\"->é %+\"| x ->x|",
		},
		"an event without an id keeps the cursor": {
			answers: []answer{events("id: a\ndata: 1\n\nid:\ndata: 2\n\n"), events("id: b\ndata: 3\n\n").from("a")}, cursors: []string{"", "h:a"}, ids: "ab", gaps: "->|a->a|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &script{answers: c.answers}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var gaps strings.Builder
				s := client.Subscription{Topics: []string{"*"}, Cursor: c.cursor, Opened: func(c client.Connection) {
					if c.Gap {
						gaps.WriteByte('!')
					}
					fmt.Fprintf(&gaps, "%s->%s|", c.Cursor, c.From)
				}}
				got, err := take(99, hub.client(t, client.Options{IdleTimeout: -1, Timeout: -1}).Subscribe(ctx, s))
				if !errors.Is(err, context.DeadlineExceeded) || ids(got) != c.ids || gaps.String() != c.gaps {
					t.Errorf("got %q, %v, opened %q; want %q, opened %q", ids(got), err, gaps.String(), c.ids, c.gaps)
				}
				if diff := cmp.Diff(c.cursors, hub.cursors()[:len(c.answers)]); diff != "" {
					t.Errorf("cursors (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// waits follows a script to its end and gives the times between its requests.
func waits(t *testing.T, answers ...answer) []time.Duration {
	t.Helper()
	var at []time.Time
	hub := &script{answers: answers}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	timed := roundTripper(func(r *http.Request) (*http.Response, error) {
		if at = append(at, time.Now()); len(at) == len(answers)+1 {
			cancel()
		}
		return hub.RoundTrip(r)
	})
	c := mustNew(t, client.Options{HubURL: "https://hub.example.com/", HTTPClient: &http.Client{Transport: timed}})
	if _, err := take(99, c.Subscribe(ctx, all())); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var out []time.Duration
	for i := range len(at) - 1 {
		out = append(out, at[i+1].Sub(at[i]))
	}
	return out
}

func TestSubscribe_waits(t *testing.T) {
	const second, minute = time.Second, time.Minute
	down, one := status(503), events("id: a\ndata: 1\n\n")
	type bounds struct{ least, most time.Duration }
	for name, c := range map[string]struct {
		answers []answer
		want    []bounds
	}{
		"ever longer, up to half a minute": {
			[]answer{down, {}, status(500), down, down, down, down},
			[]bounds{{0, second}, {0, 2 * second}, {0, 4 * second}, {0, 8 * second}, {0, 16 * second}, {0, 30 * second}, {0, 30 * second}},
		},
		"anew after an event": {
			[]answer{down, down, down, one, down}, []bounds{{0, second}, {0, 2 * second}, {0, 4 * second}, {0, second}, {0, 2 * second}},
		},
		"an empty stream is no success": {[]answer{events(""), events(""), events("")}, []bounds{{0, second}, {0, 2 * second}, {0, 4 * second}}},
		"SSE-18 the time that the stream asks for": {
			[]answer{events("retry: 5000\n\nid: a\ndata: 1\n\n"), down, one}, []bounds{{5 * second, 6 * second}, {5 * second, 7 * second}, {5 * second, 6 * second}},
		},
		"with an event":            {[]answer{events("id: a\nretry: 5000\ndata: 1\n\n")}, []bounds{{5 * second, 6 * second}}},
		"not too short":            {[]answer{events("retry: 0\n\n")}, []bounds{{100 * time.Millisecond, 1100 * time.Millisecond}}},
		"nor too long":             {[]answer{events("retry: 86400000\n\n")}, []bounds{{minute, 61 * second}}},
		"Retry-After":              {[]answer{down.with("Retry-After", "10"), status(429).with("Retry-After", "20")}, []bounds{{10 * second, 11 * second}, {20 * second, 22 * second}}},
		"Retry-After, a date":      {[]answer{down.with("Retry-After", time.Date(2000, 1, 1, 0, 0, 10, 0, time.UTC).Format(http.TimeFormat))}, []bounds{{10 * second, 11 * second}}},
		"Retry-After, for ages":    {[]answer{down.with("Retry-After", "99999999")}, []bounds{{15 * minute, 15*minute + second}}},
		"the longer of the two":    {[]answer{events("retry: 5000\n\n"), down.with("Retry-After", "1")}, []bounds{{5 * second, 6 * second}, {5 * second, 7 * second}}},
		"a request that timed out": {[]answer{status(408), status(425)}, []bounds{{0, second}, {0, 2 * second}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := waits(t, c.answers...)
				for i, w := range c.want {
					if got[i] < w.least || got[i] > w.most {
						t.Errorf("wait %d of %v is not within %v", i, got, w)
					}
				}
			})
		})
	}
}

func TestSubscribe_jitters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			seen[waits(t, status(503))[0]] = true
		}
		if len(seen) < 15 {
			t.Errorf("20 first waits are of %d lengths: readers would come back together", len(seen))
		}
	})
}

// A stream that lasted counts as a success though nothing came on it.
func TestSubscribe_aQuietStreamIsASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 45 * time.Second
		got := waits(t, status(503), status(503), events(":\n\n").silent(), status(503))
		if w := got[2]; w < idle || w > idle+time.Second {
			t.Errorf("the silent stream was replaced after %v, want within a second after %v", w, idle)
		}
	})
}

func TestSubscribe_ends(t *testing.T) {
	html := answer{status: http.StatusOK, header: http.Header{"Content-Type": {"text/html"}}, body: "<h1>Welcome to the hotel</h1>"}
	for name, c := range map[string]struct {
		last   answer
		status int
		text   string
	}{
		"no event stream":        {html, 200, "text/html, not an event stream"},
		"no media type":          {answer{status: 200, header: http.Header{}}, 200, "of no media type"},
		"nothing":                {status(204), 204, "204 No Content"},
		"redirect":               {status(307).with("Location", "https://elsewhere.example.com/hub?secret=1"), 307, "a redirect to https://elsewhere.example.com/hub, which is not followed"},
		"malformed":              {status(400), 400, "400 Bad Request"},
		"refused":                {status(403).with("WWW-Authenticate", `Bearer error="insufficient_scope"`), 403, "insufficient_scope"},
		"another place":          {status(404), 404, "404 Not Found"},
		"gone":                   {status(410), 410, "410 Gone"},
		"beyond the server":      {status(http.StatusNotImplemented), http.StatusNotImplemented, http.StatusText(http.StatusNotImplemented)}, // final, unlike other 5xx
		"an event without bound": {events("data: " + strings.Repeat("x", 2000) + "\n\n"), 0, "too large"},
		"many lines":             {events(strings.Repeat("data: x\n", 1000) + "\n"), 0, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &script{answers: []answer{status(503), events("id: a\ndata: 1\n\n"), c.last}}
				got, err := take(99, hub.client(t, client.Options{Token: always("secret"), MaxEventBytes: 1000}).Subscribe(t.Context(), all()))
				e := failure(t, err)
				if ids(got) != "a" || e.Op != "subscribe" || e.Status != c.status || !strings.Contains(e.Error(), c.text) || e.Retryable() {
					t.Errorf("got %q, %+v; want status %d and %q", ids(got), e, c.status, c.text)
				}
				if strings.Contains(e.Error(), "secret") {
					t.Errorf("the error shows a secret: %v", e)
				}
				if c.text == "too large" && !errors.Is(err, client.ErrEventTooLarge) {
					t.Errorf("%v is not ErrEventTooLarge", err)
				}
				if n := len(hub.requests()); n != 3 {
					t.Errorf("%d requests, want 3", n)
				}
			})
		})
	}
}

func TestSubscribe_asksForATokenEachTime(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		tokens  []string
		ids     string
		sent    string
		text    string
	}{
		"another one at every connection": {
			[]answer{events("id: a\ndata: 1\n\n"), status(503), events("id: b\ndata: 2\n\n").from("a")}, []string{"1", "2", "3"}, "ab", "1 2 3", "get a token: none left",
		},
		"refused, and another one": {[]answer{status(401), events("id: a\ndata: 1\n\n")}, []string{"1", "2"}, "a", "1 2", "get a token: none left"},
		"refused, and the same":    {[]answer{status(401)}, []string{"1", "1"}, "", "1", "401 Unauthorized"},
		"refused twice":            {[]answer{status(401), status(401)}, []string{"1", "2", "3"}, "", "1 2", "401 Unauthorized"},
		"refused twice, years apart": {
			[]answer{status(401), events("id: a\ndata: 1\n\n"), status(401), events("id: b\ndata: 2\n\n").from("a")},
			[]string{"1", "2", "2", "3"},
			"ab", "1 2 2 3", "get a token: none left",
		},
		"an outage of its source passes": {[]answer{events("id: a\ndata: 1\n\n")}, []string{"!", "1"}, "a", "1", "get a token: none left"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &script{answers: c.answers}
				asked := 0
				source := func(context.Context) (string, error) {
					if asked == len(c.tokens) {
						return "", errors.New("none left")
					}
					asked++
					if token := c.tokens[asked-1]; token != "!" {
						return token, nil
					}
					return "", &net.OpError{Op: "dial", Err: errors.New("connection refused")}
				}
				got, err := take(99, hub.client(t, client.Options{Token: source}).Subscribe(t.Context(), all()))
				if ids(got) != c.ids || err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %q, %v; want %q, %q", ids(got), err, c.ids, c.text)
				}
				var sent []string
				for _, r := range hub.requests() {
					sent = append(sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
				}
				if got := strings.Join(sent, " "); got != c.sent {
					t.Errorf("sent tokens %q, want %q", got, c.sent)
				}
			})
		})
	}
}

func TestSubscribe_retryDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &script{answers: []answer{status(503).with("Retry-After", "5"), events("id: a\ndata: 1\n\n"), {}, {}}}
		var told []string
		s := all()
		s.Retry = func(err error, wait time.Duration) bool {
			if wait < 0 || wait > 10*time.Second {
				t.Errorf("wait %v", wait)
			}
			told = append(told, err.Error())
			return len(told) < 4
		}
		_, err := take(99, hub.client(t, client.Options{}).Subscribe(t.Context(), s))
		want := []string{"subscribe: 503 Service Unavailable", "subscribe: the stream has ended", "subscribe: connection refused", "subscribe: connection refused"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("Retry was told (-want +got):\n%s", diff)
		}
		if e := failure(t, err); e.Error() != want[3] {
			t.Errorf("the iteration ended with %v", err)
		}
	})
}

func TestSubscribe_timesOut(t *testing.T) {
	slow := func(after time.Duration) answer {
		return events("id: a\ndata: 1\n\n").with("Test-Delay", after.String())
	}
	for name, c := range map[string]struct {
		options client.Options
		answer  answer
		after   time.Duration // until it is lost; 0: not at all
		text    string
	}{
		"no header":                  {client.Options{}, slow(time.Hour), 30 * time.Second, "no answer within 30s"},
		"no header, a shorter time":  {client.Options{Timeout: time.Second}, slow(time.Hour), time.Second, "no answer within 1s"},
		"no header, no limit":        {client.Options{Timeout: -1, IdleTimeout: -1}, slow(20 * time.Minute).silent(), 0, ""},
		"no byte":                    {client.Options{}, events("").silent(), 45 * time.Second, "nothing came for 45s"},
		"no byte, a shorter time":    {client.Options{IdleTimeout: time.Second}, events(":\n\n").silent(), time.Second, "nothing came for 1s"},
		"no byte, no limit":          {client.Options{IdleTimeout: -1}, events("").silent(), 0, ""},
		"the header is not the body": {client.Options{Timeout: time.Second}, events("").silent(), 45 * time.Second, "nothing came for 45s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				hub := &script{answers: []answer{c.answer}}
				delayed := roundTripper(func(r *http.Request) (*http.Response, error) {
					if d, err := time.ParseDuration(c.answer.header.Get("Test-Delay")); err == nil {
						select {
						case <-r.Context().Done():
							return nil, r.Context().Err()
						case <-time.After(d):
						}
					}
					return hub.RoundTrip(r)
				})
				c.options.HubURL, c.options.HTTPClient = "https://hub.example.com/", &http.Client{Transport: delayed, Timeout: time.Minute}
				start, lost, text := time.Now(), time.Duration(0), ""
				s := all()
				s.Retry = func(err error, _ time.Duration) bool {
					lost, text = time.Since(start), err.Error()
					return false
				}
				_, err := take(99, mustNew(t, c.options).Subscribe(ctx, s))
				if err == nil || lost != c.after || !strings.Contains(text, c.text) {
					t.Errorf("lost after %v with %q, %v; want after %v with %q", lost, text, err, c.after, c.text)
				}
			})
		})
	}
}

// A reader that takes its time over an event loses nothing by it.
func TestSubscribe_aSlowReaderIsNoIdleHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &script{answers: []answer{events("id: a\ndata: 1\n\nid: b\ndata: 2\n\n" + strings.Repeat(":\n\n", 10000) + "id: c\ndata: 3\n\n").silent()}}
		n := 0
		for e, err := range hub.client(t, client.Options{}).Subscribe(t.Context(), all()) {
			if err != nil || e.Gap {
				t.Fatal(e, err)
			}
			if n++; n == 3 {
				break
			}
			bubble.Advance(time.Hour)
		}
		if len(hub.requests()) != 1 {
			t.Errorf("%d requests, want 1", len(hub.requests()))
		}
	})
}

func TestSubscribe_endsWithItsContext(t *testing.T) {
	reason := errors.New("enough")
	for name, answers := range map[string][]answer{
		"while it waits":    {status(503).with("Retry-After", "60")},
		"while it connects": nil,
		"while it reads":    {events("id: a\ndata: 1\n\n").silent()},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(reason) })
			hub := &script{answers: answers}
			start := time.Now()
			_, err := take(99, hub.client(t, client.Options{}).Subscribe(ctx, all()))
			if !errors.Is(err, reason) || time.Since(start) != time.Second {
				t.Errorf("%s: the iteration ended with %v after %v", name, err, time.Since(start))
			}
		})
	}
}

// Events that have come in one piece do not outlive the context.
func TestSubscribe_endsBetweenTwoEvents(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hub := &script{answers: []answer{events("id: a\ndata: 1\n\nid: b\ndata: 2\n\n").silent()}}
	var got []client.Event
	for e, err := range hub.client(t, client.Options{}).Subscribe(ctx, all()) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		got = append(got, e)
		cancel()
	}
	if ids(got) != "a" {
		t.Errorf("got %q", ids(got))
	}
}

func TestSubscribe_rangesAnew(t *testing.T) {
	hub := &script{answers: []answer{events("id: a\ndata: 1\n\n").from("z").silent(), events("id: a\ndata: 1\n\n").from("z").silent()}}
	s := all()
	s.Cursor = "z"
	updates := hub.client(t, client.Options{}).Subscribe(t.Context(), s)
	for range 2 {
		if got, err := take(1, updates); err != nil || ids(got) != "a" {
			t.Errorf("got %q, %v", ids(got), err)
		}
	}
	if diff := cmp.Diff([]string{"q:z", "q:z"}, hub.cursors()); diff != "" {
		t.Errorf("cursors (-want +got):\n%s", diff)
	}
	if hub.closed != 2 {
		t.Errorf("%d bodies closed, want 2", hub.closed)
	}
}

func TestSubscribe_logsWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		hub := &script{answers: []answer{
			events("id: secret-id\ndata: secret-data\n\n"), status(503), events("id: b\ndata: 2\n\n").from("earliest").silent(),
		}}
		options := client.Options{Token: always("secret-token"), Logger: slog.New(slog.NewTextHandler(&log, nil))}
		s := client.Subscription{Topics: []string{"secret-topic"}}
		if _, err := take(2, hub.client(t, options).Subscribe(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		text := log.String()
		if strings.Contains(text, "secret") {
			t.Errorf("the log shows a secret:\n%s", text)
		}
		for _, want := range []string{"level=INFO msg=\"stream is resumed\"", "level=WARN msg=\"stream is resumed\"", "updates may be missing", "failures=1", "wait="} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in the log:\n%s", want, text)
			}
		}
	})
}

// The tests above script the transport. These have a real one between, and servers that are none.
func TestSubscribe_realConnections(t *testing.T) {
	streamHead := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	for name, c := range map[string]struct {
		first string // what the server sends before it hangs up
		hold  bool   // it does not hang up
		drip  bool   // it sends byte by byte, slowly, without end
		text  string
		wait  client.Options
	}{
		"a stream that breaks off":   {first: streamHead + "Transfer-Encoding: chunked\r\n\r\n" + chunk("id: a\ndata: 1\n\n") + "ff\r\nid: b\nda", text: "unexpected EOF"},
		"a stream that ends":         {first: streamHead + "Transfer-Encoding: chunked\r\n\r\n" + chunk("id: a\ndata: 1\n\n") + "0\r\n\r\n", text: "the stream has ended"},
		"a stream without framing":   {first: streamHead + "Connection: close\r\n\r\nid: a\ndata: 1\n\nid: b\n", text: "the stream has ended"},
		"a stream that falls silent": {first: streamHead + "Connection: close\r\n\r\nid: a\ndata: 1\n\nid: b\ndat", hold: true, text: "nothing came for", wait: client.Options{IdleTimeout: time.Second}},
		"a header without end":       {first: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-More: "+strings.Repeat("x", 1000)+"\r\n", 200), hold: true, text: "exceeded"},
		"a header byte by byte":      {first: "HTTP/1.1 200 OK\r\nX-More: ", drip: true, text: "no answer within", wait: client.Options{Timeout: time.Second}},
		"an error byte by byte":      {first: "HTTP/1.1 503 No\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n", drip: true, text: "503 Service Unavailable", wait: client.Options{Timeout: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := rawServer(t, func(conn net.Conn) {
				readRequest(conn)
				_, err := io.WriteString(conn, c.first)
				for tick := time.NewTicker(10 * time.Millisecond); c.drip && err == nil; {
					<-tick.C
					_, err = io.WriteString(conn, " ")
				}
				if c.hold {
					_, _ = conn.Read(make([]byte, 1))
				}
			})
			s := all()
			var lost error
			s.Retry = func(err error, _ time.Duration) bool { lost = err; return false }
			c.wait.HubURL = hub
			got, err := take(99, mustNew(t, c.wait).Subscribe(t.Context(), s))
			if lost == nil || !errors.Is(err, lost) || !strings.Contains(lost.Error(), c.text) {
				t.Errorf("lost with %v, ended with %v; want %q", lost, err, c.text)
			}
			if want := strings.Contains(c.first, "id: a"); want != (ids(got) == "a") || len(got) > 1 {
				t.Errorf("got %q", ids(got))
			}
		})
	}
}
