package refhub

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// subscription is the document of an active subscription (ACT-14 to ACT-18).
type subscription struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	MatchType  string          `json:"match_type,omitempty"`
	Match      string          `json:"match"`
	Subscriber string          `json:"subscriber"`
	Active     any             `json:"active"`
	Payload    json.RawMessage `json:"payload,omitempty"`

	matcher matcher
}

// tracks says whether the active-subscriptions feature is on (ACT-47).
func (h *Hub) tracks() bool { return h.opts.Subscriptions || h.fault("subscriptions-always-on") }

// subscriberID is random for each connection, and nothing that a client says changes it (ACT-08 to ACT-13).
func (h *Hub) subscriberID(r *http.Request, t *token) string {
	id := newID()
	taken := func(name string) string {
		switch {
		case h.fault("subscriber-from-query"):
			return r.URL.Query().Get(name)
		case h.fault("subscriber-from-field"):
			return r.Header.Get(name)
		case h.fault("subscriber-from-x-field"):
			return r.Header.Get("X-" + name)
		case h.fault("subscriber-from-mercure-field"):
			return r.Header.Get("Mercure-" + name)
		case h.fault("subscriber-from-x-mercure-field"):
			return r.Header.Get("X-Mercure-" + name)
		}
		return ""
	}
	if id := r.Header.Get("X-Request-Id"); id != "" && h.fault("subscriber-from-request-id") {
		return id
	}
	if id := r.Header.Get("X-Correlation-Id"); id != "" && h.fault("subscriber-from-correlation-id") {
		return id
	}
	for _, name := range []string{"subscriber", "subscriber_id", "Subscriber-Id", "id"} {
		if chosen := taken(name); chosen != "" {
			return chosen
		}
	}
	if c, err := r.Cookie("subscriber"); err == nil && h.fault("subscriber-from-cookie") {
		return c.Value
	}
	switch {
	case h.fault("anonymous-subscribers-share-id") && t == nil:
		return "urn:anonymous"
	case h.fault("subscriber-counts"):
		h.mu.Lock()
		defer h.mu.Unlock()
		return "urn:uuid:00000000-0000-4000-8000-" + strconv.Itoa(1e11+h.opened)
	case h.fault("subscriber-from-token") && t != nil:
		return "urn:sub:" + t.subject
	case h.fault("subscriber-is-no-iri"):
		return strings.ReplaceAll(strings.TrimPrefix(id, "urn:uuid:"), "-", "")
	}
	return id
}

// announce publishes that the subscriptions of a stream have begun (ACT-02). The caller holds the mutex.
func (h *Hub) announce(s *stream) {
	if !h.tracks() {
		return
	}
	for _, m := range s.matchers {
		if h.fault("one-subscription-per-connection") && len(s.active) > 0 {
			break
		}
		subscriber := s.subscriber
		if h.fault("subscriber-per-matcher") {
			subscriber = newID()
		}
		doc := subscription{
			ID: h.subscriptionID(m, subscriber), Type: "subscription", MatchType: h.kindName(m), Match: m.pattern,
			Subscriber: subscriber, Active: true, Payload: h.payload(s, m), matcher: m,
		}
		s.active = append(s.active, h.distortDocument(doc))
		if !h.fault("start-event-missing") && !h.faultIf("one-event-per-connection", len(s.active) > 1) {
			h.append(h.eventOf(s.active[len(s.active)-1]))
		}
	}
}

// withdraw publishes that they have ended (ACT-03, ACT-49). The caller holds the mutex.
func (h *Hub) withdraw(s *stream) {
	for i, doc := range s.active {
		if h.fault("end-event-missing") || h.fault("one-event-per-connection") && i > 0 ||
			h.fault("end-event-missing-after-expiry") && s.token != nil && expiring(s.token) {
			continue
		}
		doc.Active = false
		if h.fault("end-event-active") {
			doc.Active = true
		}
		if h.fault("end-event-of-other-id") {
			doc.Subscriber = newID()
			doc.ID = h.subscriptionID(doc.matcher, doc.Subscriber)
		}
		if h.fault("end-event-without-payload") {
			doc.Payload = nil
		}
		h.append(h.eventOf(doc))
	}
	if h.fault("ended-subscriptions-stay-active") {
		h.ghosts = append(h.ghosts, s.active...)
	}
	s.active = nil
}

