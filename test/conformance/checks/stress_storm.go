package checks

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

const (
	stormClients = 20
	stormEvents  = 120
	stormPause   = 200 * time.Millisecond // of a client that was told to come back later
)

// stormLast says whether an event is the last one.
func stormLast(e wire.Event) bool { return e.Data == strconv.Itoa(stormEvents-1) }

// stressStorm lets clients hang up and resume by their last id while updates are published.
func stressStorm(t *suite.T) {
	topic := t.Topic()
	start := t.Publish("topic", topic, "data", "start")
	token := t.SubscribeAll()
	clients := make([]*stormClient, stormClients)
	var wg sync.WaitGroup
	for i := range clients {
		c := &stormClient{t: t, request: suite.Bearer(t.Get(""), token), topic: topic, last: start, patience: 1 + i%7, parameter: i%2 == 1}
		clients[i] = c
		wg.Go(c.run)
	}
	defer func() {
		for _, c := range clients {
			c.stop()
		}
		wg.Wait()
	}()
	post := suite.Bearer(t.Post(""), t.PublishAll())
	ids := make([]string, stormEvents)
	for i := range ids {
		ids[i] = t.PublishWith(stressBody(post, wire.Form("topic", topic, "data", strconv.Itoa(i))))
	}
	stressWait(t, &wg)
	connections := 0
	for i, c := range clients {
		c.stop()
		got, tries, err := c.result()
		connections += tries
		switch {
		case err != nil:
			t.Fail("client %d after %d events and %d connections: %v", i+1, len(got), tries, err)
		case !slices.Equal(got, ids):
			t.Fail("client %d read %d events in %d connections, not the %d in order: %s", i+1, len(got), tries, len(ids), stormDiffers(got, ids))
		}
	}
	t.Observed("%d clients read %d events each, in %d connections", len(clients), len(ids), connections)
}

// stormDiffers says where a sequence of ids goes wrong.
func stormDiffers(got, wanted []string) string {
	for i := range min(len(got), len(wanted)) {
		if got[i] == wanted[i] {
			continue
		}
		switch at := slices.Index(wanted, got[i]); {
		case at < 0:
			return fmt.Sprintf("event %d is unknown", i+1)
		case at < i:
			return fmt.Sprintf("event %d came again in the place of %d", at+1, i+1)
		default:
			return fmt.Sprintf("event %d came in the place of %d", at+1, i+1)
		}
	}
	return "some are missing at the end"
}

// stormClient reads a few events, hangs up, and comes back with the last id, until it has read the last event.
type stormClient struct {
	t         *suite.T
	request   wire.Request
	topic     string
	last      string
	patience  int  // events after which it hangs up
	parameter bool // it gives its cursor in the query

	mu      sync.Mutex
	stopped bool
	current *wire.Response
	got     []string
	tries   int
	err     error
}

// stop ends the client, also while it waits for an event.
func (c *stormClient) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.current != nil {
		c.current.Close()
	}
}

func (c *stormClient) result() (got []string, tries int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got), c.tries, c.err
}

func (c *stormClient) run() {
	for {
		r := c.request
		if c.parameter {
			r.Target += "?" + wire.Form("match", c.topic, "last_event_id", c.last)
		} else {
			r.Target += "?" + recTo(c.topic)
			r = r.With("Last-Event-ID", c.last)
		}
		resp, err := c.t.Try(r)
		c.mu.Lock()
		switch {
		case c.stopped:
		case err != nil:
			c.err = fmt.Errorf("connect: %w", err)
		case resp.Stream == nil && resp.Status != 429 && resp.Status != 503:
			c.err = fmt.Errorf("answered %d", resp.Status)
		default:
			c.current = resp
			c.tries++
		}
		over := c.stopped || c.err != nil
		c.mu.Unlock()
		if over {
			if resp != nil {
				resp.Close()
			}
			return
		}
		if resp.Stream == nil {
			c.t.Pause(stormPause)
			continue
		}
		if !c.read(resp) {
			return
		}
	}
}

// read reads what one connection brings, and says whether another one is needed.
func (c *stormClient) read(resp *wire.Response) bool {
	defer resp.Close()
	r := wire.NewEventReader(resp.Stream)
	for n := 0; n < c.patience; {
		e, err := r.Next()
		if err == nil && !e.Dispatched {
			continue
		}
		c.mu.Lock()
		if err == nil {
			c.last = e.ID
			c.got = append(c.got, e.ID)
			n++
		}
		// Whoever has read the last event knows what it lacks. One that never ends is ended where nothing more can make it right.
		over := c.stopped || err == nil && stormLast(e) || len(c.got) > 2*stormEvents
		c.mu.Unlock()
		if over {
			return false
		}
		if err != nil {
			return true // the hub may end a stream when it likes
		}
	}
	return true
}
