package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jwt"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// assertionLifetime is short: an assertion is made for one request.
	assertionLifetime = time.Minute
)

var (
	// errUnavailable marks failures that may pass: the issuer cannot be reached or says so.
	errUnavailable = errors.New("session: authorization server unavailable")
	// errRefused marks answers that will not get better by asking again.
	errRefused = errors.New("session: authorization server refused")
)

// asserter proves who the broker is (private_key_jwt). It is safe for concurrent use.
type asserter struct {
	clientID, audience string
	key                jwk.Key
	algorithm          jwa.SignatureAlgorithm
}

func newAsserter(clientID, issuerID string, private json.RawMessage) (*asserter, error) {
	key, err := jwk.ParseKey(private)
	if err != nil {
		// The parser's text quotes its input, which is a private key.
		return nil, errors.New("session: client key is not a JWK")
	}
	if secret, err := jwk.IsPrivateKey(key); err != nil || !secret {
		return nil, errors.New("session: client key is not a private key")
	}
	alg, err := signatureAlgorithm(key)
	if err != nil {
		return nil, err
	}
	a := &asserter{clientID: clientID, audience: issuerID, key: key, algorithm: alg}
	if _, err := a.sign(time.Unix(0, 0)); err != nil {
		return nil, err
	}
	return a, nil
}

// signatureAlgorithm is the key's own alg, or the usual one of its type.
func signatureAlgorithm(key jwk.Key) (jwa.SignatureAlgorithm, error) {
	if name := key.Algorithm().String(); name != "" {
		var alg jwa.SignatureAlgorithm
		if err := alg.Accept(name); err != nil {
			return "", errors.New("session: client key has an alg that signs nothing")
		}
		return alg, nil
	}
	switch k := key.(type) {
	case jwk.ECDSAPrivateKey:
		curves := map[jwa.EllipticCurveAlgorithm]jwa.SignatureAlgorithm{jwa.P256: jwa.ES256, jwa.P384: jwa.ES384, jwa.P521: jwa.ES512}
		if alg, ok := curves[k.Crv()]; ok {
			return alg, nil
		}
	case jwk.OKPPrivateKey:
		if k.Crv() == jwa.Ed25519 {
			return jwa.EdDSA, nil
		}
	case jwk.RSAPrivateKey:
		return jwa.PS256, nil
	}
	return "", errors.New("session: client key is of a type that cannot sign")
}

// sign makes an assertion for one request (RFC 7523 section 3). Its audience is the issuer, which no other
// server accepts, unlike an endpoint's address.
func (a *asserter) sign(now time.Time) (string, error) {
	t, err := jwt.NewBuilder().
		Issuer(a.clientID).Subject(a.clientID).Audience([]string{a.audience}).
		JwtID(uuid.NewString()).IssuedAt(now).Expiration(now.Add(assertionLifetime)).
		Build()
	if err != nil {
		return "", fmt.Errorf("build client assertion: %w", err)
	}
	t.Options().Enable(jwt.FlattenAudience)
	compact, err := jwt.Sign(t, jwt.WithKey(a.algorithm, a.key))
	if err != nil {
		return "", fmt.Errorf("sign client assertion: %w", err)
	}
	return string(compact), nil
}

// oauthError is an error answer of the token endpoint (RFC 6749 section 5.2).
type oauthError struct {
	status int
	code   string
}

// Error names the code only: the description is the other side's free text.
func (e *oauthError) Error() string {
	return fmt.Sprintf("token endpoint answered %d %s", e.status, e.code)
}

// Unwrap sorts the error into those that may pass and those that will not.
func (e *oauthError) Unwrap() error {
	if e.status >= http.StatusInternalServerError || e.status == http.StatusTooManyRequests || e.code == "temporarily_unavailable" {
		return errUnavailable
	}
	return errRefused
}

// exchange redeems a code (RFC 6749 section 4.1.3) and returns the access token in compact form. Its errors
// are errUnavailable or errRefused and contain no secret.
func (b *broker) exchange(ctx context.Context, login *loginState, code string) (string, error) {
	m, err := b.issuer.metadata(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnavailable, err)
	}
	assertion, err := b.asserter.sign(time.Now())
	if err != nil {
		return "", err
	}
	form := url.Values{
		"grant_type":            {"authorization_code"},
		"code":                  {code},
		"redirect_uri":          {b.redirectURI},
		"code_verifier":         {login.Verifier},
		"client_id":             {b.options.ClientID},
		"client_assertion_type": {assertionType},
		"client_assertion":      {assertion},
		"resource":              {b.options.Resource},
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("make token request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	status, body, err := b.issuer.do(req)
	if err != nil {
		return "", fmt.Errorf("token request: %w", err)
	}
	return readTokenResponse(status, body)
}

// readTokenResponse reads the members of a token response that this version uses (RFC 6749 section 5.1).
func readTokenResponse(status int, body []byte) (string, error) {
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		Error       string `json:"error"`
	}
	err := json.Unmarshal(body, &answer)
	if status != http.StatusOK {
		return "", &oauthError{status: status, code: errorToken(answer.Error)}
	}
	if err != nil {
		// The decoder's text may quote the body, which holds a token.
		return "", fmt.Errorf("%w: token response is not JSON", errRefused)
	}
	if !strings.EqualFold(answer.TokenType, "Bearer") || answer.AccessToken == "" {
		return "", fmt.Errorf("%w: token response holds no bearer token", errRefused)
	}
	return answer.AccessToken, nil
}

// errorToken makes an error code of the other side fit for a log line.
func errorToken(code string) string {
	const limit = 64
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '_' {
			return r
		}
		return -1
	}, code)
	if clean == "" || len(code) > limit {
		return "unnamed_error"
	}
	return clean
}
