package checks

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// stressChecks put load on the hub. Their goroutines belong to the check, which waits for all of them and alone reports.
func stressChecks() []suite.Check {
	heavy := func(id, name string, run func(t *suite.T), needs ...suite.Feature) suite.Check {
		c := one(id, name, run, needs...)
		c.Heavy, c.Time = true, 3*time.Minute
		return c
	}
	return []suite.Check{
		heavy("STRESS-01", "1000-streams-50-events", stressMany),
		heavy("STRESS-02", "20-clients-120-events", stressStorm, suite.History),
		heavy("STRESS-03", "one-unread-stream", func(t *suite.T) { stressStalled(t, 1, false) }),
		heavy("STRESS-03", "five-unread-streams", func(t *suite.T) { stressStalled(t, 5, false) }),
		heavy("STRESS-03", "unread-replay", func(t *suite.T) { stressStalled(t, 1, true) }, suite.History),
	}
}

const (
	stressStreams = 1000
	stressEvents  = 50
	stressOpening = 32 // streams that are opened at once
	// stressLifetime is what a connection must live for a check to be possible.
	stressLifetime = 3 * time.Minute
)

// stressMany opens many streams and publishes to all of them.
func stressMany(t *suite.T) {
	if life := t.Target().Lifetime; life > 0 && life < stressLifetime {
		t.Skip("the hub ends connections after %s, too soon for this check", life)
	}
	topic := t.Topic()
	token := t.SubscribeAll()
	requests := make([]wire.Request, stressStreams)
	for i := range requests {
		query := recTo(topic)
		if i%2 == 1 { // the other half by a pattern
			query = "match_urlpattern=" + wire.Escape(topic)
		}
		requests[i] = suite.Bearer(t.Get(query), token)
	}
	streams, refused, err := stressOpen(t, requests)
	var wg sync.WaitGroup
	stop := func() { // readers end when their streams do
		for _, s := range streams {
			s.Close()
		}
		wg.Wait()
	}
	defer stop()
	switch {
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		t.Skip("this machine allows too few open files: %v", err)
	case err != nil:
		t.Fail("opening %d streams: no answer: %v", stressStreams, err)
	case refused != 0 && refused != 429:
		t.Fail("of %d streams, %d were opened; then: %d", stressStreams, len(streams), refused)
	case refused == 429 && len(streams) < 2:
		t.Skip("the hub allows too few connections: 429 after %d", len(streams))
	case refused == 429:
		t.Observed("the hub allows %d connections", len(streams))
	}

	began := time.Now()
	wrong := make([]error, len(streams))
	for i, s := range streams {
		wg.Go(func() { wrong[i] = stressRead(s) })
	}
	post := suite.Bearer(t.Post(""), t.PublishAll())
	for i := range stressEvents {
		t.PublishWith(stressBody(post, wire.Form("topic", topic, "data", strconv.Itoa(i))))
	}
	t.Observed("published after %s", time.Since(began).Round(time.Millisecond))
	if !stressWait(t, &wg) {
		stop()
	}
	for i, err := range wrong {
		if err != nil {
			t.Fail("stream %d of %d: %v", i+1, len(streams), err)
		}
	}
	t.Observed("%d streams received %d events each after %s", len(streams), stressEvents, time.Since(began).Round(time.Millisecond))
}

// stressBody gives a request another body.
func stressBody(r wire.Request, form string) wire.Request {
	r.Body = []byte(form)
	return r
}

// stressOpen opens streams, several at once, until one is refused. It gives those that were opened, the status of a
// refusal, and an error.
func stressOpen(t *suite.T, requests []wire.Request) (streams []*wire.Response, refused int, err error) {
	var mu sync.Mutex
	next := 0
	take := func() (wire.Request, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(requests) || refused != 0 || err != nil {
			return wire.Request{}, false
		}
		next++
		return requests[next-1], true
	}
	give := func(resp *wire.Response, e error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case e != nil:
			err = e
		case resp.Stream == nil:
			refused = resp.Status
		default:
			streams = append(streams, resp)
		}
	}
	var wg sync.WaitGroup
	for range stressOpening {
		wg.Go(func() {
			for {
				r, ok := take()
				if !ok {
					return
				}
				give(t.Try(r))
			}
		})
	}
	wg.Wait()
	return streams, refused, err
}

// stressRead reads the numbered events of a stream, which must come in order, and says what was wrong with them.
func stressRead(s *wire.Response) error {
	r := wire.NewEventReader(s.Stream)
	for i := 0; i < stressEvents; {
		e, err := r.Next()
		if err != nil {
			return fmt.Errorf("it ended after %d of %d events: %w", i, stressEvents, err)
		}
		if !e.Dispatched {
			continue
		}
		if e.Data != strconv.Itoa(i) {
			return fmt.Errorf("event %d has the data %.40q", i, e.Data)
		}
		i++
	}
	return nil
}

// stressWait waits for readers until nothing more can be expected of the hub, and says whether they were all done by then.
func stressWait(t *suite.T, wg *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		t.Observed("not all streams had all events after a minute")
	case <-t.Context().Done():
	}
	return false
}
