package as

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// Client authentication methods (RFC 7591 section 2) that work.
const (
	AuthNone          = "none"
	AuthPrivateKeyJWT = "private_key_jwt"
)

// grantAuthorizationCode is the name of the authorization code grant.
const grantAuthorizationCode = "authorization_code"

// supportedGrants lists the grant types the token endpoint knows.
func supportedGrants() []string { return []string{grantAuthorizationCode} }

// CheckClient reports what is wrong with a client that is to be registered. Redirect URIs are needed by clients that may use
// the authorization code grant, which no grant types at all stands for.
func CheckClient(c store.Client) error {
	var faults []error
	if c.ID == "" || len(c.ID) > 256 || !printable(c.ID) {
		faults = append(faults, errors.New("client id: must be 1 to 256 printable characters"))
	}
	if strings.HasPrefix(c.ID, store.AccountIDPrefix) {
		faults = append(faults, errors.New("client id: "+store.AccountIDPrefix+" marks accounts"))
	}
	switch c.AuthMethod {
	case AuthNone:
		if len(c.JWKS) > 0 || len(c.SecretHash) > 0 {
			faults = append(faults, errors.New("auth method: none goes with neither keys nor secret"))
		}
	case AuthPrivateKeyJWT:
		if _, err := clientKeys(c); err != nil {
			faults = append(faults, err)
		}
	default:
		faults = append(faults, fmt.Errorf("auth method: %q is not supported", c.AuthMethod))
	}
	if mayUse(c, grantAuthorizationCode) && len(c.RedirectURIs) == 0 {
		faults = append(faults, errors.New("redirect URIs: at least one is needed"))
	}
	for _, uri := range c.RedirectURIs {
		if err := CheckRedirectURI(uri); err != nil {
			faults = append(faults, fmt.Errorf("redirect URI %q: %w", uri, err))
		}
	}
	for _, origin := range c.Origins {
		if o, ok := originOf(origin); !ok || o != origin {
			faults = append(faults, fmt.Errorf("origin %q: must be scheme://host[:port]", origin))
		}
	}
	return errors.Join(faults...)
}

// mayUse says whether a client may use a grant type. No list means the authorization code grant.
func mayUse(c store.Client, grantType string) bool {
	if len(c.GrantTypes) == 0 {
		return grantType == grantAuthorizationCode
	}
	return slices.Contains(c.GrantTypes, grantType)
}

// client returns an enabled client; ErrClient when there is none.
func (s *Server) client(ctx context.Context, id string) (store.Client, error) {
	if id == "" || len(id) > 256 {
		return store.Client{}, ErrClient
	}
	c, err := s.store.Client(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Client{}, ErrClient
	case err != nil:
		return store.Client{}, fmt.Errorf("read client: %w", err)
	case c.Disabled:
		return store.Client{}, ErrClient
	}
	return c, nil
}

// syncClients makes the static clients of the store those of the configuration.
func (s *Server) syncClients(ctx context.Context) error {
	known, err := s.store.ListClients(ctx)
	if err != nil {
		return fmt.Errorf("list clients: %w", err)
	}
	created := map[string]time.Time{}
	for _, c := range known {
		listed := slices.ContainsFunc(s.options.Clients, func(o store.Client) bool { return o.ID == c.ID })
		created[c.ID] = c.CreatedAt
		if c.Static && !listed {
			if err := s.store.DeleteClient(ctx, c.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("delete client %q: %w", c.ID, err)
			}
		}
	}
	for _, c := range s.options.Clients {
		c.Static = true
		if c.CreatedAt.IsZero() {
			c.CreatedAt = created[c.ID]
		}
		if err := s.store.PutClient(ctx, c); err != nil {
			return fmt.Errorf("write client %q: %w", c.ID, err)
		}
	}
	return nil
}

// displayName is what people read for a client.
func displayName(c store.Client) string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID
}

// originOf returns the origin of an http(s) URL in the form browsers send it.
func originOf(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); (u.Scheme == "https" && port == "443") || (u.Scheme == "http" && port == "80") {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, true
}

// fositeClient shows a client to fosite. It has no secret: authentication is not fosite's business here.
type fositeClient struct {
	client    store.Client
	resources []string
}

var _ fosite.Client = fositeClient{}

func (c fositeClient) GetID() string                      { return c.client.ID }
func (c fositeClient) GetHashedSecret() []byte            { return nil }
func (c fositeClient) GetRedirectURIs() []string          { return c.client.RedirectURIs }
func (c fositeClient) GetResponseTypes() fosite.Arguments { return fosite.Arguments{"code"} }
func (c fositeClient) GetScopes() fosite.Arguments        { return nil }
func (c fositeClient) IsPublic() bool                     { return c.client.AuthMethod == AuthNone }

// GetGrantTypes leaves out what the server does not do: fosite would make refresh tokens for a client that may have them.
func (c fositeClient) GetGrantTypes() fosite.Arguments {
	var types fosite.Arguments
	for _, t := range supportedGrants() {
		if mayUse(c.client, t) {
			types = append(types, t)
		}
	}
	return types
}

// GetAudience lists every resource: which of them a client gets tokens for is policy.
func (c fositeClient) GetAudience() fosite.Arguments { return c.resources }
