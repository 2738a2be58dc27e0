package as

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/handler/oauth2"
	"github.com/ory/fosite/token/hmac"
)

// codeTTL is how long a code may wait for its redemption (RFC 9700 section 2.1.1, at most a minute).
const codeTTL = time.Minute

// placeholderState goes to fosite in place of the client's state, which fosite demands, judges and returns even when it is
// absent. The client gets its own back, or none.
const placeholderState = "not-the-state-of-the-client"

// newProvider composes the grants. This is the only file that does.
func newProvider(s *Server, secret [32]byte) fosite.OAuth2Provider {
	config := &fosite.Config{
		GlobalSecret:                   secret[:], // fosite uses the first 32 bytes and no more
		AuthorizeCodeLifespan:          codeTTL,
		AccessTokenLifespan:            s.options.AccessTokenTTL,
		EnforcePKCE:                    true, // without it a confidential client's PKCE can be skipped
		EnablePKCEPlainChallengeMethod: false,
		AudienceMatchingStrategy:       fosite.ExactAudienceMatchingStrategy,
		ScopeStrategy:                  fosite.ExactScopeStrategy,
		RefreshTokenScopes:             []string{}, // no scope is needed for one; nil would mean offline_access
		OmitRedirectScopeParam:         true,
		SanitationWhiteList:            []string{"code", "redirect_uri"}, // without redirect_uri it is not compared at redemption
		ClientAuthenticationStrategy:   authenticatedClient,
		TokenURL:                       s.endpoint(PathToken),
	}
	codes := oauth2.NewHMACSHAStrategyUnPrefixed(&hmac.HMACStrategy{Config: config}, config)
	tokens := accessTokens{server: s}
	return compose.Compose(config, storage{server: s},
		strategy{accessTokens: tokens, RefreshTokenStrategy: refreshTokens{}, AuthorizeCodeStrategy: codes},
		compose.OAuth2AuthorizeExplicitFactory,
		compose.OAuth2PKCEFactory, // after the one above: it needs the code
		func(fosite.Configurator, any, any) any {
			return ownGrants{server: s, storage: storage{server: s}, tokens: tokens}
		},
		// Last, so that it sees the session as the others leave it.
		func(fosite.Configurator, any, any) any { return detailsHandler{server: s} },
	)
}

// strategy makes tokens: access and refresh tokens are ours, codes are fosite's random strings with an HMAC.
type strategy struct {
	accessTokens
	oauth2.RefreshTokenStrategy
	oauth2.AuthorizeCodeStrategy
}

type clientKey struct{}

// withClient puts the client that was authenticated into the context, where authenticatedClient finds it.
func withClient(ctx context.Context, c fositeClient) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// authenticatedClient is what fosite takes for client authentication.
func authenticatedClient(ctx context.Context, _ *http.Request, _ url.Values) (fosite.Client, error) {
	c, ok := ctx.Value(clientKey{}).(fositeClient)
	if !ok {
		return nil, fosite.ErrInvalidClient
	}
	return c, nil
}