// eventOf is the update that tells of a subscription: private, of the reserved type, with the document as its data
// (ACT-04, ACT-15, ACT-20 to ACT-22).
func (h *Hub) eventOf(doc subscription) *update {
	u := &update{topics: []string{doc.ID}, private: true, kind: typeMercure, id: newID()}
	if h.fault("counter-ids") {
		u.id = strconv.Itoa(len(h.history) + 1)
	}
	if h.fault("document-id-absolute") {
		u.topics[0] = strings.TrimPrefix(doc.ID, h.origin)
	}
	if h.fault("payload-missing-in-events") {
		doc.Payload = nil
	}
	u.data = string(encode(doc))
	switch {
	case h.fault("subscription-topic-absolute"):
		u.topics[0] = h.origin + u.topics[0]
	case h.fault("subscription-events-public"):
		u.private = false
	case h.fault("subscription-events-of-default-type"):
		u.kind = ""
	case h.fault("subscription-event-not-json"):
		u.data = doc.ID
	}
	return u
}

// subscriptionID is the path of a subscription, and the topic of its events (ACT-04 to ACT-07).
func (h *Hub) subscriptionID(m matcher, subscriber string) string {
	encode := expand
	switch {
	case h.fault("matcher-path-escaped"):
		encode = url.PathEscape
	case h.fault("matcher-query-escaped"):
		encode = url.QueryEscape
	case h.fault("matcher-not-encoded"):
		encode = func(s string) string { return s }
	case h.fault("matcher-encoded-twice"):
		encode = func(s string) string { return expand(expand(s)) }
	case h.fault("matcher-percent-kept"):
		encode = func(s string) string { return strings.ReplaceAll(expand(s), "%25", "%") }
	case h.fault("matcher-lower-case-hex"):
		encode = strings.ToLower
	}
	id := h.path + "/subscriptions/" + h.kindName(m) + "/" + encode(m.pattern) + "/" + expand(subscriber)
	if h.fault("subscription-topic-without-type") {
		id = h.path + "/subscriptions/" + encode(m.pattern) + "/" + expand(subscriber)
	}
	return id
}

func (h *Hub) kindName(m matcher) string {
	switch {
	case h.fault("exact-called-match") && m.kind == exact:
		return "match"
	case h.fault("urlpattern-called-by-its-title") && m.kind == urlPatterns:
		return "URLPattern"
	}
	return m.kind
}

func (h *Hub) payload(s *stream, m matcher) json.RawMessage {
	if h.fault("payload-shared-by-connection") {
		m = s.matchers[0]
	}
	payload := s.token.payloadFor(h, m)
	if h.fault("payload-remembered") {
		if known, ok := h.payloads[m.pattern]; ok {
			return known
		}
		h.payloads[m.pattern] = payload
	}
	if payload == nil && h.fault("payload-null-when-absent") {
		return json.RawMessage("null")
	}
	return payload
}

// distortDocument is where faults change a document.
func (h *Hub) distortDocument(doc subscription) subscription {
	switch {
	case h.fault("start-event-inactive"):
		doc.Active = false
	case h.fault("document-type-differs"):
		doc.Type = "Subscription"
	case h.fault("document-without-match-type"):
		doc.MatchType = ""
	case h.fault("document-match-encoded"):
		doc.Match = expand(doc.Match)
	case h.fault("document-active-is-text"):
		doc.Active = "true"
	case h.fault("document-id-absolute"):
		doc.ID = h.origin + doc.ID
	case h.fault("document-subscriber-encoded"):
		doc.Subscriber = expand(doc.Subscriber)
	}
	return doc
}

