package refhub

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// cors lets pages of the listed origins read answers, refusals included. Origins are compared whole (CORS-01 to CORS-05,
// CORS-09 to CORS-11).
func (h *Hub) cors(w http.ResponseWriter, r *http.Request, path string) {
	if h.fault("cors-missing") || h.fault("metadata-without-cors") && path == h.metadataPath() ||
		h.fault("api-without-cors") && strings.HasPrefix(path, h.path+"/") {
		return
	}
	header := w.Header()
	if !h.fault("vary-missing") {
		header.Add("Vary", "Origin")
	}
	if h.fault("star-without-origin") && r.Header.Get("Origin") == "" {
		header.Set("Access-Control-Allow-Origin", "*")
	}
	origin := r.Header.Get("Origin")
	if origins := r.Header.Values("Origin"); len(origins) > 1 && !h.faultIf("any-origin-field-decides", slices.ContainsFunc(origins, h.originAllowed)) {
		return
	}
	if origin == "" || !h.originAllowed(origin) && len(r.Header.Values("Origin")) == 1 && !h.faultIf("preflight-for-anybody", r.Method == http.MethodOptions) {
		return
	}
	allowed := origin
	if h.fault("any-origin-with-star") {
		allowed = "*"
	}
	if h.fault("first-origin-always") {
		allowed = h.opts.CORSOrigins[0] + "/"
	}
	header.Set("Access-Control-Allow-Origin", allowed)
	if !h.fault("credentials-not-allowed") {
		header.Set("Access-Control-Allow-Credentials", "true")
	}
	exposed := []string{"Link", "Mercure-Last-Event-ID", "WWW-Authenticate"}
	switch {
	case h.fault("link-not-exposed"):
		exposed = exposed[1:]
	case h.fault("cursor-not-exposed"):
		exposed = exposed[:1]
	}
	header.Set("Access-Control-Expose-Headers", strings.Join(exposed, ", "))
}

func (h *Hub) originAllowed(origin string) bool {
	if h.fault("origin-reflected") || h.fault("any-origin-with-star") {
		return true
	}
	if h.fault("null-origin-allowed") && origin == "null" {
		return true
	}
	if same := h.datum().origin.same; same != nil {
		for _, allowed := range h.opts.CORSOrigins {
			if same(origin, allowed) {
				return true
			}
		}
	}
	return slices.Contains(h.opts.CORSOrigins, origin)
}

func isPreflight(r *http.Request) bool {
	return r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers OPTIONS. It needs no token; the headers of cors stand already (CORS-06 to CORS-08).
func (h *Hub) preflight(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Allow", strings.Join(h.methods(), ", "))
	if h.fault("preflight-needs-token") {
		h.refuse(w, r, *missing())
		return
	}
	if h.fault("preflight-refused") {
		h.refuse(w, r, refusal{status: http.StatusMethodNotAllowed, detail: "This method is not supported."})
		return
	}
	if isPreflight(r) && header.Get("Access-Control-Allow-Origin") != "" {
		methods, fields := h.methods(), []string{"Authorization", "Cache-Control", "Content-Type", "Last-Event-ID"}
		without := func(list []string, name string) []string {
			return slices.DeleteFunc(list, func(s string) bool { return s == name })
		}
		switch {
		case h.fault("preflight-without-authorization"):
			fields = without(fields, "Authorization")
		case h.fault("preflight-without-post"):
			methods = without(methods, http.MethodPost)
		case h.fault("preflight-without-query"):
			methods = without(methods, methodQuery)
		case h.fault("preflight-without-last-event-id"):
			fields = without(fields, "Last-Event-ID")
		case h.fault("preflight-without-cache-control"):
			fields = without(fields, "Cache-Control")
		}
		header.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		header.Set("Access-Control-Allow-Headers", strings.Join(fields, ", "))
	}
	w.WriteHeader(http.StatusNoContent)
}

// originParts splits an origin for the faults that compare only some of it.
func originParts(origin string) (scheme, host, port string) {
	u, err := url.Parse(origin)
	if err != nil {
		return "", "", ""
	}
	return u.Scheme, u.Hostname(), u.Port()
}
