package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func newCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// fault is what a naive hub does wrong, at its twentieth update.
type fault string

const (
	none    fault = ""
	loses   fault = "loses"
	repeats fault = "repeats"
	swaps   fault = "swaps"
	strays  fault = "strays"
	differs fault = "differs"
	refuses fault = "refuses"
	closes  fault = "closes"
	forgets fault = "forgets" // an update in the middle of what is read again
	doubles fault = "doubles" // that update
	turns   fault = "turns"   // that update and the one before
)

// naive is a hub without tokens, which may have a fault.
type naive struct {
	fault fault
	keeps int // how many updates can be read again; 0: all

	mu      sync.Mutex
	readers []*naiveReader
	stored  []naiveUpdate
}

type naiveUpdate struct{ topic, event string }

type naiveReader struct {
	exact, prefixes []string
	events          chan string // closed to end the stream
}

func (r *naiveReader) wants(u naiveUpdate) bool {
	return slices.Contains(r.exact, u.topic) || slices.Contains(r.exact, "*") ||
		slices.ContainsFunc(r.prefixes, func(p string) bool { return strings.HasPrefix(u.topic, p) })
}

func (h *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		h.publish(w, r)
		return
	}
	q := r.URL.Query()
	reader := &naiveReader{exact: q["match"], events: make(chan string, 100_000)}
	for _, p := range q["match_urlpattern"] {
		prefix, _, _ := strings.Cut(p, ":id")
		reader.prefixes = append(reader.prefixes, prefix)
	}
	h.mu.Lock()
	cursor := q.Get("last_event_id")
	stored := h.stored
	if h.keeps > 0 {
		stored = stored[max(0, len(stored)-h.keeps):]
	}
	begins := func(u naiveUpdate) bool { return strings.HasPrefix(u.event, "id: "+cursor+"\n") }
	if cursor != "" && !slices.ContainsFunc(stored, begins) {
		cursor = "earliest"
	}
	if cursor != "" {
		if cursor != "earliest" {
			stored = stored[slices.IndexFunc(stored, begins)+1:]
		}
		h.replay(reader, stored)
	}
	h.readers = append(h.readers, reader)
	h.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Mercure-Last-Event-ID", cursor)
	flusher := http.NewResponseController(w)
	for {
		_ = flusher.Flush()
		select {
		case e, ok := <-reader.events:
			if !ok {
				return
			}
			if _, err := w.Write([]byte(e)); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// replay gives what is stored to a subscriber, with the fault.
func (h *naive) replay(reader *naiveReader, stored []naiveUpdate) {
	var events []string
	for _, u := range stored {
		if reader.wants(u) {
			events = append(events, u.event)
		}
	}
	switch i := len(events) / 2; {
	case i == 0:
	case h.fault == forgets:
		events = slices.Delete(events, i, i+1)
	case h.fault == doubles:
		events = slices.Insert(events, i, events[i])
	case h.fault == turns:
		events[i-1], events[i] = events[i], events[i-1]
	}
	for _, e := range events {
		reader.events <- e
	}
}

func (h *naive) publish(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.stored)
	if h.fault == refuses && n == 20 {
		h.fault = none
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	id := fmt.Sprintf("urn:naive:%d", n)
	u := naiveUpdate{r.FormValue("topic"), "id: " + id + "\ndata: " + r.FormValue("data") + "\n\n"}
	h.stored = append(h.stored, u)
	for i, reader := range h.readers {
		if !reader.wants(u) && (h.fault != strays || n != 20) {
			continue
		}
		h.hand(reader, i, n, u.event)
	}
	_, _ = w.Write([]byte(id))
}

// hand gives an update to a subscriber, with the fault.
func (h *naive) hand(reader *naiveReader, i, n int, event string) {
	switch {
	case h.fault == loses && n == 20 && i == 0:
	case h.fault == repeats && n == 20:
		reader.events <- event + event
	case h.fault == swaps && n == 20, h.fault == differs && n == 20 && i == 1:
	case h.fault == swaps && n == 21, h.fault == differs && n == 21 && i == 1:
		reader.events <- event
		reader.events <- h.stored[n-1].event
	case h.fault == closes && n == 20 && i == 0:
		close(reader.events)
		h.readers = slices.Delete(slices.Clone(h.readers), 0, 1)
	default:
		reader.events <- event
	}
}

// start serves the hub and gives its URL.
func (h *naive) start(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + hubPath
}

func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, bytes.Repeat([]byte("s"), 64), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runLoad runs the program and gives its exit code and its results. It is patient: what does not come soon is not lost.
func runLoad(t *testing.T, args ...string) (int, []result, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := command(t.Context(), append([]string{"-json", "-stall", "30s", "-duration", "30s"}, args...), &out, &errs)
	var results []result
	for line := range strings.Lines(out.String()) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return code, results, errs.String()
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	h := &naive{}
	args := []string{
		"-hub", h.start(t), "-key", secretFile(t), "-issuer", "https://issuer.example", "-pid", strconv.Itoa(os.Getpid()),
		"-n", "5", "-c", "3", "-events", "40", "-history", "100",
	}
	var results []result
	for _, more := range [][]string{
		{"-scenario", strings.Join(slices.DeleteFunc(scenarioNames(), func(s string) bool { return s == "idle" }), ",")},
		{"-scenario", "idle", "-rest", "100ms", "-duration", "100ms"},
	} {
		code, some, errs := runLoad(t, append(args, more...)...)
		if code != exitWhole {
			t.Fatalf("exit code %d: %s\n%+v", code, errs, some)
		}
		results = append(results, some...)
	}
	want := map[string]int64{
		"fan-out": 200, "topics": 40, "patterns": 40, "private": 200, "private-one": 40, "idle": 0, "connect": 0, "durable/publish": 0,
		"durable/read back": 40, "replay/store": 0, "replay/ten before the end": 5 * rare, "replay/ten of one topic from the earliest": 5 * rare,
		"replay/ten of one pattern from the earliest": 5 * rare, "replay/everything": 3 * (100 + rare + rare + 1),
	}
	for _, r := range results {
		name := strings.TrimSuffix(r.Scenario+"/"+r.Phase, "/")
		if n, ok := want[name]; !ok || r.Delivered != n || r.Expected != n {
			t.Errorf("%s delivered %d of %d, want %d", name, r.Delivered, r.Expected, n)
		}
		delete(want, name)
		if err := r.text(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault    fault
		scenario string
		want     func(result) bool
		text     string
	}{
		{loses, "fan-out", func(r result) bool { return r.Lost == 1 && r.Delivered == r.Expected-1 }, "1 lost"},
		{repeats, "fan-out", func(r result) bool { return r.Repeated == 3 }, "3 repeated"},
		{swaps, "fan-out", func(r result) bool { return r.Late == 3 }, "3 out of order"},
		{strays, "topics", func(r result) bool { return r.Stray == 2 }, "2 to the wrong subscriber"},
		{refuses, "fan-out", func(r result) bool { return r.Refused == 1 && r.Lost == 0 }, "1 publications not acknowledged"},
		{closes, "fan-out", func(r result) bool { return r.Closed == 1 && r.Lost > 0 }, "streams ended by the hub"},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			h := &naive{fault: c.fault}
			code, results, errs := runLoad(t, "-hub", h.start(t), "-key", secretFile(t), "-issuer", "https://issuer.example",
				"-scenario", c.scenario, "-n", "3", "-c", "1", "-events", "40", "-stall", "1s")
			if code != exitBroken || len(results) != 1 || !c.want(results[0]) {
				t.Fatalf("exit code %d, %+v, %s", code, results, errs)
			}
			if got := results[0].verdict(); !strings.HasPrefix(got, "FAILED: ") || !strings.Contains(got, c.text) {
				t.Errorf("verdict = %q, want %q in it", got, c.text)
			}
		})
	}
	t.Run("differs", func(t *testing.T) {
		h := &naive{fault: differs}
		code, results, errs := runLoad(t, "-hub", h.start(t), "-key", secretFile(t), "-issuer", "https://issuer.example", "-n", "3", "-c", "2", "-events", "40", "-stall", "1s")
		// The two updates are of one publisher or of two: then only the order among the publishers shows it.
		if r := results[0]; code != exitBroken || r.Disagreed+r.Late != 1 {
			t.Errorf("exit code %d, %+v, %s", code, results, errs)
		}
	})
}

// TestTrimmed reads back from hubs that keep the newest updates only, of which one has lost one of those.
func TestTrimmed(t *testing.T) {
	t.Parallel()
	for fault, want := range map[fault]struct {
		code            int
		delivered, lost int64
	}{none: {exitWhole, 10, 0}, forgets: {exitBroken, 9, 1}} {
		h := &naive{fault: fault, keeps: 10}
		code, results, errs := runLoad(t, "-hub", h.start(t), "-key", secretFile(t), "-issuer", "https://issuer.example", "-scenario", "durable", "-c", "1", "-events", "40",
			"-stall", "1s")
		if code != want.code || len(results) != 2 {
			t.Fatalf("%q: exit code %d, %+v, %s", fault, code, results, errs)
		}
		if r := results[1]; r.Delivered != want.delivered || r.Lost != want.lost || !strings.Contains(r.verdict(), "only what came was compared") {
			t.Errorf("%q: %+v, want %d delivered and %d lost", fault, r, want.delivered, want.lost)
		}
	}
}

// TestIdleUnknown has a hub of which nobody knows the process: among all scenarios one is left out, and what goes wrong counts for more than
// what cannot be tried.
func TestIdleUnknown(t *testing.T) {
	t.Parallel()
	args := []string{"-key", secretFile(t), "-issuer", "https://issuer.example", "-n", "3", "-c", "1", "-events", "40", "-history", "100", "-stall", "1s"}
	h := &naive{}
	code, results, errs := runLoad(t, append(args, "-hub", h.start(t), "-scenario", "all")...)
	if code != exitWhole || len(results) != 14 || !strings.Contains(results[5].Note, "-pid") {
		t.Errorf("exit code %d, %+v, %s", code, results, errs)
	}
	h = &naive{fault: loses}
	if code, _, errs = runLoad(t, append(args, "-hub", h.start(t), "-scenario", "fan-out,idle")...); code != exitBroken || !strings.Contains(errs, "-pid") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func TestOrderAmongLanes(t *testing.T) {
	a, b := follower{shared: make([]uint32, 2), own: noLane}, follower{shared: make([]uint32, 2), own: noLane}
	for _, l := range []uint32{0, 1} {
		a.see(mark{lane: l})
		b.see(mark{lane: 1 - l})
	}
	var r result
	r.account(&pool{readers: []*reader{{spec: subscription{follower: a}}, {spec: subscription{follower: b}}}}, []lane{{sent: 1}, {sent: 1}})
	if r.Disagreed != 1 || r.Delivered != 4 || !r.broken() {
		t.Errorf("%+v, want one that disagrees", r)
	}
}

// startTLS serves the hub over TLS, with HTTP/2, and gives its URL and the file with its certificate.
func (h *naive) startTLS(t *testing.T) (url, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // certificates are refused on purpose
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL + hubPath, ca
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	url, ca := (&naive{}).startTLS(t)
	args := []string{
		"-hub", url, "-key", secretFile(t), "-issuer", "https://issuer.example", "-n", "10", "-c", "2", "-events", "40", "-streams", "4",
	}
	for _, more := range [][]string{{"-http2", "-ca", ca}, {"-http2", "-insecure"}, {"-ca", ca}} {
		code, results, errs := runLoad(t, append(args, more...)...)
		if code != exitWhole || results[0].Delivered != 400 {
			t.Errorf("%v: exit code %d, %+v, %s", more, code, results, errs)
		}
	}
	if code, _, errs := runLoad(t, args...); code != exitUsage || !strings.Contains(errs, "certificate") {
		t.Errorf("an unknown certificate: exit code %d, %q", code, errs)
	}
}

// startFloor serves a floor until the test ends or stop is called, which gives how that went.
func startFloor(t *testing.T, log string) (url string, stop func() error) {
	t.Helper()
	var c net.ListenConfig
	l, err := c.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := newCancel(t)
	ended := make(chan error, 1)
	go func() { ended <- serveFloor(ctx, l, log) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return "http://" + l.Addr().String() + hubPath, stop
}

func TestFloor(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", filepath.Join(t.TempDir(), "log")} {
		url, stop := startFloor(t, file)
		args := []string{"-hub", url, "-key", secretFile(t), "-issuer", "https://issuer.example", "-n", "20", "-c", "4", "-events", "100"}
		code, results, errs := runLoad(t, append(args, "-scenario", "fan-out,topics,durable")...)
		if code != exitWhole || len(results) != 3 || results[0].Delivered != 2000 || results[1].Delivered != 100 {
			t.Errorf("exit code %d, %+v, %s", code, results, errs)
		}
		for _, scenario := range []string{"patterns", "replay"} {
			if code, _, errs := runLoad(t, append(args, "-scenario", scenario, "-history", "100")...); code != exitUsage || !strings.Contains(errs, "501") {
				t.Errorf("%s: exit code %d, %q, want 501", scenario, code, errs)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if raw, err := os.ReadFile(file); file != "" && (err != nil || bytes.Count(raw, []byte("\n\n")) < 300) {
			t.Errorf("the log has %d updates, want at least 300 (%v)", bytes.Count(raw, []byte("\n\n")), err)
		}
	}
}

func TestLeading(t *testing.T) {
	for want, r := range map[string]result{
		"2 KiB per subscriber": {Scenario: "idle", HubEach: 2048, ConnectedRate: 7},
		"7 connections/s":      {Scenario: "connect", ConnectedRate: 7},
		"3 ms":                 {Scenario: "replay", Phase: "ten before the end", Last: 3, DeliveredRate: 9},
		"9 deliveries/s":       {Scenario: "replay", Phase: "everything", Last: 3, DeliveredRate: 9},
		"5 publications/s":     {Scenario: "durable", Phase: "publish", PublishedRate: 5},
	} {
		if v, unit := r.leading(); fmt.Sprint(v, " ", unit) != want {
			t.Errorf("leading = %v %s, want %s", v, unit, want)
		}
	}
}

func TestRate(t *testing.T) {
	h := &naive{}
	code, results, errs := runLoad(t, "-hub", h.start(t), "-key", secretFile(t), "-issuer", "https://issuer.example", "-n", "2", "-c", "2", "-events", "20", "-rate", "100")
	if code != exitWhole || results[0].Seconds < 0.19 || results[0].Acknowledged != 20 {
		t.Errorf("exit code %d, %+v, %s; 20 updates at 100 a second take at least 0.19 s", code, results, errs)
	}
}

func TestUsage(t *testing.T) {
	secret := secretFile(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an argument":            {[]string{"x"}, "every argument is a flag"},
		"an unknown flag":        {[]string{"-x"}, "not defined"},
		"an unknown scenario":    {[]string{"-scenario", "x"}, "there is no \"x\""},
		"no token":               {nil, "publishers need a token"},
		"two tokens":             {[]string{"-key", secret, "-issuer", "x", "-token-file", secret}, "publishers need a token"},
		"a key without issuer":   {[]string{"-key", secret}, "-issuer"},
		"no subscribers":         {[]string{"-n", "0"}, "-n: too small"},
		"too little data":        {[]string{"-size", "10"}, "-size: too small"},
		"HTTP/2 in the clear":    {[]string{"-key", secret, "-issuer", "x", "-http2"}, "https"},
		"a hub without a scheme": {[]string{"-hub", "hub.example"}, "-hub"},
		"no file":                {[]string{"-key", secret + "x", "-issuer", "x"}, "no such file"},
		"tokens without key":     {[]string{"-token-file", secret, "-tokens"}, "need -key"},
		"private without key":    {[]string{"-token-file", secret, "-scenario", "private"}, "need -key"},
		"start and key":          {[]string{"-start", "x", "-key", secret, "-issuer", "x"}, "-start"},
		"idle without pid":       {[]string{"-key", secret, "-issuer", "x", "-scenario", "idle"}, "-pid"},
		"who cannot stall":       {[]string{"-key", secret, "-issuer", "x", "-scenario", "fan-out,topics", "-stalled", "1"}, "nobody to stall in topics"},
		"fewer than none stall":  {[]string{"-key", secret, "-issuer", "x", "-stalled", "-1"}, "-stalled"},
		"https without start":    {[]string{"-key", secret, "-issuer", "x", "-https"}, "-https needs -start"},
		"HTTP/2 without https":   {[]string{"-start", "x", "-http2"}, "needs -https"},
		"one plain of one":       {[]string{"-start", "x", "-https", "-versus-plain"}, "-versus-plain needs -versus"},
		"no hub":                 {[]string{"-hub", "http://127.0.0.1:1/x", "-key", secret, "-issuer", "x", "-n", "1"}, "refused"},
		"versus alone":           {[]string{"-versus", "floor", "-key", secret, "-issuer", "x"}, "-versus needs -start"},
		"no program":             {[]string{"-start", secret + "x"}, "start the hub"},
		"a program that ends":    {[]string{"-start", "true"}, "has ended before"},
	} {
		code, _, errs := runLoad(t, c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q, want %d and %q", name, code, errs, exitUsage, c.want)
		}
	}
	if code, _, errs := runLoad(t, "-h"); code != exitWhole || !strings.Contains(errs, "private-one") {
		t.Errorf("-h: exit code %d, %q", code, errs)
	}
}
