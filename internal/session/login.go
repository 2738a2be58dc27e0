package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

const (
	secretBytes     = 32 // of a state and of a verifier; 43 characters in base64url (RFC 7636 section 4.1)
	maxProfileBytes = 64
	// maxPreviousBytes bounds what a login cookie notes of the session it replaces: its identifiers together, and its refresh token,
	// each alone.
	maxPreviousBytes = 256
)

// login starts a sign-in: GET {hub}/session/login?return_to=&profile=. Everything the request could have
// wrong is answered before a cookie is set or the issuer is contacted.
func (b *broker) login(c echo.Context) error {
	private(c)
	r := c.Request()
	if problem := refuseNonNavigation(r); problem != nil {
		return problem
	}
	values, ok := one(r, "return_to", "profile")
	if !ok {
		return &httpserver.Problem{Status: http.StatusBadRequest, Detail: "A parameter is repeated."}
	}
	returnTo, err := b.returns.admit(values["return_to"])
	if err != nil {
		return &httpserver.Problem{
			Status: http.StatusBadRequest, Field: "return_to",
			Title: "Return address refused", Detail: "The return address cannot be used: " + err.Error() + ".",
			Hint: "Pass a path of this host, such as /app, or a URL at an origin listed in session.return_to_origins.",
		}
	}
	name := values["profile"]
	if name == "" {
		name = DefaultProfile
	}
	profile, ok := b.options.Profiles[name]
	if !ok {
		return &httpserver.Problem{
			Status: http.StatusBadRequest, Field: "profile",
			Title: "Unknown profile", Detail: "No profile of this name is configured.",
		}
	}
	if !b.logins.Allow(b.deps.ClientIP(r)) {
		c.Response().Header().Set("Retry-After", "10")
		return &httpserver.Problem{
			Status: http.StatusTooManyRequests,
			Title:  "Too many sign-ins", Detail: "Too many sign-ins were started from this address. Try again shortly.",
		}
	}
	state := b.newLogin(r, returnTo, name)
	location, err := b.authorizationURL(r.Context(), state, profile)
	if err != nil {
		b.logger(c).LogAttrs(r.Context(), slog.LevelError, "sign-in not started",
			slog.String("profile", name), slog.String("error", err.Error()))
		return redirect(c, withError(returnTo, outcomeOfStart(err)))
	}
	if err := b.cookies.setLogin(c.Response(), r, state); err != nil {
		return err
	}
	return redirect(c, location)
}

// refuseNonNavigation answers requests that no person sees: scripts, frames, and browsers that fetch a link
// before it is followed. Browsers that do not send Sec-Fetch headers pass.
func refuseNonNavigation(r *http.Request) *httpserver.Problem {
	h := r.Header
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		value := strings.ToLower(h.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "preview") {
			return &httpserver.Problem{Status: http.StatusForbidden, Title: "Not prefetched", Detail: "A sign-in is not started ahead of time."}
		}
	}
	mode, dest := h.Get("Sec-Fetch-Mode"), h.Get("Sec-Fetch-Dest")
	if mode != "" && mode != "navigate" || dest != "" && dest != "document" {
		return &httpserver.Problem{
			Status: http.StatusForbidden,
			Title:  "Not a navigation", Detail: "A sign-in starts by opening this address in the window itself, not in a frame or from a script.",
			Hint: "Use a link, or location.assign().",
		}
	}
	return nil
}

// newLogin makes the state of a sign-in.
func (b *broker) newLogin(r *http.Request, returnTo, profile string) *loginState {
	s := &loginState{
		State:    secret(),
		Verifier: secret(),
		ReturnTo: returnTo,
		Issuer:   b.issuer.id,
		Profile:  profile,
		Started:  time.Now().UnixMilli(),
	}
	if previous, ok := b.session(r); ok {
		size := len(previous.SessionID)
		for _, id := range previous.TokenIDs {
			size += len(id)
		}
		if size <= maxPreviousBytes {
			s.PreviousSession, s.PreviousTokens = previous.SessionID, previous.TokenIDs
		}
		if len(previous.Refresh) <= maxPreviousBytes {
			s.PreviousRefresh = previous.Refresh
		}
	}
	return s
}

// secret makes a string that cannot be guessed.
func secret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// authorizationURL gives the address at the authorization server that the browser goes to. The request itself is left there
// beforehand (RFC 9126), so that the address says nothing about it and nobody can change it on the way; a server without
// that endpoint gets it in the address (RFC 6749 section 4.1.1).
func (b *broker) authorizationURL(ctx context.Context, s *loginState, p Profile) (string, error) {
	m, err := b.issuer.metadata(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnavailable, err)
	}
	endpoint, err := url.Parse(m.AuthorizationEndpoint)
	if err != nil {
		return "", fmt.Errorf("authorization endpoint: %w", err)
	}
	request := b.authorizationRequest(s, p)
	if m.PushEndpoint != "" {
		uri, err := b.push(ctx, m.PushEndpoint, request)
		if err != nil {
			return "", err
		}
		request = url.Values{"client_id": {b.options.ClientID}, "request_uri": {uri}}
	}
	// The endpoint may have a query of its own, which must be kept (RFC 6749 section 3.1).
	query := endpoint.Query()
	maps.Copy(query, request)
	endpoint.RawQuery = query.Encode()
	return endpoint.String(), nil
}

func (b *broker) authorizationRequest(s *loginState, p Profile) url.Values {
	challenge := sha256.Sum256([]byte(s.Verifier))
	request := url.Values{
		"response_type":         {"code"},
		"client_id":             {b.options.ClientID},
		"redirect_uri":          {b.redirectURI},
		"state":                 {s.State},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
		"resource":              {b.options.Resource},
	}
	if p.Scope != "" {
		request.Set("scope", p.Scope)
	}
	if len(p.AuthorizationDetails) > 0 {
		request.Set("authorization_details", string(p.AuthorizationDetails))
	}
	return request
}

// outcomeOfStart gives the value of session_error for a sign-in that could not start.
func outcomeOfStart(err error) string {
	refused, ok := errors.AsType[*oauthError](err)
	switch {
	case errors.Is(err, errUnavailable):
		return ErrorUnavailable
	case ok:
		return outcomeOf(refused.code)
	}
	return ErrorFailed
}
