package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// metadataAge is how long the issuer's metadata is used before it is fetched again.
	metadataAge = 10 * time.Minute
	// metadataPath is inserted between the issuer's host and path (RFC 8414 section 3).
	metadataPath = "/.well-known/oauth-authorization-server"
	// fetchTimeout bounds one request to the issuer, body included.
	fetchTimeout = 10 * time.Second
	// maxIssuerBytes bounds one answer of the issuer.
	maxIssuerBytes = 64 << 10
)

// metadata is what the broker uses of the issuer's metadata (RFC 8414 section 2).
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	IssuerParameter       bool     `json:"authorization_response_iss_parameter_supported"`
}

// issuer reaches the authorization server. It is safe for concurrent use.
type issuer struct {
	id     string
	client *http.Client
	flight singleflight.Group

	mu      sync.Mutex // protects the fields below
	cached  *metadata
	fetched time.Time
}

func newIssuer(id string, client *http.Client) *issuer {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &issuer{id: id, client: &own}
}

// metadata returns the issuer's metadata, fetched at most metadataAge ago. Callers that need it at once share
// one fetch.
func (i *issuer) metadata(ctx context.Context) (*metadata, error) {
	i.mu.Lock()
	cached, fetched := i.cached, i.fetched
	i.mu.Unlock()
	if cached != nil && time.Since(fetched) < metadataAge {
		return cached, nil
	}
	v, err, _ := i.flight.Do("", func() (any, error) {
		// The fetch serves everybody who waits, so it does not end with the one who happened to start it.
		m, err := i.fetch(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		i.mu.Lock()
		i.cached, i.fetched = m, time.Now()
		i.mu.Unlock()
		return m, nil
	})
	if err != nil {
		return nil, fmt.Errorf("issuer metadata: %w", err)
	}
	m, ok := v.(*metadata)
	if !ok {
		return nil, errors.New("issuer metadata: absent")
	}
	return m, nil
}

func (i *issuer) fetch(ctx context.Context) (*metadata, error) {
	address, err := metadataURL(i.id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	status, body, err := i.do(req)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%w: metadata status %d", errUnavailable, status)
	}
	var m metadata
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("decode metadata: %w", err)
	}
	return &m, m.check(i.id)
}

// check refuses metadata that the broker cannot work with safely.
func (m *metadata) check(id string) error {
	if m.Issuer != id {
		return errors.New("metadata names another issuer") // RFC 8414 section 3.3
	}
	if !slices.Contains(m.ChallengeMethods, "S256") {
		return errors.New("metadata does not offer PKCE with S256")
	}
	if !m.IssuerParameter {
		return errors.New("metadata does not offer the iss parameter (RFC 9207)")
	}
	for _, endpoint := range []string{m.AuthorizationEndpoint, m.TokenEndpoint} {
		u, err := parseEndpoint(endpoint)
		if err != nil {
			return fmt.Errorf("metadata endpoint: %w", err)
		}
		if u.Protocol() != "https:" && strings.HasPrefix(id, "https:") {
			return errors.New("metadata endpoint of an https issuer is not https")
		}
	}
	return nil
}

// do sends one request and reads a bounded answer. Its errors are errUnavailable.
func (i *issuer) do(req *http.Request) (status int, body []byte, err error) {
	resp, err := i.client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxIssuerBytes+1))
	err = errors.Join(err, resp.Body.Close())
	if err != nil {
		return 0, nil, fmt.Errorf("%w: read answer: %w", errUnavailable, err)
	}
	if len(body) > maxIssuerBytes {
		return 0, nil, fmt.Errorf("%w: answer exceeds %d bytes", errUnavailable, maxIssuerBytes)
	}
	return resp.StatusCode, body, nil
}

// metadataURL inserts the well-known path between host and path of an issuer (RFC 8414 section 3.1).
func metadataURL(id string) (string, error) {
	u, err := parseEndpoint(id)
	if err != nil {
		return "", fmt.Errorf("issuer: %w", err)
	}
	return originOf(u) + metadataPath + strings.TrimSuffix(u.Pathname(), "/"), nil
}
