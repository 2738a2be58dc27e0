package refhub

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// earliest asks for everything, and answers that nothing precedes (REC-11, REC-16, PUB-20).
const earliest = "earliest"

// expiryMargin is how long before exp a stream ends: never after it (PRIV-09).
const expiryMargin = 200 * time.Millisecond

// subscribe answers GET on the hub URL.
func (h *Hub) subscribe(w http.ResponseWriter, r *http.Request) {
	if accept := r.Header.Get("Accept"); h.fault("accept-needed") && accept == "" || h.fault("accept-of-streams-only") && accept != "text/event-stream" {
		h.refuse(w, r, refusal{status: http.StatusNotAcceptable, detail: "Only event streams are served."})
		return
	}
	if h.fault("h2-refused") && r.ProtoMajor > 1 {
		h.refuse(w, r, refusal{status: http.StatusHTTPVersionNotSupported, detail: "Only HTTP/1.1 is supported."})
		return
	}
	token, ref := h.admit(r)
	if ref != nil {
		h.refuse(w, r, *ref)
		return
	}
	pairs, err := h.parseForm(r.URL.RawQuery, false)
	if err != nil {
		h.refuse(w, r, *malformed(err.Error()))
		return
	}
	h.open(w, r, token, pairs)
}

// admit gives the subscriber's token, nil for an anonymous one (AUTH-02 to AUTH-04).
func (h *Hub) admit(r *http.Request) (*token, *refusal) {
	token, ref := h.authenticate(r, subscriber)
	if ref == nil && token == nil && !h.opts.Anonymous && !h.fault("closed-hub-open") {
		ref = missing()
	}
	if ref == nil && token != nil && h.fault("subscribers-need-wildcard-grant") && !token.grants(h, actionSubscribe, "any topic") {
		ref = insufficient()
	}
	return token, ref
}

// query answers QUERY: the union of the query component and of a form body counts (SUB-02 to SUB-10).
func (h *Hub) query(w http.ResponseWriter, r *http.Request) {
	token, ref := h.admit(r)
	var pairs []pair
	if ref == nil {
		pairs, ref = h.union(r)
	}
	if ref != nil {
		drain(r)
		h.refuse(w, r, *ref)
		return
	}
	h.open(w, r, token, pairs)
}

func (h *Hub) union(r *http.Request) ([]pair, *refusal) {
	if h.fault("query-crashes") {
		return nil, &refusal{status: http.StatusInternalServerError, detail: "QUERY failed."}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxQueryBody+1))
	if err != nil || len(body) > maxQueryBody {
		return nil, malformed("There are too many matchers.")
	}
	if _, ok := h.mediaType(r); !ok && len(body) > 0 && !h.fault("query-of-any-type-accepted") {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, detail: "The body is not " + formType + "."}
	}
	fromBody, err := h.parseForm(string(body), true)
	if err != nil {
		return nil, malformed(err.Error())
	}
	fromQuery, err := h.parseForm(r.URL.RawQuery, false)
	if err != nil {
		return nil, malformed(err.Error())
	}
	switch {
	case h.fault("query-body-ignored"):
		return fromQuery, nil
	case h.fault("query-body-replaces-component") && len(fromBody) > 0:
		return fromBody, nil
	case h.fault("component-unjudged-beside-body"):
		fromQuery = slices.DeleteFunc(fromQuery, func(p pair) bool { _, _, ref := h.kindOf(p.name); return ref != nil })
	case h.fault("query-body-names-unjudged"):
		fromBody = slices.DeleteFunc(fromBody, func(p pair) bool { _, _, ref := h.kindOf(p.name); return ref != nil })
	case h.fault("query-body-values-unjudged"):
		fromBody = slices.DeleteFunc(fromBody, func(p pair) bool {
			kind, isMatcher, _ := h.kindOf(p.name)
			_, err := h.newMatcher(inMatcher, kind, p.value)
			return isMatcher && err != nil
		})
	}
	return append(fromQuery, fromBody...), nil
}

