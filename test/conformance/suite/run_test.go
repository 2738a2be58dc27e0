package suite_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// fake is as much of a hub as the engine needs: exact matchers, no tokens, and a topic that it treats wrongly.
type fake struct {
	mu      sync.Mutex
	streams map[chan string][]string
	kept    string // the last event, for those who ask for the earliest
	n       int
	spoil   func(topic, event string) []string // what becomes of an event; nil: itself
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != suite.DefaultPath:
		http.NotFound(w, r)
	case r.Header.Get("Authorization") == "" && r.Method == http.MethodPost:
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPost:
		f.publish(w, r)
	case r.Method == http.MethodGet:
		f.subscribe(w, r)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (f *fake) publish(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	topic, id := r.PostForm.Get("topic"), fmt.Sprintf("urn:x:%d", f.n)
	event := "id: " + id + "\ndata: " + r.PostForm.Get("data") + "\n\n"
	f.kept = event
	events := []string{event}
	if f.spoil != nil {
		events = f.spoil(topic, event)
	}
	for out, topics := range f.streams {
		if slices.Contains(topics, topic) {
			for _, e := range events {
				out <- e
			}
		}
	}
	_, _ = w.Write([]byte(id))
}

func (f *fake) subscribe(w http.ResponseWriter, r *http.Request) {
	out := make(chan string, 100)
	f.mu.Lock()
	if r.URL.Query().Has("last_event_id") {
		out <- f.kept
	}
	f.streams[out] = r.URL.Query()["match"]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.streams, out)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(": hello\n\n"))
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case e := <-out:
			if e == "end" {
				return
			}
			_, _ = w.Write([]byte(e))
		case <-r.Context().Done():
			return
		}
	}
}

func startFake(t *testing.T, f *fake) *suite.Target {
	t.Helper()
	f.streams = map[chan string][]string{}
	server := httptest.NewServer(f)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	key := jose.HMAC("HS256", "", []byte("secret"))
	return &suite.Target{
		URL: server.URL + suite.DefaultPath, Issuers: []suite.Issuer{{ID: "https://issuer.example", Publish: key, Subscribe: key}},
		Features: map[suite.Feature]bool{suite.Anonymous: true},
	}
}

func rows() []suite.Requirement {
	return []suite.Requirement{{ID: "A-01", Area: "A", Level: suite.Must, Observe: "x"}, {ID: "A-02", Area: "A", Level: suite.May, Observe: "x"}}
}

