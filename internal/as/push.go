package as

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const (
	// ParamRequestURI is the parameter that names a pushed request at the authorization endpoint.
	ParamRequestURI = "request_uri"
	// requestURIPrefix starts the URIs of pushed requests (RFC 9126 section 2.2).
	requestURIPrefix = "urn:ietf:params:oauth:request_uri:"
	// PushedTTL is how long a pushed request waits for its browser. What the person then takes is the interaction's time.
	PushedTTL = 90 * time.Second
)

// ErrPushedRequest says that a pushed request is unknown, expired, used up, or another client's.
var ErrPushedRequest = errors.New("as: no such pushed request")

// PushResponse is the answer to a pushed authorization request (RFC 9126 section 2.2).
type PushResponse struct {
	RequestURI string `json:"request_uri"`
	ExpiresIn  int64  `json:"expires_in"` // seconds
}

// Push takes an authorization request from its client directly (RFC 9126). The request is judged as Authorize would, here where the
// client hears of its mistakes, and again when the browser comes with it: the policy may have changed. Every error is an *OAuthError.
func (s *Server) Push(ctx context.Context, r ClientRequest) (PushResponse, error) {
	client, p, err := s.readClientRequest(ctx, r)
	if err == nil {
		var response PushResponse
		if response, err = s.push(ctx, client, p); err == nil {
			return response, nil
		}
	}
	return PushResponse{}, s.clientError(ctx, PathPush, client.ID, err)
}

func (s *Server) push(ctx context.Context, client store.Client, p params) (PushResponse, error) {
	if p.has(ParamRequestURI) { // section 2.1
		return PushResponse{}, refuse(CodeInvalidRequest, "A pushed request cannot have a request_uri.")
	}
	a, err := addressed(client, p)
	if err != nil {
		return PushResponse{}, refuse(CodeInvalidRequest, "The redirect_uri is not registered for the client.").because(err)
	}
	if err := s.validate(client, p, &a); err != nil {
		return PushResponse{}, err
	}
	request, err := encodePushed(client, p)
	if err != nil {
		return PushResponse{}, err
	}
	uri := requestURIPrefix + newSecret()
	now := time.Now()
	err = s.store.CreatePushedRequest(ctx, store.PushedRequest{
		IDHash: hashSecret(uri), Issuer: s.options.Issuer, ClientID: client.ID, Request: request,
		CreatedAt: now, ExpiresAt: now.Add(PushedTTL),
	})
	if err != nil {
		return PushResponse{}, fmt.Errorf("store pushed request: %w", err)
	}
	s.audit(ctx, store.AuditRecord{
		Event: EventPushed, Actor: client.ID, Client: client.ID, Details: map[string]string{"resource": a.Resource},
	})
	return PushResponse{RequestURI: uri, ExpiresIn: int64(PushedTTL / time.Second)}, nil
}

// requestParameters are the parameters of an authorization request that mean something here. No credentials are among them.
func requestParameters() []string {
	return []string{
		"response_type", "response_mode", "redirect_uri", "state", "code_challenge", "code_challenge_method", "resource",
		"authorization_details", "scope", "prompt", "login_hint",
	}
}

// encodePushed keeps the parameters as text, which JSON holds whatever bytes they have.
func encodePushed(client store.Client, p params) (json.RawMessage, error) {
	values := url.Values{"client_id": {client.ID}}
	for _, name := range requestParameters() {
		if v := p.values[name]; len(v) > 0 {
			values[name] = v
		}
	}
	encoded, err := json.Marshal(values.Encode())
	if err != nil {
		return nil, fmt.Errorf("encode pushed request: %w", err)
	}
	return encoded, nil
}

func decodePushed(request json.RawMessage) (params, error) {
	var text string
	if err := json.Unmarshal(request, &text); err != nil {
		return params{}, fmt.Errorf("decode pushed request: %w", err)
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return params{}, fmt.Errorf("decode pushed request: %w", err)
	}
	return params{values: values}, nil
}

// isPushed says whether a request names a pushed one. Other request URIs are not supported.
func isPushed(p params) bool {
	return slices.ContainsFunc(p.values[ParamRequestURI], func(uri string) bool { return strings.HasPrefix(uri, requestURIPrefix) })
}

// authorizePushed goes on with a pushed request. Beside it only client_id may be there: what else came through the browser was not
// pushed, and whoever sent it has proven nothing. The request belongs to the browser that brings it first, and may come again from
// there until it is used up: people reload pages.
func (s *Server) authorizePushed(ctx context.Context, p params, browser Browser) (Step, error) {
	if len(p.repeated) > 0 || len(p.values) != 2 || !p.has("client_id") {
		return Step{}, ErrRequest
	}
	client, err := s.client(ctx, p.get("client_id"))
	if err != nil {
		return Step{}, err
	}
	hash := hashSecret(p.get(ParamRequestURI))
	stored, err := s.store.PushedRequest(ctx, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Step{}, ErrPushedRequest
	case err != nil:
		return Step{}, fmt.Errorf("read pushed request: %w", err)
	case stored.Issuer != s.options.Issuer || stored.ClientID != client.ID:
		return Step{}, ErrPushedRequest
	}
	if p, err = decodePushed(stored.Request); err != nil {
		return Step{}, err
	}
	if browser.Binding == "" {
		browser.Binding = newSecret()
	}
	switch err := s.store.BindPushedRequest(ctx, hash, hashSecret(browser.Binding)); {
	case errors.Is(err, store.ErrConsumed):
		return Step{}, ErrForeignBrowser
	case errors.Is(err, store.ErrNotFound):
		return Step{}, ErrPushedRequest
	case err != nil:
		return Step{}, fmt.Errorf("bind pushed request: %w", err)
	}
	step, err := s.authorizeNew(ctx, p, pending{client: client, browser: browser, pushedHash: hash})
	if err == nil && step.Browser == (Browser{}) {
		step.Browser = browser // which the request belongs to from now on, also when nothing is asked
	}
	return step, err
}
