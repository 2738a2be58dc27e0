package as

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// The endpoints, under the issuer's path.
const (
	PathAuthorize = "/authorize"
	PathToken     = "/token"
	PathPush      = "/par"
	PathRevoke    = "/revoke"
	PathJWKS      = "/jwks.json"
	PathLogin     = "/login"
	PathConsent   = "/consent"
	// PathRevocations is the log of revocations, for the hubs whose session brokers are clients here.
	PathRevocations = "/revocations"
)

// endpoint returns the URL of an endpoint.
func (s *Server) endpoint(path string) string { return s.options.Issuer + path }

// BasePath is the issuer's path, under which all endpoints stand; empty at the root of a host.
func (s *Server) BasePath() string { return issuerURL(s.options.Issuer).EscapedPath() }

// Origin is the issuer's origin as browsers send it.
func (s *Server) Origin() string {
	origin, _ := originOf(s.options.Issuer) // checked by Options.Validate
	return origin
}

// MetadataPaths are the paths of the host where clients look for the metadata: that of RFC 8414 section 3.1, with the
// issuer's path after the well-known one, and those of OpenID Connect Discovery in both forms that are in use.
func (s *Server) MetadataPaths() []string {
	base := s.BasePath()
	paths := []string{
		"/.well-known/oauth-authorization-server" + base,
		"/.well-known/openid-configuration" + base,
		base + "/.well-known/openid-configuration",
	}
	return slices.Compact(paths)
}

// metadata is the document of RFC 8414 section 2. It lists what works and nothing else.
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	PushEndpoint          string   `json:"pushed_authorization_request_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	ResponseTypes         []string `json:"response_types_supported"`
	ResponseModes         []string `json:"response_modes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	AuthAlgorithms        []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationMethods     []string `json:"revocation_endpoint_auth_methods_supported"`
	RevocationAlgorithms  []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	Scopes                []string `json:"scopes_supported,omitempty"`
	DetailTypes           []string `json:"authorization_details_types_supported"`
	IssuerInResponse      bool     `json:"authorization_response_iss_parameter_supported"`
	RequestParameter      bool     `json:"request_parameter_supported"`
	RequestURIParameter   bool     `json:"request_uri_parameter_supported"` // absent would mean true; pushed ones are another matter
	PushRequired          bool     `json:"require_pushed_authorization_requests"`
	ProtectedResources    []string `json:"protected_resources"`
}

// Metadata returns the server's metadata document (PRM-15). The bytes must not be modified.
func (s *Server) Metadata() []byte { return s.metadata }

func (s *Server) buildMetadata() ([]byte, error) {
	m := metadata{
		Issuer:                s.options.Issuer,
		AuthorizationEndpoint: s.endpoint(PathAuthorize),
		TokenEndpoint:         s.endpoint(PathToken),
		PushEndpoint:          s.endpoint(PathPush),
		RevocationEndpoint:    s.endpoint(PathRevoke),
		JWKSURI:               s.endpoint(PathJWKS),
		ResponseTypes:         []string{"code"},
		ResponseModes:         []string{"query"},
		GrantTypes:            supportedGrants(),
		ChallengeMethods:      []string{"S256"},
		AuthMethods:           supportedAuthMethods(),
		AuthAlgorithms:        assertionAlgorithms(),
		RevocationMethods:     supportedAuthMethods(),
		RevocationAlgorithms:  assertionAlgorithms(),
		Scopes:                slices.Sorted(maps.Keys(s.options.Scopes)),
		DetailTypes:           []string{rar.DetailType},
		IssuerInResponse:      true,
		ProtectedResources:    make([]string, 0, len(s.resources)),
	}
	for _, r := range s.resources {
		m.ProtectedResources = append(m.ProtectedResources, r.ID)
	}
	document, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode metadata: %w", err)
	}
	return append(document, '\n'), nil
}

// JWKS returns the public signing keys as a JSON Web Key Set.
func (s *Server) JWKS() []byte { return s.keys.PublicSet() }

// issuerURL parses an issuer that was validated.
func issuerURL(issuer string) *url.URL {
	u, err := url.Parse(strings.TrimSuffix(issuer, "/"))
	if err != nil {
		return &url.URL{}
	}
	return u
}
