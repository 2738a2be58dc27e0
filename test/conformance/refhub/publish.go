package refhub

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

const formType = "application/x-www-form-urlencoded"

// publish answers POST on the hub URL. The order of refusals is: token, forgery, request, limits, grants.
func (h *Hub) publish(w http.ResponseWriter, r *http.Request) {
	u, token, ref := h.publication(r)
	if ref == nil {
		ref = h.mayPublish(token, u)
	}
	if ref != nil {
		h.refuse(w, r, *ref)
		if u != nil && (ref.code == insufficientScope && h.fault("dispatched-then-forbidden") || ref.code == "" && h.fault("dispatched-then-refused")) {
			h.dispatch(u)
		}
		return
	}
	if !h.fault("update-not-dispatched") && !h.dropped(u) {
		h.dispatch(u)
	}
	h.acknowledge(w, u)
	h.published.Add(1) // before the answer leaves, which happens when we return
}

// dropped is where faults lose an update that they have accepted.
func (h *Hub) dropped(u *update) bool {
	switch {
	case h.fault("updates-without-data-dropped"):
		return u.data == ""
	case h.fault("typed-updates-dropped"):
		return u.kind != ""
	case h.fault("private-updates-dropped"):
		return u.private
	case h.fault("equal-updates-dropped"):
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, o := range h.history {
			if o.data == u.data && o.kind == u.kind && slices.Equal(o.topics, u.topics) {
				return true
			}
		}
	}
	return false
}

// acknowledge tells the publisher the id (PUB-30 to PUB-32).
func (h *Hub) acknowledge(w http.ResponseWriter, u *update) {
	status, body, kind := http.StatusOK, u.id, "text/plain; charset=utf-8"
	switch {
	case h.fault("publish-is-created"):
		status = http.StatusCreated
	case h.fault("publish-is-accepted"):
		status = http.StatusAccepted
	case h.fault("publish-without-content"):
		w.WriteHeader(http.StatusNoContent)
		return
	case h.fault("id-with-newline"):
		body += "\n"
	case h.fault("id-in-json"):
		body = `{"id":"` + body + `"}`
	case h.fault("returned-id-differs"):
		body = newID()
	case h.fault("id-as-json-type"):
		kind = "application/json"
	case h.fault("id-without-charset"):
		kind = "text/plain"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// publication reads and judges a publish request, short of what its token grants.
func (h *Hub) publication(r *http.Request) (*update, *token, *refusal) {
	token, ref := h.authenticate(r, publisher)
	if ref != nil {
		drain(r)
		return nil, nil, ref
	}
	if token == nil && !h.fault("anonymous-publishes") && !h.fault("token-in-body-accepted") {
		drain(r)
		return nil, nil, missing()
	}
	if token != nil && token.fromCookie || h.fault("header-needs-origin") {
		if ref = h.forged(r); ref != nil {
			drain(r)
			return nil, nil, ref
		}
	}
	pairs, ref := h.publishFields(r)
	if ref != nil {
		drain(r)
		return nil, nil, ref
	}
	if h.fault("token-in-body-accepted") && token == nil {
		for _, p := range pairs {
			if p.name == "access_token" {
				token, _ = h.verify(p.value, publisher)
			}
		}
		if token == nil {
			return nil, nil, missing()
		}
	}
	u, ref := h.newUpdate(pairs, token)
	return u, token, ref
}

// drain reads the rest of a body before a refusal: a client that is still writing would otherwise see its connection
// reset instead of the answer.
func drain(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, maxDrained) }

const maxDrained = 64 << 20

// publishFields reads the fields of a body (PUB-03, PUB-04, PUB-06).
func (h *Hub) publishFields(r *http.Request) ([]pair, *refusal) {
	kind, ok := h.mediaType(r)
	if h.fault("media-type-needed-crashes") && kind == "" {
		return nil, &refusal{status: http.StatusInternalServerError, detail: "The body has no media type."}
	}
	if !ok && !h.fault("any-media-type-accepted") && !h.fault("json-accepted") && !h.fault("multipart-accepted") {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, detail: "The body is not " + formType + "."}
	}
	limit := int64(maxBody)
	if h.fault("body-unlimited") || h.fault("chunked-body-unlimited") && r.ContentLength < 0 {
		limit = maxDrained
	}
	if h.fault("data-limit-of-16-kib") {
		limit = 16 << 10
	}
	if h.fault("chunked-body-unread") && r.ContentLength < 0 {
		limit = -1
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, malformed("The body cannot be read.")
	}
	if int64(len(body)) > max(limit, 0) {
		return nil, tooLarge("The body is too large.")
	}
	text := string(body)
	switch {
	case h.fault("json-accepted") && strings.HasSuffix(kind, "json"):
		return jsonFields(body)
	case h.fault("multipart-accepted") && strings.HasPrefix(kind, "multipart/"):
		return multipartFields(r, text)
	case !ok && !h.fault("any-media-type-accepted"):
		return nil, &refusal{status: http.StatusUnsupportedMediaType, detail: "The body is not " + formType + "."}
	case h.fault("query-component-published"):
		text += "&" + r.URL.RawQuery
	}
	pairs, err := h.parseForm(text, true)
	if err != nil || !h.isUTF8(pairs) {
		return nil, malformed("Names and values of the body must be UTF-8.")
	}
	return pairs, nil
}

