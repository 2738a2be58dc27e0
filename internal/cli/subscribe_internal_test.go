package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/client"
)

// step is one answer of a hub: a response, or a failure to connect.
type step struct {
	status int // 0: nobody listens
	header http.Header
	body   string
}

func streamOf(body string) step {
	return step{status: http.StatusOK, header: http.Header{"Content-Type": {"text/event-stream"}}, body: body}
}

// resumedFrom adds what the hub says about the cursor.
func (s step) resumedFrom(id string) step {
	s.header = s.header.Clone()
	s.header.Set("Mercure-Last-Event-ID", id)
	return s
}

// scriptedHub answers with its steps, in order, and keeps what it was asked.
type scriptedHub struct {
	steps   []step
	cursors []string
	tokens  []string
	before  func(request int)
}

func (h *scriptedHub) RoundTrip(r *http.Request) (*http.Response, error) {
	n := len(h.cursors)
	h.cursors = append(h.cursors, r.Header.Get("Last-Event-ID")+r.URL.Query().Get("last_event_id"))
	h.tokens = append(h.tokens, r.Header.Get("Authorization"))
	if h.before != nil {
		h.before(n)
	}
	if n >= len(h.steps) {
		<-r.Context().Done() // a test that asks for more must end by itself
		return nil, r.Context().Err()
	}
	s := h.steps[n]
	if s.status == 0 {
		return nil, errors.New("connection refused")
	}
	if s.header == nil {
		s.header = http.Header{}
	}
	return &http.Response{
		Status: http.StatusText(s.status), StatusCode: s.status, Header: s.header,
		Body: io.NopCloser(strings.NewReader(s.body)), Request: r,
	}, nil
}

// follow runs the verb against a hub, and gives its result and what it printed.
func follow(t *testing.T, ctx context.Context, hub *scriptedHub, o subscribeOptions) (out, messages string, err error) { //nolint:revive // the test comes first
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.target.Hub = "https://hub.example.com/hub"
	env := Env{Stdout: &stdout, Stderr: &stderr}
	c, err := client.New(client.Options{HubURL: o.target.Hub, HTTPClient: &http.Client{Transport: hub}, Token: o.target.source(env)})
	if err != nil {
		t.Fatal(err)
	}
	err = o.follow(ctx, env, c, []string{"*"})
	return stdout.String(), stderr.String(), err
}

func TestSubscribe_resumesWhereItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &scriptedHub{steps: []step{
			streamOf("retry: 5000\n\nid: a\ndata: 1\n\n"),
			{},
			{status: http.StatusServiceUnavailable},
			{status: http.StatusTooManyRequests},
			streamOf("id: b\ndata: 2\n\n").resumedFrom("a"),
		}}
		out, messages, err := follow(t, t.Context(), hub, subscribeOptions{count: 2})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"", "a", "a", "a", "a"}, hub.cursors); diff != "" {
			t.Errorf("cursors of the requests (-want +got):\n%s", diff)
		}
		if want := "id: a\n1\n\nid: b\n2\n\n"; out != want {
			t.Errorf("printed %q, want %q", out, want)
		}
		if n := strings.Count(messages, ", resuming in "); n != 4 || strings.Contains(messages, "may be missing") {
			t.Errorf("said %q", messages)
		}
	})
}

func TestSubscribe_takesAFreshTokenFromItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "subscribe.header")
		hub := &scriptedHub{steps: []step{streamOf(""), streamOf(""), streamOf("id: a\ndata: 1\n\n")}}
		hub.before = func(request int) {
			var err error
			switch request {
			case 0:
				err = os.WriteFile(file, []byte("Authorization: Bearer second\n"), 0o600)
			case 1:
				err = os.Remove(file) // the server is being restarted
			}
			if err != nil {
				t.Error(err)
			}
		}
		o := subscribeOptions{count: 1}
		o.target.Token, o.target.TokenFile = "first", file
		if _, _, err := follow(t, t.Context(), hub, o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"Bearer first", "Bearer second", "Bearer second"}, hub.tokens); diff != "" {
			t.Errorf("tokens of the requests (-want +got):\n%s", diff)
		}
	})
}