func newSuite(t *testing.T, checks ...suite.Check) *suite.Suite {
	t.Helper()
	s, err := suite.New(rows(), checks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outcome runs one check and gives its result.
func outcome(t *testing.T, target *suite.Target, run func(t *suite.T), needs ...suite.Feature) suite.Result {
	t.Helper()
	results, err := newSuite(t, suite.Check{ID: "A-01", Case: "x", Run: run, Needs: needs}).Run(t.Context(), target, suite.Options{})
	if err != nil || len(results) != 1 {
		t.Fatalf("%v, %v", results, err)
	}
	return results[0]
}

func TestHowAStreamIsJudged(t *testing.T) {
	const odd = "https://example.com/odd"
	for name, c := range map[string]struct {
		spoil func(topic, event string) []string
		want  suite.Status
		says  string
	}{
		"right":        {nil, suite.Pass, "received 2 events"},
		"lost":         {func(string, string) []string { return nil }, suite.Fail, "received no event"},
		"twice":        {func(_, event string) []string { return []string{event, event} }, suite.Fail, "received 4 events"},
		"another id":   {func(_, event string) []string { return []string{strings.Replace(event, "urn:x", "urn:y", 1)} }, suite.Fail, "wanted 2 events"},
		"ended":        {func(string, string) []string { return []string{"end"} }, suite.Fail, "the stream ended"},
		"no UTF-8":     {func(string, string) []string { return []string{"data: \xff\n\n"} }, suite.Fail, "not UTF-8"},
		"only a hello": {func(_, event string) []string { return []string{":\n", event} }, suite.Pass, "received 2 events"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{spoil: func(topic, event string) []string {
				if topic == odd && c.spoil != nil {
					return c.spoil(topic, event)
				}
				return []string{event}
			}}
			res := outcome(t, startFake(t, f), func(t *suite.T) {
				s := t.ListenTo(odd)
				first, second := t.Publish("topic", odd, "data", "1"), t.Publish("topic", odd, "data", "2")
				s.Want(first, second)
			})
			if res.Status != c.want || !strings.Contains(res.Observed, c.says) {
				t.Errorf("%s: %s", res.Status, res.Observed)
			}
		})
	}
}

func TestWithheldUpdates(t *testing.T) {
	target := startFake(t, &fake{})
	res := outcome(t, target, func(t *suite.T) {
		s := t.ListenTo(t.Topic())
		t.Publish("topic", t.Topic(), "data", "elsewhere")
		s.Want()
	})
	if res.Status != suite.Pass {
		t.Error(res)
	}
	res = outcome(t, target, func(t *suite.T) {
		topic := t.Topic()
		s := t.ListenTo(topic)
		t.Publish("topic", topic, "data", "somebody else's")
		own := t.Publish("topic", topic, "data", "mine")
		s.WantOwn("mine", own)
	})
	if res.Status != suite.Pass {
		t.Error(res)
	}
}

func TestHowAnAnswerIsJudged(t *testing.T) {
	target := startFake(t, &fake{})
	for name, c := range map[string]struct {
		run  func(t *suite.T)
		want suite.Status
		says string
	}{
		"the wanted status":  {func(t *suite.T) { t.Want(t.Post("topic=a"), 401) }, suite.Pass, "POST topic=a: 401"},
		"another status":     {func(t *suite.T) { t.Want(t.Post("topic=a"), 400, 403) }, suite.Fail, "POST topic=a: answered 401 (Bearer), wanted 400 or 403"},
		"refused":            {func(t *suite.T) { t.WantRefused(t.At("/elsewhere")) }, suite.Pass, "404"},
		"not refused":        {func(t *suite.T) { t.WantRefused(t.Get("match=a")) }, suite.Fail, "answered 200, wanted a 4xx"},
		"no stream":          {func(t *suite.T) { t.Open(t.Post("topic=a")) }, suite.Fail, "wanted an event stream"},
		"publishing refused": {func(t *suite.T) { t.PublishWith(t.Post("topic=a")) }, suite.Fail, "wanted 200"},
		"no URL":             {func(t *suite.T) { t.Fetch("/relative", wire.Request{Method: "GET"}) }, suite.Fail, "not an absolute URL"},
		"the check breaks":   {func(*suite.T) { panic("oh") }, suite.Fail, "the check itself broke: oh"},
		"skipped":            {func(t *suite.T) { t.Skip("for a reason") }, suite.Skip, "for a reason"},
		"a missing feature":  {func(t *suite.T) { t.Need(suite.TLS) }, suite.Skip, "not known to have tls"},
		"no authorization server": {
			func(t *suite.T) { t.ServerToken(suite.CanPublish(suite.Any())) }, suite.Skip, "no authorization server",
		},
		"a stream that does not end": {func(t *suite.T) { t.ListenTo("a").WantEnd(time.Now()) }, suite.Fail, "still open"},
		"a token in the query":       {func(t *suite.T) { t.Want(t.Get("token="+t.SubscribeAll()), 500) }, suite.Fail, "GET ?token=(token): answered"},
	} {
		t.Run(name, func(t *testing.T) {
			if res := outcome(t, target, c.run); res.Status != c.want || !strings.Contains(res.Observed, c.says) || strings.Contains(res.Observed, "eyJ") {
				t.Errorf("%s: %s", res.Status, res.Observed)
			}
		})
	}
	if res := outcome(t, target, func(*suite.T) {}, suite.Cookie); res.Status != suite.Skip {
		t.Errorf("a check runs without what it needs: %+v", res)
	}
}

func TestACheckHasATime(t *testing.T) {
	target := startFake(t, &fake{})
	s := newSuite(t, suite.Check{ID: "A-01", Case: "x", Time: time.Millisecond, Run: func(t *suite.T) {
		t.Pause(time.Hour)
		t.ListenTo("a").Next()
	}})
	results, err := s.Run(t.Context(), target, suite.Options{})
	if err != nil || results[0].Status != suite.Fail {
		t.Errorf("%+v, %v", results, err)
	}
}

func TestPhases(t *testing.T) {
	target := startFake(t, &fake{})
	var running, most atomic.Int64
	var mu sync.Mutex
	var order []string
	check := func(name string, quiet, heavy bool) suite.Check {
		return suite.Check{ID: "A-01", Case: name, Quiet: quiet, Heavy: heavy, Run: func(*suite.T) {
			if n := running.Add(1); quiet || heavy {
				most.Store(max(most.Load(), n))
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			running.Add(-1)
		}}
	}
	var progress int
	results, err := newSuite(t, check("heavy", false, true), check("quiet", true, false), check("a", false, false), check("b", false, false), check("c", false, false)).
		Run(t.Context(), target, suite.Options{Parallel: 2, Select: func(c suite.Check) bool { return c.Case != "c" }, Progress: func(suite.Result) { progress++ }})
	if err != nil {
		t.Fatal(err)
	}
	if len(order) != 4 || order[2] != "quiet" || order[3] != "heavy" || most.Load() != 1 || progress != 4 {
		t.Errorf("order %v, %d at once, %d told", order, most.Load(), progress)
	}
	// The results are in the order of the checks, whatever the order they ran in.
	if results[0].Check != "A-01/heavy" || results[3].Check != "A-01/b" || results[0].Level != suite.Must {
		t.Errorf("%+v", results)
	}
}

func TestAHubThatCannotBeTested(t *testing.T) {
	target := startFake(t, &fake{spoil: func(string, string) []string { return []string{"end"} }})
	ran := false
	s := newSuite(t, suite.Check{ID: "A-01", Case: "x", Run: func(*suite.T) { ran = true }})
	if _, err := s.Run(t.Context(), target, suite.Options{}); !errors.Is(err, suite.ErrUnready) || ran {
		t.Errorf("%v, ran %v", err, ran)
	}
	if err := suite.Detect(t.Context(), target); !errors.Is(err, suite.ErrUnready) {
		t.Error(err)
	}
}

func TestTheTimeOfTheRun(t *testing.T) {
	target := startFake(t, &fake{})
	s := newSuite(t,
		suite.Check{ID: "A-01", Case: "x", Run: func(t *suite.T) { t.Pause(50 * time.Millisecond) }},
		suite.Check{ID: "A-01", Case: "y", Quiet: true, Run: func(*suite.T) {}},
	)
	// What runs when the time is over runs to its end; what has not begun is skipped, and the run does not pass for a whole one.
	results, err := s.Run(t.Context(), target, suite.Options{Limit: 40 * time.Millisecond})
	if err != nil || results[0].Status == suite.Fail || results[1].Status != suite.Skip || results[1].Observed != "the time of the run was over" || !suite.Cut(results) {
		t.Errorf("%+v, %v", results, err)
	}
	if results, err = s.Run(t.Context(), target, suite.Options{}); err != nil || suite.Cut(results) {
		t.Errorf("%+v, %v", results, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s = newSuite(t, suite.Check{ID: "A-01", Case: "x", Run: func(*suite.T) { cancel() }})
	if _, err := s.Run(ctx, target, suite.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted run: %v", err)
	}
}

func TestDetect(t *testing.T) {
	target := startFake(t, &fake{})
	target.Features = nil
	if err := suite.Detect(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[suite.Feature]bool{suite.Anonymous: true, suite.QueryMethod: false, suite.Cookie: false, suite.Metadata: false, suite.History: true, suite.Closed: false} {
		if target.Has(f) != want {
			t.Errorf("%s: %v, want %v", f, target.Has(f), want)
		}
	}
}

func TestChecksThatCannotBe(t *testing.T) {
	run := func(*suite.T) {}
	for name, checks := range map[string][]suite.Check{
		"no such requirement": {{ID: "B-01", Case: "x", Run: run}},
		"no case":             {{ID: "A-01", Run: run}},
		"a space":             {{ID: "A-01", Case: "a b", Run: run}},
		"nothing to run":      {{ID: "A-01", Case: "x"}},
		"twice":               {{ID: "A-01", Case: "x", Run: run}, {ID: "A-01", Case: "x", Run: run}},
	} {
		if _, err := suite.New(rows(), checks); !errors.Is(err, suite.ErrMatrix) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTargetsThatCannotBe(t *testing.T) {
	key := jose.HMAC("HS256", "", []byte("secret"))
	issuer := suite.Issuer{ID: "https://issuer.example", Publish: key, Subscribe: key}
	for name, target := range map[string]suite.Target{
		"no URL":       {Issuers: []suite.Issuer{issuer}},
		"relative":     {URL: "/.well-known/mercure", Issuers: []suite.Issuer{issuer}},
		"no path":      {URL: "https://hub.example", Issuers: []suite.Issuer{issuer}},
		"a query":      {URL: "https://hub.example/x?y", Issuers: []suite.Issuer{issuer}},
		"no issuer":    {URL: "https://hub.example/x"},
		"half a key":   {URL: "https://hub.example/x", Issuers: []suite.Issuer{{ID: "x", Publish: key}}},
		"no name":      {URL: "https://hub.example/x", Issuers: []suite.Issuer{{Publish: key, Subscribe: key}}},
		"no cookie":    {URL: "https://hub.example/x", Issuers: []suite.Issuer{issuer}, Features: map[suite.Feature]bool{suite.Cookie: true}},
		"no origin":    {URL: "https://hub.example/x", Issuers: []suite.Issuer{issuer}, CORSOrigin: "https://app.example/"},
		"upper case":   {URL: "https://hub.example/x", Issuers: []suite.Issuer{issuer}, PublishOrigin: "https://App.example"},
		"no such port": {URL: "https://hub.example:x/x", Issuers: []suite.Issuer{issuer}},
	} {
		if err := target.Complete(); !errors.Is(err, suite.ErrTarget) {
			t.Errorf("%s: %v", name, err)
		}
	}
	target := suite.Target{URL: "https://hub.example/hubs/live", Issuers: []suite.Issuer{issuer}, Lifetime: time.Second}
	if err := target.Complete(); err != nil {
		t.Fatal(err)
	}
	if target.Resource != target.URL || target.PublishOrigin != "https://hub.example" || target.Path() != "/hubs/live" ||
		target.MetadataURL() != "https://hub.example/.well-known/oauth-protected-resource/hubs/live" {
		t.Errorf("%+v", target)
	}
	want := []suite.Feature{suite.Closed, suite.NoSubscriptions, suite.TLS, suite.OneKey, suite.OtherPath, suite.ShortLifetime}
	if !slices.Equal(target.Known(), want) {
		t.Errorf("features %v, want %v", target.Known(), want)
	}
}
