package crash_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/test/harness"
)

const (
	publishers   = 64
	acksPerRound = 70               // at least: most publishers have had an answer, and some more than one
	patience     = 30 * time.Second // for one round, on a machine that has other things to do
)

// What TestKill does by default is a sample; -kill.rounds=200 is the whole.
var (
	killRounds  = flag.Int("kill.rounds", 10, "how often TestKill kills the hub, for each driver")
	killDrivers = flag.String("kill.drivers", strings.Join(durableDrivers(), ","), "the history drivers that TestKill goes through, separated by commas")
)

// durableDrivers lists the history drivers that survive being killed.
func durableDrivers() []string {
	return slices.DeleteFunc(config.HistoryDrivers(), func(d string) bool { return !config.History{Driver: d}.Durable() })
}

// killing is the state of the test that kills the hub.
type killing struct {
	t      *testing.T
	rounds int
	hub    *plainHub
	ledger *ledger
	gate   *gate
	http   *http.Client

	next [publishers]int // the number of each publisher's next update; a publisher's own while it runs

	mu      sync.Mutex
	there   *sync.Cond
	streams map[int]int // streams that readers have opened, by the hub's generation
}

// TestKill ends the hub with SIGKILL over and over while 64 publishers publish, each time in a moment in which a publish is known to
// be unanswered, and looks at what readers see that carry their cursors from one hub to the next (I7, DUR). Flags say how often, and
// with which history.
func TestKill(t *testing.T) {
	for driver := range strings.SplitSeq(*killDrivers, ",") {
		t.Run(driver, func(t *testing.T) {
			if !slices.Contains(durableDrivers(), driver) {
				t.Fatalf("no durable history driver %q", driver)
			}
			dir := t.TempDir()
			hub := newPlainHub(t, dir, driver, filepath.Join(dir, "history"))
			k := &killing{t: t, rounds: *killRounds, hub: hub, ledger: newLedger(), gate: newGate(), streams: map[int]int{}}
			k.run()
		})
	}
}

func (k *killing) run() {
	t := k.t
	t.Helper()
	k.there = sync.NewCond(&k.mu)
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * publishers}
	t.Cleanup(transport.CloseIdleConnections)
	k.http = &http.Client{Transport: transport}
	const last = "the-last-one"
	readers := []*reader{
		{name: "everything, by one exact topic", query: "match=" + url.QueryEscape(everything), token: k.hub.subscribe},
		{name: "everything, by a pattern", query: "match_urlpattern=" + url.QueryEscape("https://example.com/books/:publisher/:n"), token: k.hub.subscribe},
		{name: "everything, by several matchers", query: "match=" + url.QueryEscape(everything) + "&match_urlpattern=" + url.QueryEscape("https://*.com/books/p00/*"), token: k.hub.subscribe},
		{name: "everything, by *", query: "match=*", token: k.hub.subscribe},
		{name: "public, by a pattern", query: "match_urlpattern=" + url.QueryEscape("https://example.com/books/*")},
		{name: "public, by one exact topic", query: "match=" + url.QueryEscape(everything)},
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience*time.Duration(k.rounds+4))
	defer cancel()
	reading, readCtx := errgroup.WithContext(ctx)
	for _, r := range readers {
		r.last, r.opened = last, k.opened
		reading.Go(func() error { return r.run(readCtx, k.http, k.hub.url, k.gate) })
	}

	kills, attempts, unanswered, start := 0, 0, 0, time.Now()
	for ; kills < k.rounds && attempts < 3*k.rounds && readCtx.Err() == nil; attempts++ { // rounds that prove nothing are repeated, but not for ever
		n := k.round(readCtx, attempts, len(readers))
		if n > 0 {
			kills++
		}
		unanswered += n
	}
	if readCtx.Err() != nil {
		t.Fatalf("after %d rounds: %v", attempts, reading.Wait())
	}
	if kills < k.rounds {
		t.Fatalf("only %d of %d kills had a publish that was unanswered", kills, attempts)
	}
	took := time.Since(start).Round(time.Millisecond)

	h := harness.Start(t, "hub", "serve", "--config", k.hub.config)
	h.WaitFor("hub is ready")
	k.gate.open()
	resp, body := harness.Do(t, k.http, http.MethodPost, k.hub.url,
		url.Values{"topic": {everything, everything + "/the/end"}, "id": {last}, "data": {last}}, harness.Bearer(k.hub.publish))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("publish = %d %s", resp.StatusCode, body)
	}
	if err := reading.Wait(); err != nil {
		t.Fatal(err)
	}
	late := &reader{name: "everything, from the beginning", query: "match=*", token: k.hub.subscribe, last: last, opened: func(int) {}}
	if err := late.run(ctx, k.http, k.hub.url, k.gate); err != nil {
		t.Fatal(err)
	}
	k.verdict(late.seen, readers)
	t.Logf("%d kills in %d rounds, %d publishes acknowledged, %d unanswered at a kill, %d updates kept, in %v",
		kills, attempts, k.ledger.count(), unanswered, len(late.seen), took)
}

