package authzapp

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// Broker is what the session broker of a hub in the same process needs: everything is derived from the store's secret, so
// that no file holds it and every start gives the same.
type Broker struct {
	// ClientID is its identifier, ClientKey its private key (JWK), KeySet the public one (JWK Set).
	ClientID  string
	ClientKey json.RawMessage
	KeySet    json.RawMessage
	// CookieKey seals its cookies: 32 bytes to authenticate, 32 to encrypt.
	CookieKey []byte
}

// Broker derives the keys of the session broker.
func (c *Core) Broker(clientID string) (Broker, error) {
	b := Broker{ClientID: clientID}
	seed, err := c.Derive("broker client key")
	if err != nil {
		return b, err
	}
	key := token.SigningKey{ID: "broker-1", Algorithm: "EdDSA", Material: ed25519.NewKeyFromSeed(seed[:])}
	if b.ClientKey, err = key.PrivateJWK(); err != nil {
		return b, fmt.Errorf("encode the broker's key: %w", err)
	}
	if b.KeySet, err = key.PublicJWKSet(); err != nil {
		return b, fmt.Errorf("encode the broker's key set: %w", err)
	}
	for _, purpose := range []string{"session cookie authentication", "session cookie encryption"} {
		half, err := c.Derive(purpose)
		if err != nil {
			return b, err
		}
		b.CookieKey = append(b.CookieKey, half[:]...)
	}
	return b, nil
}

// Client is the broker's registration. Its callbacks are those of the hub URLs it serves.
func (b Broker) Client(name string, skipConsent bool, hubURLs ...string) store.Client {
	c := store.Client{
		ID: b.ClientID, Name: name, AuthMethod: as.AuthPrivateKeyJWT, JWKS: b.KeySet,
		GrantTypes: BrokerGrants(), Broker: true, SkipConsent: skipConsent, Static: true,
		CreatedAt: time.Unix(0, 0).UTC(),
	}
	for _, u := range hubURLs {
		c.RedirectURIs = append(c.RedirectURIs, u+CallbackPath)
	}
	return c
}

// BrokerGrants are the grant types of a session broker.
func BrokerGrants() []string { return []string{"authorization_code", "refresh_token"} }

// CallbackPath is where the broker's callback stands under a hub URL.
const CallbackPath = "/session/callback"

// Transport is an HTTP client for the broker that serves the issuer's origin from this process. Its handler is set before
// the first request.
func Transport(origin string) (*http.Client, *app.InMemory) {
	t := &app.InMemory{Origin: origin}
	return &http.Client{Transport: t, Timeout: app.BrokerTimeout}, t
}
