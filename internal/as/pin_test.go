package as_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/storage"
	"github.com/ory/fosite/token/hmac"
)

// The tests in this file pin what fosite v0.49.0 does in the corners that this package is built around. One that fails with a
// later release says which precaution may have become needless, or insufficient.

const pinChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

type pinned struct {
	store *storage.MemoryStore
	p     fosite.OAuth2Provider
}

func pin(t *testing.T, change func(*fosite.Config)) pinned {
	t.Helper()
	config := &fosite.Config{GlobalSecret: make([]byte, 32), EnforcePKCE: true, ScopeStrategy: fosite.ExactScopeStrategy}
	if change != nil {
		change(config)
	}
	st := storage.NewMemoryStore()
	st.Clients["public"] = &fosite.DefaultClient{
		ID: "public", Public: true, RedirectURIs: []string{"https://app.example/cb"}, GrantTypes: []string{"authorization_code"},
	}
	st.Clients["confidential"] = &fosite.DefaultClient{
		ID: "confidential", RedirectURIs: []string{"https://app.example/cb"}, GrantTypes: []string{"authorization_code"},
	}
	config.ClientAuthenticationStrategy = func(_ context.Context, _ *http.Request, form url.Values) (fosite.Client, error) {
		return st.Clients[form.Get("client_id")], nil
	}
	p := compose.Compose(config, st, compose.NewOAuth2HMACStrategy(config),
		compose.OAuth2AuthorizeExplicitFactory, compose.OAuth2PKCEFactory)
	return pinned{store: st, p: p}
}

func (l pinned) query(client string) url.Values {
	return url.Values{
		"client_id": {client}, "response_type": {"code"}, "redirect_uri": {"https://app.example/cb"}, "state": {"12345678"},
		"code_challenge": {pinChallenge}, "code_challenge_method": {"S256"},
	}
}

func (l pinned) authorize(q url.Values) (fosite.AuthorizeRequester, error) {
	return l.p.NewAuthorizeRequest(context.Background(), httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/authorize?"+q.Encode(), http.NoBody))
}

func (l pinned) code(t *testing.T, client string) (string, url.Values) {
	t.Helper()
	ar, err := l.authorize(l.query(client))
	if err != nil {
		t.Fatal(err)
	}
	response, err := l.p.NewAuthorizeResponse(context.Background(), ar, &fosite.DefaultSession{})
	if err != nil {
		t.Fatal(err)
	}
	return response.GetCode(), response.GetParameters()
}

func (l pinned) redeem(client, code, verifier string) error {
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {"https://app.example/cb"}}
	if verifier != "" {
		form.Set("code_verifier", verifier)
	}
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ar, err := l.p.NewAccessRequest(context.Background(), r, &fosite.DefaultSession{})
	if err != nil {
		return err
	}
	_, err = l.p.NewAccessResponse(context.Background(), ar)
	return err
}

func TestPin_stateIsDemandedAndAlwaysReturned(t *testing.T) {
	l := pin(t, nil)
	q := l.query("public")
	q.Del("state")
	_, err := l.authorize(q)
	if got := fosite.ErrorToRFC6749Error(err).ErrorField; got != "invalid_state" {
		t.Errorf("no state: %q", got)
	}
	if _, parameters := l.code(t, "public"); !parameters.Has("state") {
		t.Error("state is no longer returned by itself")
	}
}

func TestPin_duplicateParametersPass(t *testing.T) {
	l := pin(t, nil)
	q := l.query("public")
	q.Add("state", "another-state")
	if _, err := l.authorize(q); err != nil {
		t.Errorf("fosite refuses duplicates now: %v", err)
	}
}

func TestPin_responseModeNeedsAClientThatHasIt(t *testing.T) {
	l := pin(t, nil)
	q := l.query("public")
	q.Set("response_mode", "query")
	if _, err := l.authorize(q); !errors.Is(err, fosite.ErrUnsupportedResponseMode) {
		t.Errorf("got %v", err)
	}
}

func TestPin_loopbackIgnoresTheRegisteredScheme(t *testing.T) {
	c := &fosite.DefaultClient{RedirectURIs: []string{"https://127.0.0.1/cb"}}
	if _, err := fosite.MatchRedirectURIWithClientRedirectURIs("http://user:pw@127.0.0.1:5000/cb", c); err != nil {
		t.Errorf("fosite compares scheme and user now: %v", err)
	}
	c = &fosite.DefaultClient{RedirectURIs: []string{"http://localhost/cb"}}
	if _, err := fosite.MatchRedirectURIWithClientRedirectURIs("http://localhost:5000/cb", c); err == nil {
		t.Error("fosite knows localhost now")
	}
}