// mediaType gives the media type of a body, and whether it is the form type.
func (h *Hub) mediaType(r *http.Request) (string, bool) {
	field := r.Header.Get("Content-Type")
	switch {
	case h.fault("media-type-case-sensitive"):
		kind, _, _ := strings.Cut(field, ";")
		return kind, kind == formType
	case h.fault("media-type-is-prefix"):
		return field, strings.HasPrefix(strings.ToLower(field), formType)
	case h.fault("media-type-anywhere"):
		return field, strings.Contains(strings.ToLower(field), formType)
	case h.fault("media-type-parameters-refused"):
		return field, strings.EqualFold(field, formType)
	}
	kind, _, err := mime.ParseMediaType(field)
	return kind, err == nil && kind == formType
}

func jsonFields(body []byte) ([]pair, *refusal) {
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return nil, malformed("The body is not JSON.")
	}
	var pairs []pair
	for name, value := range members {
		if s, ok := value.(string); ok {
			pairs = append(pairs, pair{name: name, value: s, body: true})
		}
	}
	return pairs, nil
}

func multipartFields(r *http.Request, body string) ([]pair, *refusal) {
	_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form, err := multipart.NewReader(strings.NewReader(body), params["boundary"]).ReadForm(maxBody)
	if err != nil {
		return nil, malformed("The body is not multipart.")
	}
	var pairs []pair
	for name, values := range form.Value {
		for _, v := range values {
			pairs = append(pairs, pair{name: name, value: v, body: true})
		}
	}
	return pairs, nil
}

// newUpdate makes an update of the fields; unknown ones are ignored (PUB-29), of a repeated one the first counts.
func (h *Hub) newUpdate(pairs []pair, token *token) (*update, *refusal) {
	u, seen := &update{}, map[string]bool{}
	var ref *refusal
	for _, p := range pairs {
		if h.fault("field-names-case-insensitive") {
			p.name = strings.ToLower(p.name)
		}
		first := !seen[p.name]
		seen[p.name] = true
		switch {
		case p.name == "topic", p.name == "topic[]" && h.fault("topic-brackets-accepted"), p.name == "topics" && h.fault("topics-field-accepted"):
			u.topics = append(u.topics, p.value)
		case h.fault("repeated-field-crashes") && !first:
			return nil, &refusal{status: http.StatusInternalServerError, detail: "A field is repeated."}
		case p.name == "private":
			u.private = u.private || h.isPrivate(p.value)
		case !first:
		case p.name == "data":
			u.data = h.dataOf(p.value)
		case p.name == "id":
			u.id = p.value
		case p.name == "type":
			u.kind = p.value
		case p.name == "retry":
			u.retry = p.value
		case h.fault("unknown-fields-refused"):
			ref = malformed("A field is not known.")
		}
	}
	if r := h.checkUpdate(u, seen, token); r != nil {
		ref = r
	}
	if u.id == "" && !h.faultIf("empty-id-kept", seen["id"]) {
		u.id = h.generatedID()
	}
	h.arrange(u)
	return u, ref
}

