package hubhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// wellKnownMetadata is inserted between the host and the path of the hub URL (RFC 9728 section 3.1).
const wellKnownMetadata = "/.well-known/oauth-protected-resource"

// metadata is the protected resource metadata (RFC 9728 section 2; Mercure, "Protected Resource Metadata"). Members without a
// value are left out: the format knows no empty arrays (PRM-10).
type metadata struct {
	Resource             string   `json:"resource"`
	ResourceName         string   `json:"resource_name,omitempty"`
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	DetailTypes          []string `json:"authorization_details_types_supported"`
	Cookie               string   `json:"mercure_cookie"`
	MatcherTypes         []string `json:"mercure_matcher_types_supported"`
	Subscriptions        bool     `json:"mercure_subscriptions,omitempty"`
}

// metadataDocument encodes the document once: it depends on configuration alone.
func metadataDocument(o Options) ([]byte, error) {
	b, err := json.Marshal(metadata{
		Resource:             o.Resource,
		ResourceName:         o.ResourceName,
		AuthorizationServers: o.AuthorizationServers,
		BearerMethods:        []string{"header"},
		DetailTypes:          []string{rar.DetailType},
		Cookie:               o.CookieName,
		MatcherTypes:         []string{string(topic.Exact), string(topic.URLPattern)},
		Subscriptions:        o.Subscriptions,
	})
	if err != nil {
		return nil, fmt.Errorf("encode metadata: %w", err)
	}
	return append(b, '\n'), nil
}

// metadataURL returns where the metadata of the hub at u is, as clients derive it: a path of "/" alone adds nothing.
func metadataURL(u *url.URL) *url.URL {
	m := *u
	if u.Path == "/" {
		m.Path, m.RawPath = wellKnownMetadata, ""
		return &m
	}
	m.Path = wellKnownMetadata + u.Path
	if u.RawPath != "" {
		m.RawPath = wellKnownMetadata + u.RawPath
	}
	return &m
}

// metadataHandler serves the document to anybody.
func (a *api) metadataHandler(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "public, max-age=300")
	h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, a.metadata)
}
