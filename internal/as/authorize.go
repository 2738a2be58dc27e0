package as

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

const (
	// challengeBytes is the length of a base64url SHA-256 (RFC 7636 section 4.2).
	challengeBytes = 43
	// maxStateBytes bounds what a client may have kept for it while somebody signs in.
	maxStateBytes = 4 << 10
	// maxHintBytes bounds what a client may prefill into the sign-in form.
	maxHintBytes = 128
	// maxGrantBytes bounds the canonical details of a grant: the tokens must fit into a header field.
	maxGrantBytes = 4 << 10
)

// authorization is a validated authorization request. Nothing else of the request is used after validation. It is stored
// with the interaction.
type authorization struct {
	ClientID string `json:"client_id"`
	// RedirectURI is where the answer goes, RegisteredURI what allows it. RedirectSent says that the request named it.
	RedirectURI   string `json:"redirect_uri"`
	RegisteredURI string `json:"registered_uri"`
	RedirectSent  bool   `json:"redirect_sent,omitempty"`
	// State is nil when there was none: a client that sent none must get none.
	State     *string `json:"state,omitempty"`
	Challenge string  `json:"code_challenge"`
	Resource  string  `json:"resource"`
	// Details is the canonical form of the details asked for, nil when none were.
	Details json.RawMessage `json:"authorization_details,omitempty"`
	// Scopes are the known scopes asked for.
	Scopes []string `json:"scopes,omitempty"`
	// The prompts (OpenID Connect Core 1.0 section 3.1.2.1).
	PromptNone    bool   `json:"-"` // never stored: it never waits for anybody
	PromptLogin   bool   `json:"prompt_login,omitempty"`
	PromptConsent bool   `json:"prompt_consent,omitempty"`
	LoginHint     string `json:"login_hint,omitempty"`
	// Consented is what the person agreed to, in canonical form; Denied says that they did not.
	Consented json.RawMessage `json:"consented,omitempty"`
	Denied    bool            `json:"denied,omitempty"`
}

// Authorize takes an authorization request, or an interaction on its way back from one of its steps, and says what comes
// next. An error is for a page, never for a redirect: ErrRequest, ErrClient, ErrRedirectURI, ErrInteraction,
// ErrForeignBrowser, ErrPushedRequest, or a failure of the server.
func (s *Server) Authorize(ctx context.Context, rawQuery string, browser Browser) (Step, error) {
	p, err := parseParams(rawQuery)
	if err != nil {
		return Step{}, ErrRequest
	}
	if p.has(ParamInteraction) {
		if len(p.values) != 1 {
			return Step{}, ErrRequest
		}
		return s.resume(ctx, p.get(ParamInteraction), browser)
	}
	if isPushed(p) {
		return s.authorizePushed(ctx, p, browser)
	}
	if p.isRepeated("client_id", "redirect_uri") {
		return Step{}, ErrRequest
	}
	client, err := s.client(ctx, p.get("client_id"))
	if err != nil {
		return Step{}, err
	}
	return s.authorizeNew(ctx, p, pending{client: client, browser: browser})
}

// authorizeNew judges the parameters of a request and decides what comes next.
func (s *Server) authorizeNew(ctx context.Context, params params, p pending) (Step, error) {
	var err error
	if p.request, err = addressed(p.client, params); err != nil {
		return Step{}, err
	}
	// From here on the client hears of its mistakes itself.
	if err := s.validate(p.client, params, &p.request); err != nil {
		return s.refused(ctx, p.request, err)
	}
	return s.dispatch(ctx, p)
}

// addressed reads where the answer to a request goes; ErrRedirectURI when it may not go there.
func addressed(client store.Client, p params) (authorization, error) {
	a := authorization{ClientID: client.ID, RedirectSent: p.has("redirect_uri")}
	var ok bool
	if a.RedirectURI, a.RegisteredURI, ok = matchRedirect(p.get("redirect_uri"), client.RedirectURIs); !ok {
		return authorization{}, ErrRedirectURI
	}
	if p.has("state") && !p.isRepeated("state") {
		state := p.get("state")
		a.State = &state
	}
	return a, nil
}