// arrange is where faults change an update that is otherwise right.
func (h *Hub) arrange(u *update) {
	switch {
	case h.fault("alternates-dropped") && len(u.topics) > 1:
		u.topics = u.topics[:1]
	case h.fault("last-topic-only") && len(u.topics) > 1:
		u.topics = u.topics[len(u.topics)-1:]
	case h.fault("type-dropped"):
		u.kind = ""
	case h.fault("type-trimmed"):
		u.kind = strings.TrimSpace(u.kind)
	case h.fault("retry-dropped"):
		u.retry = ""
	case h.fault("retry-of-31-bits") && len(u.retry) > 9:
		u.retry = "2147483647"
	case h.fault("retry-without-leading-zeros"):
		u.retry = strings.TrimLeft(u.retry, "0")
	case h.fault("type-lower-cased"):
		u.kind = strings.ToLower(u.kind)
	case h.fault("message-type-dropped") && u.kind == "message":
		u.kind = ""
	case h.fault("id-trimmed"):
		u.id = strings.TrimSpace(u.id)
	case h.fault("topics-trimmed"):
		for i := range u.topics {
			u.topics[i] = strings.TrimSpace(u.topics[i])
		}
	}
}

// isPrivate: presence alone counts (PUB-15).
func (h *Hub) isPrivate(value string) bool {
	switch {
	case h.fault("private-ignored"):
		return false
	case h.fault("private-value-read"):
		return value != "0" && value != "false" && value != "off"
	case h.fault("private-zero-is-public"):
		return value != "0"
	case h.fault("private-false-is-public"):
		return value != "false"
	case h.fault("private-off-is-public"):
		return value != "off"
	case h.fault("private-no-is-public"):
		return value != "no"
	case h.fault("private-null-is-public"):
		return value != "null"
	case h.fault("private-blank-is-public"):
		return strings.TrimSpace(value) != "" || value == ""
	case h.fault("private-needs-value"):
		return value != ""
	case h.fault("private-on-only"):
		return value == "on"
	}
	return true
}

// checkUpdate applies the constraints on fields, then the limits.
func (h *Hub) checkUpdate(u *update, seen map[string]bool, token *token) *refusal {
	if len(u.topics) == 0 && !h.fault("topic-optional") {
		return malformed("There is no topic.")
	}
	if ref := h.checkTopics(u.topics, token); ref != nil {
		return ref
	}
	if ref := h.checkID(u.id, seen["id"]); ref != nil {
		return ref
	}
	if err := h.checkText(inType, u.kind); err != nil {
		return malformed(err.Error())
	}
	if h.reservedType(u.kind) {
		return malformed("This type is reserved.")
	}
	if u.retry != "" && !h.validRetry(u.retry) {
		if h.fault("long-retry-crashes") && len(u.retry) > 100 {
			return &refusal{status: http.StatusInternalServerError, detail: "The retry is too long."}
		}
		return malformed("The retry is not made of digits.")
	}
	if h.fault("short-fields-unlimited") {
		return nil
	}
	if len(u.id) > maxShortField || len(u.kind) > maxShortField || len(u.retry) > maxShortField {
		return tooLarge("A field is too long.")
	}
	if h.fault("encrypted-data-refused") && strings.Count(u.data, ".") == 4 {
		return malformed("The data cannot be read.")
	}
	return nil
}