// kindOf gives the matcher type that a parameter name selects, and whether it names one. All other names that begin
// with match are refused (SUB-12, SUB-23, SUB-24, MATCH-08).
func (h *Hub) kindOf(name string) (kind string, isMatcher bool, ref *refusal) {
	if h.fault("names-case-insensitive") {
		name = strings.ToLower(name)
	}
	suffix, found := strings.CutPrefix(name, "match_")
	switch {
	case name == "match" && !h.fault("bare-match-is-urlpattern"):
		return exact, true, nil
	case name == "match", found && suffix == urlPatterns && !h.fault("urlpattern-unknown"):
		return urlPatterns, true, nil
	case found && suffix == exact && !h.fault("match-exact-unknown"):
		return exact, true, nil
	case found && h.fault("type-suffix-case-insensitive") && strings.EqualFold(suffix, exact):
		return exact, true, nil
	case found && h.fault("type-suffix-case-insensitive") && strings.EqualFold(suffix, urlPatterns):
		return urlPatterns, true, nil
	case found && h.fault("unknown-type-is-exact"):
		return exact, true, nil
	case found && suffix == "" && h.fault("empty-suffix-is-exact"), name == "match[]" && h.fault("brackets-accepted"):
		return exact, true, nil
	case h.datum().names.ignored != nil && h.datum().names.ignored(name):
		return "", false, nil
	case len(name) >= len("match") && strings.EqualFold(name[:len("match")], "match"):
		return "", false, malformed("Names that begin with match are reserved.")
	case h.fault("unknown-names-refused") && name != "last_event_id":
		return "", false, malformed("A parameter is not known.")
	}
	return "", false, nil
}

// matchers reads the matcher parameters. One that is not valid refuses the request (SUB-26 to SUB-31); equal ones
// count once (SUB-35).
func (h *Hub) matchers(pairs []pair) ([]matcher, *refusal) {
	var matchers []matcher
	count, fromQuery := 0, 0
	for _, p := range pairs {
		kind, isMatcher, ref := h.kindOf(p.name)
		if ref != nil {
			if h.fault("unknown-matchers-ignored") || h.fault("wildcard-of-unknown-type-accepted") && p.value == wildcard {
				continue
			}
			return nil, ref
		}
		if !isMatcher {
			continue
		}
		count++
		if !p.body {
			fromQuery++
		}
		m, err := h.newMatcher(inMatcher, kind, p.value)
		if err != nil {
			if h.fault("bad-matchers-ignored") || h.fault("bad-patterns-ignored") && kind == urlPatterns {
				continue
			}
			status := http.StatusBadRequest
			if limit, ok := errors.AsType[*refusal](err); ok {
				status = limit.status
			}
			return nil, &refusal{status: status, detail: err.Error()}
		}
		if slices.Contains(matchers, m) {
			if h.fault("equal-matchers-refused") {
				return nil, malformed("A matcher is repeated.")
			}
			continue
		}
		matchers = append(matchers, m)
	}
	return h.limited(matchers, count, fromQuery)
}

// limited applies the limits on matchers (LIM-01, LIM-03), and wants at least one (SUB-38).
func (h *Hub) limited(matchers []matcher, count, fromQuery int) ([]matcher, *refusal) {
	limit := maxMatchers
	if h.fault("matcher-limit-of-5") {
		limit = 5
	}
	switch {
	case count > limit && !h.fault("matchers-unlimited") && !h.faultIf("body-matchers-unlimited", count > fromQuery):
		if h.fault("matcher-limit-is-too-large") {
			return nil, tooLarge("There are too many matchers.")
		}
		return nil, malformed("There are too many matchers.")
	case len(matchers) == 0 && h.fault("no-matcher-is-everything"):
		return []matcher{{exact, wildcard}}, nil
	case len(matchers) == 0:
		return nil, malformed("There is no matcher.")
	case h.fault("first-matcher-only"):
		return matchers[:1], nil
	case h.fault("urlpatterns-lost-beside-exact"):
		if mixed := slices.DeleteFunc(slices.Clone(matchers), func(m matcher) bool { return m.kind == urlPatterns }); len(mixed) > 0 {
			return mixed, nil
		}
	}
	return matchers, nil
}