// validate reads the parameters that a client may get wrong.
func (s *Server) validate(client store.Client, p params, a *authorization) error {
	for _, check := range []func() error{
		func() error { return checkForm(p) },
		func() error { return checkChallenge(p, a) },
		func() error { return checkPrompt(p, a) },
		func() error {
			if !mayUse(client, GrantAuthorizationCode) {
				return refuse(CodeUnauthorizedClient, "The client may not use the authorization code grant.")
			}
			return nil
		},
		func() (err error) {
			a.Resource, err = s.target(p.values["resource"])
			return err
		},
		func() error { return s.checkDetails(client, p, a) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if hint := p.get("login_hint"); len(hint) <= maxHintBytes && utf8.ValidString(hint) {
		a.LoginHint = hint
	}
	return nil
}

// checkForm refuses what this server does not do, and what is ambiguous.
func checkForm(p params) error {
	switch {
	case p.has("request"):
		return refuse(CodeRequestNotSupported, "Request objects are not supported.")
	case p.has(ParamRequestURI):
		return refuse(CodeRequestURINotSupported, "A request_uri must be one that was pushed to this server.")
	case p.has("registration"):
		return refuse(CodeRegistrationUnsupported, "The registration parameter is not supported.")
	case len(p.repeated) > 0:
		return refuse(CodeInvalidRequest, "A parameter occurs more than once.")
	case len(p.get("state")) > maxStateBytes || !utf8.ValidString(p.get("state")): // what is kept is JSON, which holds nothing else
		return refuse(CodeInvalidRequest, "The state parameter is longer than "+strconv.Itoa(maxStateBytes)+" bytes, or not UTF-8.")
	case !p.has("response_type"):
		return refuse(CodeInvalidRequest, "The response_type parameter is missing.")
	case p.get("response_type") != "code":
		return refuse(CodeUnsupportedResponseType, "The response type must be code.")
	case p.has("response_mode") && p.get("response_mode") != "query":
		return refuse(CodeInvalidRequest, "The response mode must be query.")
	default:
		return nil
	}
}

// checkChallenge demands PKCE with S256 of every client (RFC 9700 section 2.1.1). A missing method would mean plain.
func checkChallenge(p params, a *authorization) error {
	a.Challenge = p.get("code_challenge")
	switch {
	case a.Challenge == "":
		return refuse(CodeInvalidRequest, "The code_challenge parameter is missing; PKCE is required.")
	case p.get("code_challenge_method") != "S256":
		return refuse(CodeInvalidRequest, "The code_challenge_method must be S256.")
	case !isBase64URL(a.Challenge, challengeBytes):
		return refuse(CodeInvalidRequest, "The code_challenge must be 43 base64url characters.")
	default:
		return nil
	}
}

func isBase64URL(s string, length int) bool {
	if len(s) != length {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// checkPrompt reads prompt. Values it does not know are ignored, as parameters would be.
func checkPrompt(p params, a *authorization) error {
	prompts := strings.Fields(p.get("prompt"))
	a.PromptNone = slices.Contains(prompts, "none")
	a.PromptLogin = slices.Contains(prompts, "login") || slices.Contains(prompts, "select_account")
	a.PromptConsent = slices.Contains(prompts, "consent")
	if a.PromptNone && len(prompts) > 1 {
		return refuse(CodeInvalidRequest, "The prompt none goes with no other.")
	}
	return nil
}

// target reads the resource indicator (RFC 8707). A token is for one resource: relative patterns would mean different things
// at two.
func (s *Server) target(indicators []string) (string, error) {
	wanted := slices.DeleteFunc(slices.Clone(indicators), func(r string) bool { return r == "" })
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	switch {
	case len(wanted) > 1:
		return "", refuse(CodeInvalidTarget, "Only one resource may be asked for.")
	case len(wanted) == 0 && len(s.resources) == 1:
		return s.resources[0].ID, nil
	case len(wanted) == 0:
		return "", badTarget()
	}
	if _, ok := s.resource(wanted[0]); !ok {
		return "", badTarget()
	}
	return wanted[0], nil
}

// checkDetails reads what is asked for, and refuses what the client may never have, whoever signs in.
func (s *Server) checkDetails(client store.Client, p params, a *authorization) error {
	hub, ok := s.resource(a.Resource)
	if !ok {
		return badTarget()
	}
	if !s.clientHasPolicy(client, hub) {
		return refuse(CodeAccessDenied, "Nothing may be granted to this client.")
	}
	asked, err := s.readWishes(p.get("authorization_details"), p.get("scope"), hub)
	if err != nil {
		return err
	}
	a.Scopes = asked.scopes
	if asked.details == nil {
		return nil
	}
	if !s.clientMayHave(client, hub, asked.details) {
		return excess()
	}
	a.Details = rar.Encode(asked.details)
	return nil
}

// answer builds the redirect that ends a request: the parameters, the client's own state, and iss (RFC 9207 section 2).
func (s *Server) answer(a authorization, add url.Values) Step {
	if a.State != nil {
		add.Set("state", *a.State)
	}
	add.Set("iss", s.options.Issuer)
	return Step{Kind: StepRedirect, Location: appendQuery(a.RedirectURI, add)}
}