func TestPin_challengeSyntaxIsNotChecked(t *testing.T) {
	l := pin(t, nil)
	q := l.query("public")
	q.Set("code_challenge", "x")
	ar, err := l.authorize(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.p.NewAuthorizeResponse(context.Background(), ar, &fosite.DefaultSession{}); err != nil {
		t.Errorf("fosite checks it now: %v", err)
	}
}

func TestPin_aWrongVerifierDeletesTheChallenge(t *testing.T) {
	l := pin(t, func(c *fosite.Config) { c.EnforcePKCE = false })
	code, _ := l.code(t, "confidential")
	if err := l.redeem("confidential", code, strings.Repeat("x", 43)); !errors.Is(err, fosite.ErrInvalidGrant) {
		t.Errorf("a wrong verifier: %v", err)
	}
	if err := l.redeem("confidential", code, ""); err != nil {
		t.Errorf("without EnforcePKCE the second try needs no verifier; now it does: %v", err)
	}
}

func TestPin_unknownGrantTypeIsAnInvalidRequestWithoutRequester(t *testing.T) {
	l := pin(t, nil)
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/token", strings.NewReader("grant_type=fly&client_id=public"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ar, err := l.p.NewAccessRequest(context.Background(), r, &fosite.DefaultSession{})
	if ar != nil || !errors.Is(err, fosite.ErrInvalidRequest) {
		t.Errorf("got %v, %v", ar, err)
	}
}

// lostRace is a store where somebody else redeems the code first.
type lostRace struct{ *storage.MemoryStore }

func (lostRace) InvalidateAuthorizeCodeSession(context.Context, string) error {
	return fosite.ErrInvalidatedAuthorizeCode
}

func TestPin_aLostRaceIsAServerErrorWithItsCause(t *testing.T) {
	l := pin(t, nil)
	config := &fosite.Config{GlobalSecret: make([]byte, 32)}
	config.ClientAuthenticationStrategy = func(context.Context, *http.Request, url.Values) (fosite.Client, error) {
		return l.store.Clients["public"], nil
	}
	l.p = compose.Compose(config, lostRace{l.store}, compose.NewOAuth2HMACStrategy(config), compose.OAuth2AuthorizeExplicitFactory)
	code, _ := l.code(t, "public")
	err := l.redeem("public", code, "")
	if got := fosite.ErrorToRFC6749Error(err).ErrorField; got != "server_error" {
		t.Errorf("code: %q", got)
	}
	if !errors.Is(err, fosite.ErrInvalidatedAuthorizeCode) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// refreshing is a fosite with its own handler of refresh tokens, and the first one of a client that may use them.
func refreshing(t *testing.T, change func(*fosite.Config)) (l pinned, first string) {
	t.Helper()
	config := &fosite.Config{GlobalSecret: make([]byte, 32), RefreshTokenScopes: []string{}, ScopeStrategy: fosite.ExactScopeStrategy}
	if change != nil {
		change(config)
	}
	st := storage.NewMemoryStore()
	st.Clients["public"] = &fosite.DefaultClient{
		ID: "public", Public: true, RedirectURIs: []string{"https://app.example/cb"}, GrantTypes: []string{"authorization_code", "refresh_token"},
		Scopes: []string{"a", "b"},
	}
	config.ClientAuthenticationStrategy = func(context.Context, *http.Request, url.Values) (fosite.Client, error) {
		return st.Clients["public"], nil
	}
	l = pinned{store: st, p: compose.Compose(config, st, compose.NewOAuth2HMACStrategy(config),
		compose.OAuth2AuthorizeExplicitFactory, compose.OAuth2RefreshTokenGrantFactory)}
	q := l.query("public")
	q.Set("scope", "a b")
	ar, err := l.authorize(q)
	if err != nil {
		t.Fatal(err)
	}
	ar.GrantScope("a")
	ar.GrantScope("b")
	response, err := l.p.NewAuthorizeResponse(context.Background(), ar, &fosite.DefaultSession{})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := l.exchange(url.Values{"grant_type": {"authorization_code"}, "code": {response.GetCode()}, "redirect_uri": {"https://app.example/cb"}})
	if err != nil {
		t.Fatal(err)
	}
	first, _ = answer.GetExtra("refresh_token").(string)
	return l, first
}

func (l pinned) exchange(form url.Values) (fosite.AccessResponder, error) {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ar, err := l.p.NewAccessRequest(context.Background(), r, &fosite.DefaultSession{})
	if err != nil {
		return nil, err
	}
	return l.p.NewAccessResponse(context.Background(), ar)
}

func TestPin_aCodeGivesARefreshTokenToClientsThatMayUseThem(t *testing.T) {
	if _, first := refreshing(t, nil); first == "" {
		t.Error("no refresh token without a scope")
	}
	if _, first := refreshing(t, func(c *fosite.Config) { c.RefreshTokenScopes = nil }); first != "" {
		t.Error("nil scopes no longer mean offline_access")
	}
}

func TestPin_itsOwnRefreshRotatesForEverybodyAndKnowsNoGrace(t *testing.T) {
	l, first := refreshing(t, nil)
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first}, "scope": {"a"}}
	answer, err := l.exchange(form)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := answer.GetExtra("refresh_token").(string)
	if second == first {
		t.Error("it does not rotate any more")
	}
	if scopes := answer.ToMap()["scope"]; scopes != "a b" {
		t.Errorf("it narrows scopes now: %v", scopes)
	}
	if _, err := l.exchange(form); !errors.Is(err, fosite.ErrInvalidGrant) {
		t.Errorf("a repeat at once: %v", err)
	}
	if _, err := l.exchange(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {second}}); err == nil {
		t.Error("a repeat at once no longer costs the family")
	}
}

