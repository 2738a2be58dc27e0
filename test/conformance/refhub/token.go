package refhub

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// role is what an endpoint is for: it chooses the keys (TOK-26).
type role int

const (
	publisher role = iota
	subscriber
)

// token is a valid access token.
type token struct {
	subject    string
	expires    time.Time
	details    []detail
	fromCookie bool
}

// object is a JSON object with members still to be read.
type object = map[string]json.RawMessage

// verify verifies a token for a role (TOK, RAR). All failures look alike (ERR-13).
func (h *Hub) verify(compact string, role role) (*token, *refusal) {
	if f := h.datum().compact; f.change != nil {
		compact = f.change(compact)
	}
	parts := strings.Split(compact, ".")
	if len(parts) != 3 {
		return nil, bad()
	}
	header, ok := h.segment(parts[0])
	if !ok {
		return nil, bad()
	}
	claims, ok := h.segment(parts[1])
	if !ok && h.fault("payload-array-accepted") {
		claims, ok = arraySegment(parts[1])
	}
	if !ok {
		return nil, bad()
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return nil, bad()
	}
	if !h.checkHeader(header) {
		return nil, h.because(bad())
	}
	if _, known := h.keysOf(claims["iss"], role); !known {
		return nil, h.because(bad())
	}
	if h.fault("kid-shape-crashes") && len(header["kid"]) > 0 && header["kid"][0] != '"' {
		return nil, &refusal{status: http.StatusInternalServerError, detail: "The key cannot be found."}
	}
	if !h.signed(header, claims, []byte(parts[0]+"."+parts[1]), signature, role) {
		return nil, bad()
	}
	t, ref := h.checkClaims(claims, h.fault("expiry-checked-once") && h.seenBefore(compact))
	if t != nil && h.fault("expiry-checked-once") {
		h.remember(compact)
	}
	if ref != nil {
		ref = h.because(ref)
	}
	return t, ref
}

// because is where a fault tells a token whose signature is wrong from one that is wrong otherwise (ERR-13).
func (h *Hub) because(ref *refusal) *refusal {
	if h.fault("reason-told") {
		ref.code = "invalid_claims"
	}
	return ref
}

// segment decodes a part of the compact serialisation: unpadded base64url of a JSON object in UTF-8 (TOK-22).
func (h *Hub) segment(s string) (object, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || !utf8.Valid(raw) && !h.fault("json-utf8-unchecked") {
		return nil, false
	}
	var o object
	if h.fault("text-behind-json-ignored") {
		_ = json.NewDecoder(bytes.NewReader(raw)).Decode(&o)
	} else if json.Unmarshal(raw, &o) != nil {
		return nil, false
	}
	if h.fault("claims-case-insensitive") {
		o = folded(o)
	}
	return o, o != nil
}

// folded is what a decoder makes of members whose names it compares without regard to case.
func folded(o object) object {
	all := object{}
	for name, raw := range o {
		if lower := strings.ToLower(name); lower == name {
			if _, taken := all[name]; !taken {
				all[name] = raw
			}
		} else {
			all[lower] = raw
		}
	}
	return all
}

// seenBefore and remember are for a fault that verifies a token once.
func (h *Hub) seenBefore(compact string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[compact]
}

func (h *Hub) remember(compact string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[compact] = true
}

func arraySegment(s string) (object, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	var list []object
	if err != nil || json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, false
	}
	return list[0], true
}

// flattened turns a JSON serialisation into the compact one.
func (h *Hub) flattened(s string) string {
	var parts struct {
		Protected, Payload, Signature string
		Signatures                    []struct{ Protected, Signature string }
	}
	_ = json.Unmarshal([]byte(s), &parts)
	if h.fault("general-json-accepted") && len(parts.Signatures) > 0 {
		parts.Protected, parts.Signature = parts.Signatures[0].Protected, parts.Signatures[0].Signature
	}
	return parts.Protected + "." + parts.Payload + "." + parts.Signature
}

