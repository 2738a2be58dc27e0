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
	// metadataRetry is how long older metadata is used when fetching it again has failed, until that is tried once more.
	metadataRetry = 30 * time.Second
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
	PushEndpoint          string   `json:"pushed_authorization_request_endpoint"` // RFC 9126; may be absent
	RevocationEndpoint    string   `json:"revocation_endpoint"`                   // RFC 7009; may be absent
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	IssuerParameter       bool     `json:"authorization_response_iss_parameter_supported"`
}

// issuer reaches the authorization server. It is safe for concurrent use.
type issuer struct {
	id     string
	client *http.Client
	flight singleflight.Group

	mu     sync.Mutex // protects the fields below
	cached *metadata
	next   time.Time // when to fetch it again
}

func newIssuer(id string, client *http.Client) *issuer {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &issuer{id: id, client: &own}
}

// metadata returns the issuer's metadata. Callers that need it at once share one fetch. What was good once is used on when
// it cannot be fetched again: a server that is away for a moment ends no session.
func (i *issuer) metadata(ctx context.Context) (*metadata, error) {
	i.mu.Lock()
	cached, next := i.cached, i.next
	i.mu.Unlock()
	if cached != nil && time.Now().Before(next) {
		return cached, nil
	}
	v, err, _ := i.flight.Do("", func() (any, error) {
		// The fetch serves everybody who waits, so it does not end with the one who happened to start it.
		m, err := i.fetch(context.WithoutCancel(ctx))
		if err != nil && cached == nil {
			return nil, err
		}
		age := metadataAge
		if err != nil {
			m, age = cached, metadataRetry
		}
		i.mu.Lock()
		i.cached, i.next = m, time.Now().Add(age)
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

// known returns the issuer's metadata, however old, and fetches it only when there is none yet, for as long as ctx allows.
func (i *issuer) known(ctx context.Context) (*metadata, error) {
	i.mu.Lock()
	cached := i.cached
	i.mu.Unlock()
	if cached != nil {
		return cached, nil
	}
	return i.fetch(ctx)
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
	if err := m.check(i.id); err != nil {
		return nil, err
	}
	return &m, nil
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
	endpoints := []string{m.AuthorizationEndpoint, m.TokenEndpoint}
	for _, optional := range []string{m.PushEndpoint, m.RevocationEndpoint} {
		if optional != "" {
			endpoints = append(endpoints, optional)
		}
	}
	for _, endpoint := range endpoints {
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
