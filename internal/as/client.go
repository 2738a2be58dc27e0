package as

import (
	"context"
	"crypto/sha256"
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
	AuthSecretBasic   = "client_secret_basic"
	AuthSecretPost    = "client_secret_post"
)

// The grant types the token endpoint knows (RFC 6749 sections 4.1.3, 4.4.2 and 6).
const (
	GrantAuthorizationCode = "authorization_code"
	GrantRefreshToken      = "refresh_token"
	GrantClientCredentials = "client_credentials"
)

// supportedGrants lists the grant types the token endpoint knows.
func supportedGrants() []string {
	return []string{GrantAuthorizationCode, GrantRefreshToken, GrantClientCredentials}
}

// supportedAuthMethods lists how clients may authenticate.
func supportedAuthMethods() []string {
	return []string{AuthNone, AuthSecretBasic, AuthSecretPost, AuthPrivateKeyJWT}
}

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
	if c.ID == CommandClientID { // to delete such a client would revoke the tokens that commands minted, and mint no more
		faults = append(faults, errors.New("client id: "+CommandClientID+" marks tokens that are minted by command"))
	}
	faults = append(faults, checkAuthMethod(c)...)
	faults = append(faults, checkGrantTypes(c)...)
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

func checkAuthMethod(c store.Client) []error {
	var faults []error
	switch c.AuthMethod {
	case AuthNone:
		if len(c.JWKS) > 0 || len(c.SecretHash) > 0 {
			faults = append(faults, errors.New("auth method: none goes with neither keys nor secret"))
		}
		if c.Broker {
			faults = append(faults, errors.New("auth method: a session broker must authenticate"))
		}
	case AuthPrivateKeyJWT:
		if _, err := clientKeys(c); err != nil {
			faults = append(faults, err)
		}
		if len(c.SecretHash) > 0 {
			faults = append(faults, errors.New("auth method: private_key_jwt goes without a secret"))
		}
	case AuthSecretBasic, AuthSecretPost:
		if len(c.SecretHash) != sha256.Size {
			faults = append(faults, fmt.Errorf("auth method: %s needs a secret", c.AuthMethod))
		}
		if len(c.JWKS) > 0 {
			faults = append(faults, fmt.Errorf("auth method: %s goes without keys", c.AuthMethod))
		}
	default:
		faults = append(faults, fmt.Errorf("auth method: %q is not supported", c.AuthMethod))
	}
	return faults
}

func checkGrantTypes(c store.Client) []error {
	var faults []error
	for _, t := range c.GrantTypes {
		if !slices.Contains(supportedGrants(), t) {
			faults = append(faults, fmt.Errorf("grant types: %q is not supported", t))
		}
	}
	if mayUse(c, GrantRefreshToken) && !mayUse(c, GrantAuthorizationCode) {
		faults = append(faults, errors.New("grant types: refresh_token goes with authorization_code, which gives the refresh tokens"))
	}
	if mayUse(c, GrantClientCredentials) && c.AuthMethod == AuthNone {
		faults = append(faults, errors.New("grant types: client_credentials needs a client that authenticates"))
	}
	if mayUse(c, GrantAuthorizationCode) && len(c.RedirectURIs) == 0 {
		faults = append(faults, errors.New("redirect URIs: at least one is needed"))
	}
	return faults
}

// mayUse says whether a client may use a grant type. No list means the authorization code grant.
func mayUse(c store.Client, grantType string) bool {
	if len(c.GrantTypes) == 0 {
		return grantType == GrantAuthorizationCode
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

// ActorConfiguration is who deletes the clients that the configuration no longer lists.
const ActorConfiguration = "configuration"

// syncClients makes the static clients of the store those of the configuration. What was issued to one that is gone is revoked
// with it.
func (s *Server) syncClients(ctx context.Context) error {
	known, err := s.store.ListClients(ctx)
	if err != nil {
		return fmt.Errorf("list clients: %w", err)
	}
	created, gone := map[string]time.Time{}, false
	for _, c := range known {
		created[c.ID] = c.CreatedAt
	}
	for _, c := range s.options.Clients {
		c.Static = true
		if c.CreatedAt.IsZero() {
			c.CreatedAt = created[c.ID]
		}
		if err := s.store.PutClient(ctx, c); err != nil {
			return fmt.Errorf("write client %q: %w", c.ID, err)
		}
		gone = gone || c.Disabled // then the store revoked what it had
	}
	// Last, as it cannot be taken back.
	for _, c := range known {
		listed := slices.ContainsFunc(s.options.Clients, func(o store.Client) bool { return o.ID == c.ID })
		if !c.Static || listed {
			continue
		}
		switch err := s.store.DeleteClient(ctx, c.ID, time.Now()); {
		case errors.Is(err, store.ErrNotFound): // another process was faster
		case err != nil:
			return fmt.Errorf("delete client %q: %w", c.ID, err)
		default:
			gone = true
			s.audit(ctx, store.AuditRecord{Event: EventClientDeleted, Actor: ActorConfiguration, Client: c.ID})
		}
	}
	if gone {
		s.revoked()
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

// GetGrantTypes leaves out what the server does not do. fosite makes a refresh token for every code of a client that may use them.
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