// text reads a JSON string; ok is false for anything else.
func text(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// checkHeader checks typ, and that nothing is demanded which this hub does not do (TOK-01, TOK-02, TOK-22).
func (h *Hub) checkHeader(header object) bool {
	if crit, critical := header["crit"]; critical && !h.fault("crit-ignored") && !h.faultIf("b64-ignored", string(crit) == `["b64"]`) {
		return false
	}
	if encoded, ok := header["b64"]; ok && !bytes.Equal(encoded, []byte("true")) && !h.fault("crit-ignored") && !h.fault("b64-ignored") {
		return false
	}
	typ, ok := text(header["typ"])
	switch {
	case h.fault("typ-ignored"),
		h.fault("typ-optional") && header["typ"] == nil,
		h.fault("typ-of-other-shape-ignored") && header["typ"] != nil && !ok,
		h.fault("plain-jwt-accepted") && strings.EqualFold(typ, "JWT"),
		h.fault("id-token-accepted") && strings.EqualFold(typ, "id_token"),
		h.fault("dpop-proof-accepted") && strings.EqualFold(typ, "dpop+jwt"),
		h.fault("typ-is-prefix") && strings.HasPrefix(typ, "at+jwt"),
		h.fault("typ-of-any-tree-accepted") && strings.HasSuffix(typ, "/at+jwt"):
		return true
	case h.datum().typ.same != nil && ok && h.datum().typ.same(typ, "at+jwt"):
		return true
	case h.fault("typ-application-refused") && strings.Contains(typ, "/"),
		h.fault("typ-case-sensitive") && typ != strings.ToLower(typ):
		return false
	}
	short := strings.ToLower(typ)
	return ok && strings.TrimPrefix(short, "application/") == "at+jwt"
}

// checkClaims checks issuer (done with the key), audience and times, and reads the details (TOK-14 to TOK-19).
func (h *Hub) checkClaims(claims object, lasting bool) (*token, *refusal) {
	if !h.audience(claims["aud"]) {
		ref := bad()
		ref.audience = true
		return nil, ref
	}
	now := time.Now()
	t := &token{}
	var ok bool
	if t.expires, ok = h.expiry(claims); !ok {
		return nil, bad()
	}
	leeway := time.Duration(0)
	if h.fault("expiry-leeway") {
		leeway = 2 * time.Hour
	}
	if !now.Before(t.expires.Add(leeway)) && !h.fault("expiry-ignored") && !lasting {
		ref := bad()
		ref.expired = true
		return nil, ref
	}
	if raw, present := claims["nbf"]; present && !h.fault("not-before-ignored") {
		from, ok := instant(raw)
		if !ok && !h.fault("not-before-string-ignored") || ok && now.Before(from) {
			return nil, bad()
		}
	}
	if _, bound := claims["cnf"]; bound { // nobody here checks a proof of possession
		return nil, bad()
	}
	t.subject, _ = text(claims["sub"])
	if t.details, ok = h.parseDetails(claims); !ok {
		claim := claims["authorization_details"]
		switch {
		case h.fault("bad-details-are-forbidden"), h.fault("token-limit-is-forbidden") && len(claim) > maxPattern:
			return nil, insufficient()
		case h.fault("claim-of-other-shape-crashes") && len(claim) > 0 && !strings.HasPrefix(string(claim), "[{"):
			return nil, &refusal{status: http.StatusInternalServerError, detail: "The details cannot be read."}
		}
		return nil, bad()
	}
	return t, nil
}

// expiry reads exp, which must be a number (TOK-15).
func (h *Hub) expiry(claims object) (time.Time, bool) {
	raw, present := claims["exp"]
	expires, ok := instant(raw)
	forever := time.Now().Add(24 * time.Hour)
	switch {
	case h.fault("expiry-optional") && !present,
		h.fault("expiry-null-accepted") && string(raw) == "null",
		h.fault("expiry-object-accepted") && strings.HasPrefix(string(raw), "{"):
		return forever, true
	case h.fault("expiry-string-accepted") && len(raw) > 2 && raw[0] == '"':
		return instant(json.RawMessage(strings.Trim(string(raw), `"`)))
	case h.fault("expiry-fraction-refused") && strings.Contains(string(raw), "."):
		return expires, false
	}
	return expires, ok
}

// instant reads a NumericDate.
func instant(raw json.RawMessage) (time.Time, bool) {
	var seconds *float64
	if json.Unmarshal(raw, &seconds) != nil || seconds == nil {
		return time.Time{}, false
	}
	const most = 9e9 // seconds: nobody lives to see them, and more nanoseconds would not fit
	s := min(max(*seconds, 0), most)
	return time.Unix(0, int64(s*1e9)), true
}

// audience: the resource identifier is the string or a member of the array (TOK-17, TOK-18).
func (h *Hub) audience(raw json.RawMessage) bool {
	one, single := text(raw)
	list := []string{one}
	if !single {
		list = nil
		if json.Unmarshal(raw, &list) != nil && raw != nil && !h.fault("audience-unchecked") {
			return false
		}
	}
	switch {
	case h.fault("audience-unchecked"),
		h.fault("audience-optional") && raw == nil,
		h.fault("empty-audience-accepted") && raw != nil && (single && one == "" || !single && len(list) == 0):
		return true
	case h.fault("audience-string-refused") && single, h.fault("audience-array-refused") && !single:
		return false
	case h.fault("audience-first-only") && len(list) > 1:
		list = list[:1]
	}
	for _, a := range list {
		if a == h.opts.Resource {
			return true
		}
		if same := h.datum().audience.same; same != nil && same(a, h.opts.Resource) {
			return true
		}
	}
	return false
}

// keysOf gives the keys of an issuer for a role; known is false when the issuer is not trusted (TOK-13, TOK-19).
func (h *Hub) keysOf(raw json.RawMessage, role role) (keys []Key, known bool) {
	iss, ok := text(raw)
	if h.fault("issuer-array-accepted") && !ok {
		var list []string
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			iss, ok = list[0], true
		}
	}
	for _, issuer := range h.opts.Issuers {
		mine := ok && (iss == issuer.ID || h.datum().issuer.same != nil && h.datum().issuer.same(iss, issuer.ID))
		mine = mine || h.fault("issuer-optional") && raw == nil || h.fault("issuer-unchecked")
		if mine || h.fault("keys-pooled") {
			keys = append(keys, h.roleKeys(issuer, role)...)
		}
		known = known || mine
	}
	if h.as != nil && ok && iss == h.as.issuer && !h.fault("authorization-server-untrusted") {
		return append(keys, h.as.trusted()...), true
	}
	return keys, known
}

func (h *Hub) roleKeys(issuer Issuer, role role) []Key {
	switch {
	case h.fault("roles-share-keys"):
		return append(append([]Key{}, issuer.Publish...), issuer.Subscribe...)
	case role == publisher:
		return issuer.Publish
	default:
		return issuer.Subscribe
	}
}