func TestSubscribe_saysWhenUpdatesMayBeMissing(t *testing.T) {
	first := streamOf("id: a\ndata: 1\n\n")
	for name, c := range map[string]struct {
		cursor string
		steps  []step
		said   string
	}{
		"resumed":                   {"x", []step{first.resumedFrom("x")}, ""},
		"another event":             {"x", []step{first.resumedFrom("y")}, "does not know the event x and starts after y"},
		"the oldest":                {"x", []step{first.resumedFrom("earliest")}, "does not know the event x and starts with the oldest"},
		"not a word":                {"x", []step{first}, "does not say whether it resumes"},
		"lost before the first one": {"", []step{streamOf(""), first}, "no update to resume after"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &scriptedHub{steps: c.steps}
				out, messages, err := follow(t, t.Context(), hub, subscribeOptions{count: 1, cursor: c.cursor, json: true})
				if err != nil || !strings.Contains(messages, c.said) || c.said == "" && messages != "" {
					t.Errorf("said %q, %v; want %q", messages, err, c.said)
				}
				if got := strings.Contains(out, `"gap":true`); got != (c.said != "") {
					t.Errorf("printed %q", out)
				}
			})
		})
	}
}

func TestSubscribe_endsOnWhatDoesNotPass(t *testing.T) {
	opened := streamOf("")
	for name, c := range map[string]struct {
		steps []step
		code  int
		text  string
	}{
		"nobody listens":          {[]step{{}}, ExitFailure, "reach https://hub.example.com/hub: connection refused"},
		"no event stream":         {[]step{{status: 200, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}}, ExitFailure, "text/html"},
		"refused":                 {[]step{{status: 401}}, ExitRefused, "Unauthorized"},
		"refused after a while":   {[]step{opened, {status: 401}}, ExitRefused, "Unauthorized"},
		"another place":           {[]step{{status: 404}}, ExitFailure, "Not Found"},
		"unavailable from start":  {[]step{{status: 503}}, ExitFailure, "Service Unavailable"},
		"too many from the start": {[]step{{status: 429}}, ExitRefused, "Too Many Requests"},
		"unavailable, then gone":  {[]step{opened, {status: 503}, {status: 403}}, ExitRefused, "Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &scriptedHub{steps: c.steps}
				_, _, err := follow(t, t.Context(), hub, subscribeOptions{})
				e, ok := errors.AsType[*Error](err)
				if !ok || e.Code != c.code || !strings.Contains(err.Error(), c.text) {
					t.Errorf("follow = %v, want code %d and %q", err, c.code, c.text)
				}
				if len(hub.cursors) != len(c.steps) {
					t.Errorf("%d requests, want %d", len(hub.cursors), len(c.steps))
				}
			})
		})
	}
}

func TestSubscribe_endsWhenInterrupted(t *testing.T) {
	for name, steps := range map[string][]step{"while it waits": {streamOf("retry: 60000\n\n")}, "while it connects": nil} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			if _, _, err := follow(t, ctx, &scriptedHub{steps: steps}, subscribeOptions{}); err != nil || time.Since(start) != time.Second {
				t.Errorf("%s: follow = %v after %v", name, err, time.Since(start))
			}
		})
	}
}

func TestSubscribe_prints(t *testing.T) {
	hub := func() *scriptedHub {
		return &scriptedHub{steps: []step{streamOf("id: a\nevent: sold\ndata: one\ndata: two\n\nid: b\ndata:\n\n")}}
	}
	for want, json := range map[string]bool{
		"id: a\ntype: sold\none\ntwo\n\nid: b\n\n\n":                                        false,
		`{"id":"a","type":"sold","data":"one\ntwo"}` + "\n" + `{"id":"b","data":""}` + "\n": true,
	} {
		if out, _, err := follow(t, t.Context(), hub(), subscribeOptions{count: 2, json: json}); err != nil || out != want {
			t.Errorf("json %t printed %q, %v; want %q", json, out, err, want)
		}
	}
}