// expiring says whether a token has just run out, or is about to.
func expiring(t *token) bool { return time.Until(t.expires) < time.Second }

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// serveSubscriptions is the subscription API (ACT-24 to ACT-48).
func (h *Hub) serveSubscriptions(w http.ResponseWriter, r *http.Request, path string) {
	switch {
	case !h.tracks() || h.fault("api-missing"):
		h.refuse(w, r, refusal{status: http.StatusNotFound, detail: "Active subscriptions are not tracked."})
		return
	case r.Method == http.MethodOptions:
		h.preflight(w, r)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET, OPTIONS")
		h.refuse(w, r, refusal{status: http.StatusMethodNotAllowed, detail: "Only GET is supported."})
		return
	}
	if ref := h.mayList(r, path); ref != nil {
		h.refuse(w, r, *ref)
		return
	}
	h.mu.Lock()
	all, newest := h.allActive(), h.newest()
	h.mu.Unlock()
	segments := strings.Split(strings.TrimPrefix(path, h.path+"/subscriptions"), "/")
	h.linkCursor(w, newest, len(segments))
	body, ref := h.resource(path, segments, all)
	if ref != nil {
		h.refuse(w, r, *ref)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if h.fault("api-is-json-ld") {
		w.Header().Set("Content-Type", "application/ld+json")
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	if h.fault("etag-fixed") {
		w.Header().Set("ETag", `"1"`)
	}
	if h.fault("api-cached") {
		w.Header().Set("Cache-Control", "public, max-age=3600")
	}
	_, _ = w.Write(body)
}

// mayList wants a subscribe grant on the path of the request, without its query (ACT-26 to ACT-31).
func (h *Hub) mayList(r *http.Request, path string) *refusal {
	token, ref := h.authenticate(r, subscriber)
	if ref != nil {
		if h.fault("api-bad-token-is-forbidden") {
			return insufficient()
		}
		return ref
	}
	topic := path
	switch {
	case token == nil && h.fault("api-open"):
		return nil
	case token == nil && h.fault("api-without-token-is-forbidden"):
		return insufficient()
	case token == nil:
		return missing()
	case h.fault("api-topic-with-query") && r.URL.RawQuery != "":
		topic += "?" + r.URL.RawQuery
	case h.fault("api-topic-absolute"):
		topic = h.origin + path
	case h.fault("api-topic-decoded"):
		topic = r.URL.Path
	case h.fault("api-collection-grant-covers-all"):
		topic = h.path + "/subscriptions"
	}
	granted := token.grants(h, actionSubscribe, topic)
	switch {
	case h.fault("api-needs-no-grant"),
		h.fault("api-takes-publish-grant") && token.grants(h, actionPublish, topic),
		h.fault("api-octets-in-any-case") && token.grants(h, actionSubscribe, eachOctet(path, strings.ToLower)),
		h.fault("api-takes-absolute-grant") && token.grants(h, actionSubscribe, h.origin+path):
		return nil
	case h.fault("api-exact-grants-only") && !slices.ContainsFunc(token.details, func(d detail) bool {
		return slices.Contains(d.topics, matcher{exact, topic}) || slices.Contains(d.topics, matcher{exact, wildcard})
	}):
		return insufficient()
	case !granted && h.fault("api-without-grant-is-not-found"):
		return &refusal{status: http.StatusNotFound, detail: "Nothing here."}
	case !granted:
		return insufficient()
	}
	return nil
}

// allActive lists the active subscriptions, the oldest first. The caller holds the mutex.
func (h *Hub) allActive() []subscription {
	all := slices.Clone(h.ghosts)
	if h.fault("collection-always-empty") {
		return all
	}
	streams := make([]*stream, 0, len(h.streams))
	for s := range h.streams {
		streams = append(streams, s)
	}
	slices.SortFunc(streams, func(a, b *stream) int { return a.number - b.number })
	for _, s := range streams {
		all = append(all, s.active...)
	}
	if h.fault("payload-missing-in-api") {
		for i := range all {
			all[i].Payload = nil
		}
	}
	return all
}

// resource is one of the three shapes: everything, everything for a matcher, or one subscription.
func (h *Hub) resource(path string, segments []string, all []subscription) ([]byte, *refusal) {
	gone := &refusal{status: http.StatusNotFound, detail: "There is no such subscription."}
	if h.fault("unused-collection-crashes") && (len(segments) != 1 && !slices.ContainsFunc(all, func(s subscription) bool { return strings.HasPrefix(strings.TrimPrefix(s.ID, h.origin)+"/", path+"/") })) {
		gone.status = http.StatusInternalServerError
		return nil, gone
	}
	switch len(segments) {
	case 1:
		return h.collection(path, all), nil
	case 3:
		if h.fault("matcher-collection-missing") {
			return nil, gone
		}
		if segments[1] != exact && segments[1] != urlPatterns {
			if h.fault("unknown-collection-crashes") {
				return nil, &refusal{status: http.StatusInternalServerError, detail: "Unknown matcher type."}
			}
			return nil, gone
		}
		return h.collection(path, h.filtered(segments, all)), nil
	case 4:
		at := slices.IndexFunc(all, func(s subscription) bool { return strings.TrimPrefix(s.ID, h.origin) == path })
		switch {
		case at < 0 && h.fault("unknown-subscription-is-empty"):
			return []byte("{}"), nil
		case at < 0 && h.fault("unknown-subscription-is-gone"):
			gone.status = http.StatusGone
			return nil, gone
		case at < 0, h.fault("single-subscription-missing"):
			return nil, gone
		case h.fault("single-subscription-wrapped"):
			return h.collection(path, all[at:at+1]), nil
		case h.fault("single-subscription-without-active"):
			all[at].Active = nil
		}
		return encode(all[at]), nil
	}
	return nil, gone
}

func (h *Hub) filtered(segments []string, all []subscription) []subscription {
	if h.fault("matcher-collection-unfiltered") {
		return all
	}
	pattern, err := url.PathUnescape(segments[2])
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(s subscription) bool {
		return s.matcher.pattern != pattern || s.matcher.kind != segments[1] && !h.fault("matcher-collection-of-any-type")
	})
}

// collection is the document of a collection (ACT-37 to ACT-40).
func (h *Hub) collection(path string, subscriptions []subscription) []byte {
	if subscriptions == nil {
		subscriptions = []subscription{}
	}
	doc := map[string]any{"id": path, "type": "subscriptions", "subscriptions": subscriptions}
	switch {
	case h.fault("collection-id-fixed"):
		doc["id"] = h.path + "/subscriptions"
	case h.fault("collection-type-differs"):
		doc["type"] = "collection"
	case h.fault("empty-collection-is-null") && len(subscriptions) == 0:
		doc["subscriptions"] = nil
	case h.fault("collection-of-ids"):
		ids := []string{}
		for _, s := range subscriptions {
			ids = append(ids, s.ID)
		}
		doc["subscriptions"] = ids
	}
	return encode(doc)
}

// linkCursor tells the id of the last update, so that a subscription can begin where the document ends (ACT-41 to
// ACT-44).
func (h *Hub) linkCursor(w http.ResponseWriter, newest string, shape int) {
	quote, target := strings.NewReplacer(`\`, `\\`, `"`, `\"`), h.url
	switch {
	case h.fault("link-missing"), h.fault("link-on-collection-only") && shape > 1, h.fault("link-missing-on-single") && shape == 4:
		return
	case h.fault("link-cursor-fixed"):
		newest = earliest
	case h.fault("link-cursor-unescaped"):
		quote = strings.NewReplacer()
	case h.fault("link-cursor-ascii-only"):
		newest = strings.Map(func(r rune) rune {
			if r > 0x7E {
				return '?'
			}
			return r
		}, newest)
	case h.fault("link-target-is-origin"):
		target = h.origin
	case h.fault("link-cursor-of-first-event"):
		newest = newID()
	case h.fault("link-without-cursor"):
		w.Header().Set("Link", "<"+h.url+`>; rel="mercure"; type="mercure"; content-type="application/json"`)
		return
	}
	link := "<" + target + `>; rel="mercure"; last-event-id="` + quote.Replace(newest) + `"`
	if !h.fault("link-without-type") {
		link += `; type="mercure"`
	}
	if !h.fault("link-without-content-type") {
		link += `; content-type="application/json"`
	}
	w.Header().Set("Link", link)
}
