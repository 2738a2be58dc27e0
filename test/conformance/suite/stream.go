package suite

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// How many events may wait for a check to look at them, and how many bytes of data.
const (
	maxQueued = 20_000
	maxWaits  = 64 << 20
)

// errFlood means that more waits than is kept.
var errFlood = errors.New("suite: more events wait than are kept")

// Stream is an open subscription. Its methods belong to the check's goroutine.
type Stream struct {
	Response *wire.Response

	t     *T
	fence string // a topic that the stream selects and nobody else uses; empty: none

	mu      sync.Mutex
	queue   []wire.Event
	size    int           // bytes of data in the queue
	changed chan struct{} // closed and replaced whenever something changed
	ended   bool
	err     error // why it ended; nil after a clean end
	at      time.Time
}

// Listen opens a subscription with this query, as it is, and tok(subscribe *), and adds a matcher of its own for the
// fence. The check fails when it is refused.
func (t *T) Listen(query string) *Stream { return t.ListenWith(Bearer(t.Get(query), t.SubscribeAll())) }

// ListenTo is Listen for one topic.
func (t *T) ListenTo(topic string) *Stream { return t.Listen("match=" + wire.Escape(topic)) }

// ListenWith opens a subscription with this request, and adds a matcher of its own for the fence to the query. The
// check fails when it is refused.
func (t *T) ListenWith(r wire.Request) *Stream {
	fence := "https://example.com/" + t.Unique("fence")
	join := "?"
	if strings.Contains(r.Target, "?") {
		join = "&"
	}
	r.Target += join + "match=" + wire.Escape(fence)
	s := t.Open(r)
	s.fence = fence
	return s
}

// Open opens a subscription with this request as it is; the check fails when it is refused. Without a fence, only Next
// and Ended can be asked.
func (t *T) Open(r wire.Request) *Stream {
	resp, err := t.Try(r)
	if err != nil {
		t.Fail("%s: no answer: %v", describe(r), err)
	}
	if resp.Stream == nil {
		t.Fail("%s: answered %s with %q, wanted an event stream", describe(r), outcome(resp), resp.MediaType())
	}
	return t.Attach(resp)
}

// Attach reads the event stream of a response.
func (t *T) Attach(resp *wire.Response) *Stream {
	s := &Stream{Response: resp, t: t, changed: make(chan struct{})}
	t.mu.Lock()
	t.opened = append(t.opened, resp)
	t.mu.Unlock()
	t.wait.Go(func() { s.read(wire.NewEventReader(resp.Stream)) })
	return s
}

func (s *Stream) read(r *wire.EventReader) {
	defer s.Response.Close()
	for {
		e, err := r.Next()
		s.mu.Lock()
		if s.size += len(e.Data); err == nil && (len(s.queue) >= maxQueued || s.size > maxWaits) {
			err = errFlood
		}
		if err != nil {
			s.ended, s.at = true, time.Now()
			if !errors.Is(err, io.EOF) {
				s.err = err
			}
		} else {
			s.queue = append(s.queue, e)
		}
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Close hangs up.
func (s *Stream) Close() { s.Response.Close() }

// take gives the first waiting block. Without one it gives the channel that tells of a change, and whether none will come.
func (s *Stream) take() (e wire.Event, ok, ended bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 {
		e, s.queue = s.queue[0], s.queue[1:]
		s.size -= len(e.Data)
		return e, true, false, nil
	}
	return e, false, s.ended, s.changed
}

// Block gives the next block of the stream, be it an event, a comment or a retry alone. It is an error when the stream
// ends, or when nothing comes for d.
func (s *Stream) Block(d time.Duration) (wire.Event, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		e, ok, ended, changed := s.take()
		if ok {
			return e, nil
		}
		if ended {
			return e, fmt.Errorf("the stream ended: %w", cause(s.err))
		}
		select {
		case <-changed:
		case <-timer.C:
			return e, fmt.Errorf("nothing arrived for %s", d)
		case <-s.t.ctx.Done():
			return e, errors.New("the time of the check is over")
		}
	}
}

func cause(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// Next gives the next event, with an id or with data; the check fails when none comes in time.
func (s *Stream) Next() wire.Event {
	end := time.Now().Add(s.t.target.Patience)
	for {
		e, err := s.Block(time.Until(end))
		if err != nil {
			s.t.Fail("an event was expected: %v", err)
		}
		if e.Dispatched || e.HasID {
			return e
		}
	}
}

// Events publishes an update on the stream's fence and gives the events that arrived before it. The check fails when
// the fence does not arrive.
func (s *Stream) Events() []wire.Event {
	if s.fence == "" {
		s.t.Fail("the suite asked a stream without a fence")
	}
	// The data tells the fence from all else, whatever the hub makes of ids.
	data := s.t.Unique("fence")
	s.t.Publish("topic", s.fence, "data", data)
	var events []wire.Event
	for {
		e := s.Next()
		if e.Data == data {
			return events
		}
		events = append(events, e)
	}
}

// Want says that exactly these events arrived since the last look, in this order, and none besides.
func (s *Stream) Want(ids ...string) []wire.Event {
	events := s.Events()
	s.compare(events, ids)
	return events
}

// WantOwn is Want for a stream that selects what other checks publish as well: events whose data does not contain mark
// do not count.
func (s *Stream) WantOwn(mark string, ids ...string) []wire.Event {
	events := slices.DeleteFunc(s.Events(), func(e wire.Event) bool { return !strings.Contains(e.Data, mark) })
	s.compare(events, ids)
	return events
}

func (s *Stream) compare(events []wire.Event, ids []string) {
	got := make([]string, len(events))
	for i, e := range events {
		got[i] = e.ID
	}
	if !slices.Equal(got, ids) {
		s.t.Fail("the stream received %s, wanted %s", listed(got), listed(ids))
	}
	s.t.Observed("received %d events", len(got))
}

func listed(ids []string) string {
	const most = 12
	if len(ids) == 0 {
		return "no event"
	}
	more := ""
	if len(ids) > most {
		more = fmt.Sprintf(" and %d more", len(ids)-most)
		ids = ids[:most]
	}
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = fmt.Sprintf("%+q", id)
	}
	return fmt.Sprintf("%d events (%s)%s", len(ids), strings.Join(quoted, ", "), more)
}

// WantEnd says that the hub ends the stream before the deadline, whatever arrives until then, and gives when it did.
func (s *Stream) WantEnd(deadline time.Time) time.Time {
	for {
		if _, err := s.Block(time.Until(deadline)); err != nil {
			s.mu.Lock()
			ended, at, cause := s.ended, s.at, s.err
			s.mu.Unlock()
			if errors.Is(cause, errFlood) || errors.Is(cause, wire.ErrStream) {
				s.t.Fail("the suite gave the stream up: %v", cause)
			}
			if !ended {
				s.t.Fail("the stream is still open: %v", err)
			}
			return at
		}
	}
}