// countingHandler counts what is asked of it.
type countingHandler struct {
	log  *[]string
	name string
}

func (countingHandler) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

func (countingHandler) CanHandleTokenEndpointRequest(context.Context, fosite.AccessRequester) bool {
	return true
}

func (h countingHandler) HandleTokenEndpointRequest(context.Context, fosite.AccessRequester) error {
	*h.log = append(*h.log, "handle "+h.name)
	return nil
}

func (h countingHandler) PopulateTokenEndpointResponse(_ context.Context, _ fosite.AccessRequester, r fosite.AccessResponder) error {
	*h.log = append(*h.log, "populate "+h.name)
	r.SetAccessToken("x")
	r.SetTokenType("x")
	return nil
}

// lastHandler is a countingHandler of another type.
type lastHandler struct{ countingHandler }

func TestPin_allHandlersHandleBeforeAnyPopulatesAndASecondOfOneTypeIsDropped(t *testing.T) {
	var log []string
	config := &fosite.Config{ClientAuthenticationStrategy: func(context.Context, *http.Request, url.Values) (fosite.Client, error) {
		return &fosite.DefaultClient{ID: "public"}, nil
	}}
	handler := func(h any) compose.Factory { return func(fosite.Configurator, any, any) any { return h } }
	l := pinned{p: compose.Compose(config, storage.NewMemoryStore(), nil,
		handler(countingHandler{&log, "first"}), handler(countingHandler{&log, "second"}), handler(lastHandler{countingHandler{&log, "last"}}))}
	if _, err := l.exchange(url.Values{"grant_type": {"x"}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(log, ", "); got != "handle first, handle last, populate first, populate last" {
		t.Errorf("got %s", got)
	}
}

func TestPin_onlyTheFirst32BytesOfASecretCount(t *testing.T) {
	long := append(make([]byte, 32), 'x')
	code, _, err := (&hmac.HMACStrategy{Config: &fosite.Config{GlobalSecret: long}}).Generate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := (&hmac.HMACStrategy{Config: &fosite.Config{GlobalSecret: make([]byte, 32)}}).Validate(context.Background(), code); err != nil {
		t.Errorf("longer secrets count now: %v", err)
	}
}

func TestPin_audiencesMatchByPrefixUnlessToldOtherwise(t *testing.T) {
	const hub = "https://hub.example/.well-known/mercure"
	if fosite.DefaultAudienceMatchingStrategy([]string{hub}, []string{hub + "/evil?x#y"}) != nil {
		t.Error("the default has become strict")
	}
	if fosite.ExactAudienceMatchingStrategy([]string{hub}, []string{hub + "/evil"}) == nil {
		t.Error("the exact strategy is not exact")
	}
}
