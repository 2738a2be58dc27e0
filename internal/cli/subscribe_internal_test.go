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

// scriptedHub answers with its steps, in order, and keeps what it was asked.
type scriptedHub struct {
	steps   []step
	cursors []string
	tokens  []string
	before  func(request int)
}

func (h *scriptedHub) RoundTrip(r *http.Request) (*http.Response, error) {
	n := len(h.cursors)
	h.cursors = append(h.cursors, r.Header.Get("Last-Event-ID"))
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
func follow(t *testing.T, hub *scriptedHub, o subscribeOptions) (out, messages string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.target.Hub = "https://hub.example.com/hub"
	s := &subscription{
		options: &o, env: Env{Stdout: &stdout, Stderr: &stderr}, client: &http.Client{Transport: hub},
		url: o.target.Hub, cursor: o.cursor, wait: defaultReconnect,
	}
	err = s.follow(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestSubscription_resumesWhereItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resumed := streamOf("id: b\ndata: 2\n\n")
		resumed.header.Set("Mercure-Last-Event-ID", "a")
		hub := &scriptedHub{steps: []step{
			streamOf("retry: 5000\n\nid: a\ndata: 1\n\n"), {}, {status: http.StatusServiceUnavailable}, resumed,
		}}
		start := time.Now()
		out, messages, err := follow(t, hub, subscribeOptions{count: 2})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"", "a", "a", "a"}, hub.cursors); diff != "" {
			t.Errorf("Last-Event-ID of the requests (-want +got):\n%s", diff)
		}
		if waited := time.Since(start); waited != 15*time.Second {
			t.Errorf("waited %v, want three times the 5s that the hub asked for", waited)
		}
		if want := "id: a\n1\n\nid: b\n2\n\n"; out != want {
			t.Errorf("printed %q, want %q", out, want)
		}
		if n := strings.Count(messages, "stream ended, resuming in 5s"); n != 3 || strings.Contains(messages, "may be missing") {
			t.Errorf("said %q", messages)
		}
	})
}

func TestSubscription_resumesBeforeTheFirstUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &scriptedHub{steps: []step{streamOf(""), {}, streamOf("id: a\ndata: 1\n\n")}}
		if _, _, err := follow(t, hub, subscribeOptions{count: 1}); err != nil {
			t.Errorf("a hub that restarts ends the verb: %v", err)
		}
	})
}

func TestSubscription_keepsTheWaitWithinBounds(t *testing.T) {
	for retry, want := range map[string]time.Duration{"1": minReconnect, "86400000": maxReconnect} {
		synctest.Test(t, func(t *testing.T) {
			hub := &scriptedHub{steps: []step{streamOf("retry: " + retry + "\n\n"), streamOf("id: a\ndata: 1\n\n")}}
			start := time.Now()
			if _, _, err := follow(t, hub, subscribeOptions{count: 1}); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited != want {
				t.Errorf("retry: %s waits %v, want %v", retry, waited, want)
			}
		})
	}
}

func TestSubscription_takesAFreshTokenFromItsFile(t *testing.T) {
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
		if _, _, err := follow(t, hub, o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"Bearer first", "Bearer second", "Bearer second"}, hub.tokens); diff != "" {
			t.Errorf("tokens of the requests (-want +got):\n%s", diff)
		}
	})
}

func TestSubscription_saysWhenUpdatesMayBeMissing(t *testing.T) {
	for from, said := range map[string]bool{"": false, "x": false, "y": true, "earliest": true} {
		hub := &scriptedHub{steps: []step{streamOf("id: a\ndata: 1\n\n")}}
		hub.steps[0].header.Set("Mercure-Last-Event-ID", from)
		_, messages, err := follow(t, hub, subscribeOptions{count: 1, cursor: "x"})
		if err != nil || strings.Contains(messages, "does not know the event x") != said {
			t.Errorf("resumed from %q: said %q, %v", from, messages, err)
		}
	}
}

func TestSubscription_endsOnWhatDoesNotPass(t *testing.T) {
	opened := streamOf("")
	for name, c := range map[string]struct {
		steps []step
		code  int
		text  string
	}{
		"nobody listens":          {[]step{{}}, ExitFailure, "connection refused"},
		"no event stream":         {[]step{{status: 200, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}}, ExitFailure, "text/html"},
		"refused":                 {[]step{{status: 401}}, ExitRefused, "Unauthorized"},
		"refused after a while":   {[]step{opened, {status: 401}}, ExitRefused, "Unauthorized"},
		"another place":           {[]step{{status: 404}}, ExitFailure, "Not Found"},
		"unavailable from start":  {[]step{{status: 503}}, ExitFailure, "Service Unavailable"},
		"unavailable, then gone":  {[]step{opened, {status: 503}, {status: 403}}, ExitRefused, "Forbidden"},
		"too many, after a while": {[]step{opened, {status: 429}}, ExitRefused, "Too Many Requests"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &scriptedHub{steps: c.steps}
				_, _, err := follow(t, hub, subscribeOptions{})
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

func TestSubscription_endsWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // within the wait
		defer cancel()
		s := &subscription{
			options: &subscribeOptions{}, env: Env{Stderr: io.Discard}, client: &http.Client{Transport: &scriptedHub{steps: []step{streamOf("")}}},
			url: "https://hub.example.com/hub", wait: defaultReconnect,
		}
		start := time.Now()
		if err := s.follow(ctx); err != nil || time.Since(start) != time.Second {
			t.Errorf("follow = %v after %v", err, time.Since(start))
		}
	})
}

func TestSubscription_prints(t *testing.T) {
	hub := func() *scriptedHub {
		return &scriptedHub{steps: []step{streamOf("id: a\nevent: sold\ndata: one\ndata: two\n\nid: b\ndata:\n\n")}}
	}
	for want, json := range map[string]bool{
		"id: a\ntype: sold\none\ntwo\n\nid: b\n\n\n":                                        false,
		`{"id":"a","type":"sold","data":"one\ntwo"}` + "\n" + `{"id":"b","data":""}` + "\n": true,
	} {
		if out, _, err := follow(t, hub(), subscribeOptions{count: 2, json: json}); err != nil || out != want {
			t.Errorf("json %t printed %q, %v; want %q", json, out, err, want)
		}
	}
}
