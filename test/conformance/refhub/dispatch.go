package refhub

import (
	"crypto/rand"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
)

// update is a published update or a subscription event. It is not changed once it is dispatched.
type update struct {
	topics         []string // canonical, then alternate
	private        bool
	data, id, kind string
	retry          string
	frame          []byte // as an event of an event stream
}

// typeMercure is the event type of subscription events (ACT-21).
const typeMercure = "mercure"

// newID gives an opaque, random id (PUB-23, REC-20, ACT-09).
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// generatedID is the id of an update whose publisher gave none.
func (h *Hub) generatedID() string {
	if h.fault("counter-ids") {
		h.mu.Lock()
		defer h.mu.Unlock()
		return strconv.Itoa(len(h.history) + 1)
	}
	return newID()
}

// dispatch puts an update into the one order of all updates and sends it to whoever shall have it (PUB-09, SSE-20).
func (h *Hub) dispatch(u *update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.append(u)
}

// append is dispatch for those who hold the mutex.
func (h *Hub) append(u *update) {
	u.frame = h.frame(u)
	if h.fault("repeated-ids-dropped") && u.id != "" && slices.ContainsFunc(h.history, func(o *update) bool { return o.id == u.id }) {
		return
	}
	if len(h.history) >= maxHistory {
		h.history = slices.Delete(h.history, 0, maxHistory/10)
	}
	h.history = append(h.history, u)
	topics := h.selectionOf(u.topics)
	for s := range h.streams {
		for range s.copies(u, topics) {
			s.push(u)
		}
		if h.fault("slow-reader-blocks") {
			s.stall()
		}
	}
}

// copies says how often a stream gets an update: once, when one of its matchers selects one of the topics, and, if the
// update is private, its token grants reading one of them (SUB-32, SUB-33, PRIV-01 to PRIV-13).
func (s *stream) copies(u *update, topics *selection) int {
	routed := 0
	for _, m := range s.matchers {
		if s.routes(m, topics) {
			routed++
		}
	}
	switch {
	case s.h.fault("everything-dispatched") && !u.private:
		return 1
	case s.h.fault("grants-route") && u.private && s.token.grantsAny(s.h, actionSubscribe, topics):
		return 1
	case routed == 0, u.private && !s.mayRead(u, topics),
		s.h.fault("public-needs-grant") && s.token != nil && !s.token.grantsAny(s.h, actionSubscribe, topics),
		s.h.fault("anonymous-gets-nothing") && s.token == nil:
		return 0
	case s.h.fault("one-event-per-matcher"):
		return routed
	case s.h.fault("one-event-per-topic"):
		return len(u.topics)
	}
	return 1
}

func (s *stream) routes(m matcher, topics *selection) bool {
	if s.h.fault("canonical-only-routed") {
		return s.h.matches(inMatcher, m, topics.topics[0])
	}
	return topics.matchedBy(inMatcher, m)
}

// mayRead judges a private update as a whole: a grant on any of its topics is enough (PRIV-05).
func (s *stream) mayRead(u *update, topics *selection) bool {
	h := s.h
	granted := func(topic string) bool { return s.token.grants(h, actionSubscribe, topic) }
	switch {
	case h.fault("private-is-public"),
		h.fault("anonymous-reads-private") && s.token == nil,
		h.fault("matchers-grant") && s.token != nil,
		h.fault("any-grant-reads") && s.token != nil && len(s.token.details) > 0,
		h.fault("wildcard-matcher-reads") && slices.ContainsFunc(s.matchers, func(m matcher) bool { return m.pattern == wildcard }):
		return true
	case h.fault("reading-needs-every-grant"):
		return !slices.ContainsFunc(u.topics, func(t string) bool { return !granted(t) })
	case h.fault("reading-needs-canonical-grant"):
		return granted(u.topics[0])
	case h.fault("reading-needs-routed-grant"):
		return slices.ContainsFunc(u.topics, func(t string) bool {
			return granted(t) && slices.ContainsFunc(s.matchers, func(m matcher) bool { return h.matches(inMatcher, m, t) })
		})
	}
	return s.token.grantsAny(h, actionSubscribe, topics)
}

// dataOf is where faults change data that must stay as it is (SSE-04, SSE-08 to SSE-12).
func (h *Hub) dataOf(value string) string {
	if f := h.datum().data; f.change != nil {
		return f.change(value)
	}
	return value
}

// frame writes an update as an event: a data field per line, whatever ends the lines (SSE-04 to SSE-12). Only data may
// hold line ends; the other fields have been checked.
func (h *Hub) frame(u *update) []byte {
	var b strings.Builder
	kind, id := u.kind, u.id
	if h.fault("default-type-named") && kind == "" {
		kind = "update"
	}
	if h.fault("type-sticks") && kind == "" {
		for i := len(h.history) - 1; i >= 0 && kind == ""; i-- {
			if slices.Equal(h.history[i].topics, u.topics) {
				kind = h.history[i].kind
			}
		}
	}
	if kind != "" {
		b.WriteString("event: " + kind + "\n")
	}
	switch {
	case h.fault("event-id-differs"):
		id = "x" + id
	case h.fault("hub-events-without-id") && kind == typeMercure:
		id = ""
	}
	if id != "" && !h.fault("event-without-id") {
		b.WriteString("id: " + id + "\n")
	}
	switch {
	case u.retry != "" && h.fault("retry-reformatted"):
		b.WriteString("retry: " + u.retry + ".0\n")
	case u.retry != "":
		b.WriteString("retry: " + u.retry + "\n")
	case h.fault("retry-without-value"):
		b.WriteString("retry: none\n")
	}
	for _, line := range h.lines(u.data) {
		b.WriteString(h.dataField() + line + "\n")
	}
	b.WriteString("\n")
	return []byte(b.String())
}

func (h *Hub) dataField() string {
	if h.fault("no-space-after-colon") {
		return "data:"
	}
	return "data: "
}

// lines splits on CRLF, LF and CR.
func (h *Hub) lines(data string) []string {
	switch {
	case h.fault("empty-data-without-field") && data == "":
		return nil
	case h.fault("data-not-split"):
		return []string{data}
	case h.fault("cr-not-split"):
		return strings.Split(strings.ReplaceAll(data, "\r\n", "\n"), "\n")
	case h.fault("lf-only-split"):
		return strings.Split(data, "\n")
	case h.fault("crlf-is-two-breaks"):
		return strings.Split(strings.ReplaceAll(data, "\r", "\n"), "\n")
	case h.fault("empty-lines-dropped"):
		return slices.DeleteFunc(split(data), func(line string) bool { return line == "" && data != "" })
	}
	return split(data)
}

func split(data string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(data, "\r\n", "\n"), "\r", "\n"), "\n")
}

// escapeHTML is a mistake of hubs that think that data is shown in pages.
func escapeHTML(s string) string { return html.EscapeString(s) }