// checkTopics applies the constraints on topics to each (TOPIC, NS, PUB-10, PUB-11).
func (h *Hub) checkTopics(topics []string, token *token) *refusal {
	limit := maxTopics
	if h.fault("topic-count-unlimited") {
		limit = maxBody
	}
	if h.fault("topic-limit-of-5") {
		limit = 5
	}
	if len(topics) > limit {
		return tooLarge("There are too many topics.")
	}
	for i, topic := range topics {
		alternate := i > 0
		if err := h.checkText(inTopic, topic); err != nil && !h.faultIf("alternates-unchecked", alternate) {
			return malformed(err.Error())
		}
		if len(topic) > maxTopic && !h.fault("topic-length-unlimited") {
			return tooLarge("A topic is too long.")
		}
		if h.fault("granted-topics-unreserved") && token.grants(h, actionPublish, topic) {
			continue
		}
		if topic == wildcard && !h.fault("wildcard-topic-accepted") && !h.faultIf("wildcard-alternate-accepted", alternate) {
			return malformed("This topic is the wildcard matcher.")
		}
		if h.reserved(topic) && !h.faultIf("namespace-canonical-only", alternate) {
			return malformed("This topic is reserved to the hub.")
		}
		if h.fault("only-urls-published") && !strings.Contains(topic, "://") {
			return malformed("This topic is not an IRI.")
		}
	}
	return nil
}

// checkID applies the constraints on ids (PUB-19 to PUB-22).
func (h *Hub) checkID(id string, present bool) *refusal {
	err := h.checkText(inID, id)
	switch {
	case err != nil:
		return malformed(err.Error())
	case strings.HasPrefix(id, "#") && !h.fault("hash-id-accepted") && !h.faultIf("lone-hash-id-accepted", id == "#"),
		id == earliest && !h.fault("earliest-id-accepted"),
		h.fault("earliest-id-case-insensitive") && strings.EqualFold(id, earliest),
		h.fault("earliest-prefix-refused") && strings.HasPrefix(id, earliest),
		h.fault("only-uuid-ids") && present && !strings.HasPrefix(id, "urn:uuid:"),
		h.fault("only-iri-ids") && present && !strings.Contains(id, ":"),
		h.fault("did-ids-refused") && strings.HasPrefix(id, "did:"):
		return malformed("This id is reserved.")
	case id == "" && present && h.fault("empty-id-crashes"):
		return &refusal{status: http.StatusInternalServerError, detail: "The id is empty."}
	}
	return nil
}

// reservedType: subscription events alone have it (PUB-27).
func (h *Hub) reservedType(kind string) bool {
	switch {
	case h.fault("reserved-type-accepted"):
		return false
	case h.fault("reserved-type-case-insensitive"):
		return strings.EqualFold(kind, typeMercure)
	case h.fault("reserved-type-is-prefix"):
		return strings.HasPrefix(kind, typeMercure)
	}
	return kind == typeMercure
}

// validRetry: ASCII digits only (PUB-28).
func (h *Hub) validRetry(retry string) bool {
	if f := h.datum().retry; f.expression != "" {
		return regexp.MustCompile(f.expression).MatchString(retry)
	}
	if h.fault("long-retry-crashes") && len(retry) > 100 {
		return false
	}
	return strings.Trim(retry, "0123456789") == ""
}

// mayPublish says whether a token grants publishing every topic of an update (PRIV-02 to PRIV-04).
func (h *Hub) mayPublish(token *token, u *update) *refusal {
	granted := 0
	for i, topic := range u.topics {
		if token.grants(h, actionPublish, topic) {
			granted++
		} else if i == 0 && h.fault("canonical-alone-authorised") {
			return insufficient()
		}
	}
	switch {
	case granted == len(u.topics),
		granted > 0 && h.fault("any-granted-topic-suffices"),
		h.fault("canonical-alone-authorised"),
		h.fault("public-needs-no-publish-grant") && !u.private,
		h.fault("anonymous-publishes") && token == nil,
		h.fault("publish-needs-no-grant"):
		return nil
	case granted > 0 && h.fault("granted-topics-dispatched"):
		h.dispatch(u)
	}
	return insufficient()
}
