package refhub

import "slices"

// register gives a stream its place in the order of updates: what it shall have of the past is queued, and whatever
// comes from now on will be, without gap or repeat (REC-07). It gives the value of the response field, and false when
// the hub is closing.
func (h *Hub) register(s *stream, cursor string, resumed bool) (field string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", false
	}
	h.running.Add(1)
	h.opened++
	s.number = h.opened
	if resumed {
		var start int
		start, field = h.position(s, cursor)
		s.queue = h.replay(s, start)
		field = h.distortField(field, cursor, s.queue)
	}
	if len(s.queue) > 0 {
		s.wake <- struct{}{}
		if h.fault("live-lost-after-replay") {
			s.skip = 1
		}
	}
	if h.fault("cursor-always-told") && !resumed {
		field = h.newest()
	}
	h.streams[s] = true
	h.announce(s)
	return field, true
}

// leave ends a stream.
func (h *Hub) leave(s *stream) {
	s.end()
	h.mu.Lock()
	delete(h.streams, s)
	h.withdraw(s)
	h.mu.Unlock()
	h.running.Done()
}

// position gives where in the history to begin, and the id before it: of equal ids the first counts, and an unknown one
// precedes nothing (REC-11, REC-12, REC-15 to REC-17).
func (h *Hub) position(s *stream, cursor string) (start int, field string) {
	if cursor == earliest {
		return 0, earliest
	}
	has := func(u *update) bool { return u.id == cursor }
	if f := h.datum().cursor; f.same != nil {
		has = func(u *update) bool { return u.id == cursor || f.same(cursor, u.id) }
	}
	if h.fault("cursor-of-other-topic-unknown") || h.fault("private-cursor-unknown") {
		named := has
		has = func(u *update) bool {
			known := s.copies(u, h.selectionOf(u.topics)) > 0 || h.fault("private-cursor-unknown") && !u.private
			return named(u) && known
		}
	}
	at := slices.IndexFunc(h.history, has)
	if h.fault("latest-duplicate-counts") {
		for at >= 0 {
			next := slices.IndexFunc(h.history[at+1:], has)
			if next < 0 {
				break
			}
			at += next + 1
		}
	}
	switch {
	case at >= 0 && h.fault("newest-cursor-unknown") && at == len(h.history)-1:
		return len(h.history), earliest
	case at >= 0 && h.fault("cursor-replayed"):
		return at, cursor
	case at >= 0:
		return at + 1, cursor
	case h.fault("unknown-cursor-echoed"):
		return 0, cursor
	}
	return 0, earliest
}

// replay selects what a stream shall have of the history, by the rules of live updates and with the token of now
// (REC-08 to REC-10, REC-27).
func (h *Hub) replay(s *stream, start int) []*update {
	var due []*update
	if h.fault("nothing-replayed") {
		return due
	}
	for _, u := range h.history[start:] {
		topics := h.selectionOf(u.topics)
		copies := s.copies(u, topics)
		switch {
		case h.fault("replay-unmatched") && !u.private,
			h.fault("replay-unauthorised") && s.token != nil && slices.ContainsFunc(s.matchers, func(m matcher) bool { return s.routes(m, topics) }),
			h.fault("anonymous-replays-private") && s.token == nil && slices.ContainsFunc(s.matchers, func(m matcher) bool { return s.routes(m, topics) }):
			copies = max(copies, 1)
		case h.fault("replay-per-topic"):
			copies *= len(u.topics)
		case h.fault("replay-canonical-only") && copies > 0:
			copies = s.copies(u, h.selectionOf(u.topics[:1]))
		}
		for range copies {
			due = append(due, u)
		}
	}
	h.replays++
	switch {
	case h.fault("every-50th-replay-loses-one") && h.replays%50 == 0 && len(due) > 0:
		due = due[1:]
	case h.fault("replay-newest-first"):
		slices.Reverse(due)
	case h.fault("replay-limit-of-2") && len(due) > 2:
		due = due[len(due)-2:]
	case h.fault("first-replayed-lost") && len(due) > 0:
		due = due[1:]
	case h.fault("earliest-loses-one") && start == 0 && len(due) > 1:
		due = slices.Delete(due, len(due)-2, len(due)-1)
	case h.fault("last-replayed-lost") && len(due) > 0:
		due = due[:len(due)-1]
	}
	return due
}

// newest is the id of the last update, or earliest (ACT-42).
func (h *Hub) newest() string {
	if len(h.history) == 0 {
		return earliest
	}
	return h.history[len(h.history)-1].id
}

// distortField is where faults change the response field.
func (h *Hub) distortField(field, cursor string, due []*update) string {
	switch {
	case h.fault("cursor-told-is-first-sent") && len(due) > 0:
		return due[0].id
	case h.fault("cursor-told-is-newest"):
		return h.newest()
	case h.fault("cursor-told-empty") && field == earliest:
		return ""
	case h.fault("empty-cursor-echoed") && cursor == "":
		return ""
	case h.fault("earliest-told-as-first") && cursor == earliest && len(h.history) > 0:
		return h.history[0].id
	}
	return field
}