// round starts the hub, publishes, and kills it. It returns how many publishes were unanswered when it was killed, and stayed so.
func (k *killing) round(ctx context.Context, round, readers int) int {
	k.t.Helper()
	if round%10 == 9 { // killed while it starts, too: opening must not harm what it opens
		early := harness.Start(k.t, "hub", "serve", "--config", k.hub.config)
		timer := time.NewTimer(time.Duration(round) * time.Millisecond)
		select {
		case <-timer.C:
		case <-early.Done:
			k.t.Fatalf("the hub did not start: %s", early.Out.Tail())
		}
		early.Kill()
		early.Quiet = true
	}
	h := harness.Start(k.t, "hub", "serve", "--config", k.hub.config)
	h.WaitFor("hub is ready")
	k.http.CloseIdleConnections() // they led to the hub before this one
	generation := k.gate.open()
	before := k.ledger.count()
	publishing, pubCtx := errgroup.WithContext(ctx)
	for p := range publishers {
		publishing.Go(func() error { return k.publish(pubCtx, p, generation) })
	}
	k.allReading(ctx, readers)
	pause := time.Duration(round%16) * 130 * time.Microsecond
	waiting := k.ledger.whenUnanswered(pubCtx, before+acksPerRound, pause, func() {
		k.gate.shut()
		_ = h.Cmd.Process.Kill()
	})
	if pubCtx.Err() != nil {
		h.Kill() // publishers say below what ended them, and readers to our caller
	}
	<-h.Done
	if err := publishing.Wait(); err != nil {
		k.t.Fatal(err)
	}
	h.Quiet = true
	n := 0
	for _, u := range waiting {
		if u.acked == 0 {
			n++
		}
	}
	return n
}

// opened is told by each reader of each stream.
func (k *killing) opened(generation int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.streams[generation]++
	k.there.Broadcast()
}

// allReading waits until every reader has a stream of the hub that runs now.
func (k *killing) allReading(ctx context.Context, readers int) {
	stop := context.AfterFunc(ctx, func() { k.mu.Lock(); defer k.mu.Unlock(); k.there.Broadcast() })
	defer stop()
	k.gate.mu.Lock()
	generation := k.gate.generation
	k.gate.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.streams[generation] < readers && ctx.Err() == nil {
		k.there.Wait()
	}
}

// publish publishes one update after the other until the hub of this generation is gone.
func (k *killing) publish(ctx context.Context, publisher, generation int) error {
	for {
		u := k.ledger.send(publisher, k.next[publisher])
		k.next[publisher]++
		form := url.Values{
			"topic": {fmt.Sprintf("%s/p%02d/%s", everything, publisher, u.id), everything}, "id": {u.id}, "data": {data(u.id)},
		}
		if u.private {
			form.Set("private", "on")
		}
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				k.ledger.wrote(u)
			}
		}})
		resp, body, err := harness.Try(traced, k.http, http.MethodPost, k.hub.url, form, harness.Bearer(k.hub.publish))
		acknowledged := err == nil && resp.StatusCode == http.StatusOK
		k.ledger.end(u, acknowledged)
		switch {
		case err != nil && ctx.Err() == nil && k.gate.isOpen(generation):
			return fmt.Errorf("publish of %s to a hub that was not killed: %w", u.id, err)
		case err != nil:
			return nil //nolint:nilerr // the hub was killed, or whoever ended ctx says why
		case !acknowledged:
			return fmt.Errorf("publish = %d %s", resp.StatusCode, body)
		case body != u.id:
			return fmt.Errorf("publish of %s gave %q", u.id, body)
		}
	}
}

// verdict compares what everybody saw.
func (k *killing) verdict(everySeen []string, readers []*reader) {
	k.t.Helper()
	if wrong := k.ledger.judge(everySeen); len(wrong) > 0 {
		k.t.Errorf("%d things are wrong, among them:\n%s", len(wrong), strings.Join(wrong[:min(10, len(wrong))], "\n"))
	}
	var public []string
	for _, id := range everySeen {
		if u := k.ledger.all[id]; u != nil && !u.private {
			public = append(public, id)
		}
	}
	for _, r := range readers {
		want := everySeen
		if r.token == "" {
			want = public
		}
		if !slices.Equal(r.seen, want) {
			k.t.Errorf("%s: %s", r.name, difference(r.seen, want))
		}
		if r.opens < k.rounds {
			k.t.Errorf("%s: had %d streams", r.name, r.opens)
		}
	}
	if n := k.ledger.count(); n < k.rounds*acksPerRound {
		k.t.Errorf("only %d acknowledgements", n)
	}
}

// difference says where two sequences part.
func difference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("saw %q as number %d, others saw %q there", got[i], i, want[i])
		}
	}
	return fmt.Sprintf("saw %d updates, others %d", len(got), len(want))
}
