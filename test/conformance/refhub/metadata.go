package refhub

import (
	"net/http"
	"strings"
)

// metadataPath is where RFC 9728 section 3.1 puts the metadata of the hub URL (PRM-01).
func (h *Hub) metadataPath() string {
	if h.fault("metadata-at-root") {
		return "/.well-known/oauth-protected-resource"
	}
	return "/.well-known/oauth-protected-resource" + strings.TrimSuffix(h.path, "/")
}

// serveMetadata serves the protected resource metadata, to anybody (PRM).
func (h *Hub) serveMetadata(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.fault("metadata-missing"):
		h.refuse(w, r, refusal{status: http.StatusNotFound, detail: "Nothing here."})
		return
	case h.fault("metadata-needs-token") && r.Header.Get("Authorization") == "":
		h.refuse(w, r, *missing())
		return
	case r.Method == http.MethodOptions:
		h.preflight(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		h.refuse(w, r, refusal{status: http.StatusMethodNotAllowed, detail: "Only GET is supported."})
		return
	}
	doc := map[string]any{
		"resource":                              h.opts.Resource,
		"authorization_details_types_supported": []string{detailType},
		"bearer_methods_supported":              []string{"header"},
		"mercure_matcher_types_supported":       []string{exact, urlPatterns},
	}
	if h.as != nil {
		doc["authorization_servers"] = []string{h.as.issuer}
	}
	if h.opts.CookieName != "" {
		doc["mercure_cookie"] = h.opts.CookieName
	}
	if h.opts.Subscriptions {
		doc["mercure_subscriptions"] = true
	}
	h.distortMetadata(doc)
	kind := "application/json"
	if h.fault("metadata-is-text") {
		kind = "text/plain"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	if h.fault("metadata-is-array") {
		_, _ = w.Write(encode([]any{doc}))
		return
	}
	_, _ = w.Write(encode(doc))
}

// distortMetadata is where faults change the document.
func (h *Hub) distortMetadata(doc map[string]any) {
	switch {
	case h.fault("metadata-without-resource"):
		delete(doc, "resource")
	case h.fault("metadata-resource-with-slash"):
		doc["resource"] = h.opts.Resource + "/"
	case h.fault("metadata-resource-is-origin"):
		doc["resource"] = h.origin
	case h.fault("metadata-servers-is-text") && h.as != nil:
		doc["authorization_servers"] = h.as.issuer
	case h.fault("metadata-servers-empty"):
		doc["authorization_servers"] = []string{}
	case h.fault("metadata-of-other-server") && h.as != nil:
		doc["authorization_servers"] = []string{"https://login.example"}
	case h.fault("metadata-without-detail-type"):
		doc["authorization_details_types_supported"] = []string{"https://mercure.rocks/"}
	case h.fault("metadata-lists-cookie-method"):
		doc["bearer_methods_supported"] = []string{"header", "cookie"}
	case h.fault("metadata-lists-self-issuers"):
		var issuers []string
		for _, i := range h.opts.Issuers {
			issuers = append(issuers, i.ID)
		}
		doc["authorization_servers"] = issuers
	case h.fault("metadata-lists-other-method"):
		doc["bearer_methods_supported"] = []string{"header", "websocket"}
	case h.fault("metadata-with-odd-matcher-type"):
		doc["mercure_matcher_types_supported"] = []string{exact, urlPatterns, "URL-Pattern"}
	case h.fault("metadata-lists-query-method"):
		doc["bearer_methods_supported"] = []string{"header", "query"}
	case h.fault("metadata-lists-body-method"):
		doc["bearer_methods_supported"] = []string{"header", "body"}
	case h.fault("metadata-without-methods"):
		doc["bearer_methods_supported"] = []string{}
	case h.fault("metadata-without-cookie"):
		delete(doc, "mercure_cookie")
	case h.fault("metadata-cookie-differs"):
		doc["mercure_cookie"] = "mercureAuthorization"
	case h.fault("metadata-cookie-is-flag"):
		doc["mercure_cookie"] = true
	case h.fault("metadata-cookie-always"):
		doc["mercure_cookie"] = "__Secure-mercure_access_token"
	case h.fault("metadata-with-one-matcher-type"):
		doc["mercure_matcher_types_supported"] = []string{exact}
	case h.fault("metadata-matcher-types-is-text"):
		doc["mercure_matcher_types_supported"] = "exact urlpattern"
	case h.fault("metadata-with-unknown-matcher-type"):
		doc["mercure_matcher_types_supported"] = []string{exact, urlPatterns, "regexp"}
	case h.fault("metadata-without-subscriptions"):
		delete(doc, "mercure_subscriptions")
	case h.fault("metadata-subscriptions-always"):
		doc["mercure_subscriptions"] = true
	case h.fault("metadata-subscriptions-is-text"):
		doc["mercure_subscriptions"] = "true"
	}
}