// cursor gives the id after which to resume, and whether one came: by field, else by the query component, else by the
// body (SUB-08 to SUB-10, REC-05, REC-06, REC-19).
func (h *Hub) cursor(r *http.Request, pairs []pair) (string, bool) {
	var inField, inQuery, inBody []string
	inField = r.Header.Values("Last-Event-ID")
	for _, p := range pairs {
		switch {
		case p.name != "last_event_id" && !h.faultIf("old-cursor-names-accepted", oldCursorName(p.name)),
			h.fault("empty-cursor-is-none") && p.value == "":
		case p.body:
			inBody = append(inBody, p.value)
		default:
			inQuery = append(inQuery, p.value)
		}
	}
	order := [][]string{inField, inQuery, inBody}
	switch {
	case h.fault("parameter-beats-field"):
		order = [][]string{inQuery, inBody, inField}
	case h.fault("body-cursor-beats-query"):
		order = [][]string{inField, inBody, inQuery}
	case h.fault("body-cursor-beats-field"):
		order = [][]string{inBody, inField, inQuery}
	case h.fault("cursor-parameter-ignored"):
		order = order[:1]
	case h.fault("cursor-in-body-ignored"):
		order = order[:2]
	case h.fault("cursor-field-ignored"):
		order = order[1:]
	}
	for _, values := range order {
		if len(values) > 0 {
			return h.cursorValue(values[0], len(inField) > 0), true
		}
	}
	return "", false
}

func oldCursorName(name string) bool {
	return slices.Contains([]string{"lastEventID", "lastEventId", "Last-Event-ID", "last-event-id"}, name)
}

// cursorValue is where faults misread a cursor (REC-24).
func (h *Hub) cursorValue(id string, field bool) string {
	switch {
	case h.fault("cursor-field-decoded") && field:
		return h.decode(id, false)
	case h.fault("cursor-ascii-only") && strings.ContainsFunc(id, func(r rune) bool { return r >= utf8.RuneSelf }):
		return ""
	case h.fault("cursor-field-is-latin1") && field:
		var runes []rune
		for i := range len(id) {
			runes = append(runes, rune(id[i]))
		}
		return string(runes)
	}
	return id
}

// open answers with an event stream: what is due from history first, then what comes.
func (h *Hub) open(w http.ResponseWriter, r *http.Request, token *token, pairs []pair) {
	matchers, ref := h.matchers(pairs)
	if ref != nil {
		h.refuse(w, r, *ref)
		return
	}
	s := &stream{
		h: h, matchers: matchers, token: token, subscriber: h.subscriberID(r, token),
		w: w, writer: http.NewResponseController(w), wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	for _, p := range pairs {
		if p.body && p.name == "subscriber" && h.fault("subscriber-from-body") {
			s.subscriber = p.value
		}
	}
	cursor, resumed := h.cursor(r, pairs)
	field, ok := h.register(s, cursor, resumed)
	if !ok {
		h.refuse(w, r, refusal{status: http.StatusServiceUnavailable, detail: "The hub is closing."})
		return
	}
	defer h.leave(s)
	header := w.Header()
	header.Set("Content-Type", h.streamType())
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	h.tellCursor(header, field, resumed, r)
	w.WriteHeader(http.StatusOK)
	s.serve(r.Context().Done(), h.endOf(token))
}

func (h *Hub) streamType() string {
	switch {
	case h.fault("stream-is-plain-text"):
		return "text/plain"
	case h.fault("stream-is-latin1"):
		return "text/event-stream; charset=iso-8859-1"
	}
	return "text/event-stream"
}

// tellCursor sets the response field when the request had a cursor (REC-14 to REC-19).
func (h *Hub) tellCursor(header http.Header, field string, resumed bool, r *http.Request) {
	name := "Mercure-Last-Event-ID"
	switch {
	case h.fault("cursor-told-in-request-field"):
		name = "Last-Event-ID"
	case h.fault("cursor-never-told"),
		h.fault("cursor-told-for-field-only") && len(r.Header.Values("Last-Event-ID")) == 0,
		h.fault("cursor-told-for-parameter-only") && len(r.Header.Values("Last-Event-ID")) > 0,
		h.fault("cursor-not-told-to-query") && r.Method == methodQuery:
		return
	case h.fault("cursor-always-told"):
		resumed = true
	}
	if resumed {
		header.Set(name, field)
	}
}

// endOf is when a stream must end: before the token does, or after the maximum lifetime.
func (h *Hub) endOf(t *token) time.Time {
	end := time.Now().Add(h.opts.Lifetime)
	if h.fault("lifetime-unlimited") {
		end = time.Now().Add(defaultLifetime)
	}
	if t == nil || h.fault("streams-outlive-token") || h.fault("cookie-streams-outlive-token") && t.fromCookie {
		return end
	}
	expires := t.expires.Add(-expiryMargin)
	if h.fault("streams-end-late") {
		expires = t.expires.Add(15 * time.Second)
	}
	if expires.Before(end) {
		return expires
	}
	return end
}
