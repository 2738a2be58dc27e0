package refhub

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// The error codes of RFC 6750 section 3.1.
const (
	invalidRequest    = "invalid_request"
	invalidToken      = "invalid_token"
	insufficientScope = "insufficient_scope"
)

// refusal is the answer to a request that is not served. With challenge, it is a matter of the token, and code, if any,
// is told in the challenge (ERR-01 to ERR-09).
type refusal struct {
	status    int
	challenge bool
	code      string
	detail    string
	expired   bool // why the token is invalid; told to nobody (ERR-13)
	audience  bool
}

func (r *refusal) Error() string { return r.detail }

func malformed(detail string) *refusal {
	return &refusal{status: http.StatusBadRequest, detail: detail}
}

func tooLarge(detail string) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, detail: detail}
}

// missing is the refusal of a request that needs a token and presents none.
func missing() *refusal {
	return &refusal{status: http.StatusUnauthorized, challenge: true, detail: "An access token is needed."}
}

// bad is the refusal of a presented token, whatever is wrong with it.
func bad() *refusal {
	return &refusal{status: http.StatusUnauthorized, challenge: true, code: invalidToken, detail: "The access token is not valid."}
}

func mispresented() *refusal {
	return &refusal{status: http.StatusBadRequest, challenge: true, code: invalidRequest, detail: "The access token is not presented as RFC 6750 says."}
}

func insufficient() *refusal {
	return &refusal{status: http.StatusForbidden, challenge: true, code: insufficientScope, detail: "The access token does not grant this."}
}

// refuse writes a refusal: the challenge when the token is the matter, and problem details (ERR-12).
func (h *Hub) refuse(w http.ResponseWriter, _ *http.Request, ref refusal) {
	ref = h.distort(ref)
	if h.fault("errors-without-cors") {
		w.Header().Del("Access-Control-Allow-Origin")
	}
	if ref.challenge {
		w.Header().Set("WWW-Authenticate", h.challenge(ref))
		if h.fault("challenge-missing") || h.fault("forbidden-without-challenge") && ref.status == http.StatusForbidden {
			w.Header().Del("WWW-Authenticate")
		}
	}
	body := map[string]any{"type": "about:blank", "title": http.StatusText(ref.status), "status": ref.status, "detail": ref.detail}
	if h.fault("codes-in-body") && ref.code != "" {
		w.Header().Del("WWW-Authenticate")
		body["error"] = ref.code
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if h.fault("problem-is-text") {
		w.WriteHeader(ref.status)
		_, _ = io.WriteString(w, ref.detail)
		return
	}
	w.WriteHeader(ref.status)
	_ = json.NewEncoder(w).Encode(body)
}

// challenge is the value of WWW-Authenticate (RFC 9110 section 11.6.1, RFC 9728 section 5.1).
func (h *Hub) challenge(ref refusal) string {
	var params []string
	code := ref.code
	if code != "" && !h.fault("invalid-request-without-code") || code != "" && code != invalidRequest {
		params = append(params, `error="`+code+`"`)
	}
	switch {
	case h.fault("two-errors-in-challenge") && code != "":
		params = append(params, `error="`+invalidRequest+`"`)
	case h.fault("challenge-unquoted"):
		return "Bearer error=" + code + " resource_metadata=" + h.origin + h.metadataPath()
	case h.fault("challenge-without-metadata"):
		return strings.TrimSpace("Bearer " + strings.Join(append(params, `realm="mercure"`), ", "))
	case h.fault("metadata-only-without-token") && code != "":
		return "Bearer " + strings.Join(params, ", ")
	case h.fault("challenge-metadata-relative"):
		return "Bearer " + strings.Join(append(params, `resource_metadata="`+h.metadataPath()+`"`), ", ")
	case h.fault("challenge-metadata-elsewhere"):
		return "Bearer " + strings.Join(append(params, `resource_metadata="`+h.origin+`/.well-known/oauth-protected-resource"`), ", ")
	case h.fault("challenge-is-basic"):
		return `Basic realm="mercure"`
	}
	return "Bearer " + strings.Join(append(params, `resource_metadata="`+h.origin+h.metadataPath()+`"`), ", ")
}

// distort is where faults change what is answered.
func (h *Hub) distort(ref refusal) refusal {
	switch {
	case h.fault("missing-token-is-forbidden") && ref.challenge && ref.code == "":
		ref.status = http.StatusForbidden
	case h.fault("missing-token-has-code") && ref.challenge && ref.code == "":
		ref.code = invalidToken
	case h.fault("invalid-token-is-bad-request") && ref.code == invalidToken:
		ref.status, ref.code = http.StatusBadRequest, invalidRequest
	case h.fault("invalid-token-is-forbidden") && ref.code == invalidToken:
		ref.status, ref.code = http.StatusForbidden, insufficientScope
	case h.fault("insufficient-grant-is-unauthorized") && ref.code == insufficientScope:
		ref.status = http.StatusUnauthorized
	case h.fault("insufficient-grant-is-invalid-token") && ref.code == insufficientScope:
		ref.code = invalidToken
	case h.fault("malformed-is-unprocessable") && ref.status == http.StatusBadRequest && !ref.challenge:
		ref.status = http.StatusUnprocessableEntity
	case h.fault("expiry-told") && ref.expired:
		ref.code = "expired_token"
	case h.fault("wrong-audience-is-forbidden") && ref.audience:
		ref.status, ref.code = http.StatusForbidden, insufficientScope
	case h.fault("publish-limit-is-bad-request") && ref.status == http.StatusRequestEntityTooLarge:
		ref.status = http.StatusBadRequest
	}
	return ref
}
