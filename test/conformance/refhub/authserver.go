package refhub

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// tokenLifetime is that of the authorization server's tokens.
const tokenLifetime = 10 * time.Minute

// authServer is an authorization server with one client and one grant type: client_credentials (RFC 6749 section 4.4)
// with authorization_details (RFC 9396) and resource (RFC 8707).
type authServer struct {
	hub    *Hub
	client AuthorizationServer
	issuer string
	origin string
	path   string // of the issuer, without a final slash
	key    *ecdsa.PrivateKey
}

const authServerKid = "as"

func newAuthServer(client AuthorizationServer, h *Hub) (*authServer, error) {
	u, err := url.Parse(client.Issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || client.ClientID == "" || client.ClientSecret == "" {
		return nil, fmt.Errorf("%w: authorization server %q", ErrOptions, client.Issuer)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("refhub: make a key: %w", err)
	}
	return &authServer{
		hub: h, client: client, issuer: client.Issuer, key: key,
		origin: u.Scheme + "://" + u.Host, path: strings.TrimSuffix(u.EscapedPath(), "/"),
	}, nil
}

// serve answers requests for the authorization server's paths.
func (a *authServer) serve(w http.ResponseWriter, r *http.Request, path string) bool {
	switch path {
	case "/.well-known/oauth-authorization-server" + a.path, a.path + "/.well-known/oauth-authorization-server":
		writeJSON(w, http.StatusOK, a.metadata())
	case a.path + "/jwks":
		writeJSON(w, http.StatusOK, a.keySet())
	case a.path + "/token":
		a.token(w, r)
	default:
		return false
	}
	return true
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(encode(v))
}

// metadata is the document of RFC 8414 (PRM-15).
func (a *authServer) metadata() map[string]any {
	doc := map[string]any{
		"issuer":                                a.issuer,
		"jwks_uri":                              a.origin + a.path + "/jwks",
		"token_endpoint":                        a.origin + a.path + "/token",
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		"grant_types_supported":                 []string{"client_credentials"},
		"response_types_supported":              []string{},
		"authorization_details_types_supported": []string{detailType},
	}
	switch {
	case a.hub.fault("server-issuer-with-slash"):
		doc["issuer"] = a.issuer + "/"
	case a.hub.fault("server-without-key-set"):
		delete(doc, "jwks_uri")
	case a.hub.fault("server-without-detail-type"):
		delete(doc, "authorization_details_types_supported")
	}
	return doc
}

// jwk is a public key of RFC 7517.
type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv,omitempty"`
	Alg string `json:"alg,omitempty"`
	Kid string `json:"kid,omitempty"`
	Use string `json:"use,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
}

func (a *authServer) keySet() map[string]any {
	point, err := a.key.PublicKey.Bytes() // 4, x, y
	if err != nil || len(point) != 65 {
		return map[string]any{"keys": []jwk{}}
	}
	return map[string]any{"keys": []jwk{{
		Kty: "EC", Crv: "P-256", Alg: "ES256", Kid: authServerKid, Use: "sig",
		X: base64.RawURLEncoding.EncodeToString(point[1:33]), Y: base64.RawURLEncoding.EncodeToString(point[33:]),
	}}}
}

// trusted gives the keys of the authorization server, found through its metadata (TOK-27). The server is in the same
// process, so the documents are asked of its handler.
func (a *authServer) trusted() []Key {
	var meta struct {
		Issuer string `json:"issuer"`
		KeySet string `json:"jwks_uri"`
	}
	if a.get("/.well-known/oauth-authorization-server"+a.path, &meta) != nil || meta.Issuer != a.issuer {
		return nil
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if a.get(strings.TrimPrefix(meta.KeySet, a.origin), &set) != nil {
		return nil
	}
	var keys []Key
	for _, raw := range set.Keys {
		if k, ok := keyOfJWK(raw, "ES256"); ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// keyOfJWK reads an elliptic-curve key.
func keyOfJWK(raw json.RawMessage, alg string) (Key, bool) {
	var k jwk
	if json.Unmarshal(raw, &k) != nil || k.Kty != "EC" || k.Crv != "P-256" {
		return Key{}, false
	}
	x, errX := base64.RawURLEncoding.DecodeString(k.X)
	y, errY := base64.RawURLEncoding.DecodeString(k.Y)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	if errX != nil || errY != nil || err != nil {
		return Key{}, false
	}
	return Key{Alg: alg, Kid: k.Kid, Verify: key}, true
}

// answer is a response that stays in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *authServer) get(path string, into any) error {
	got := &answer{header: http.Header{}}
	if !a.serve(got, nil, path) || got.status != http.StatusOK {
		return fmt.Errorf("refhub: %s answered %d", path, got.status)
	}
	return json.Unmarshal(got.body.Bytes(), into)
}

// token is the token endpoint.
func (a *authServer) token(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, code string) { writeJSON(w, status, map[string]string{"error": code}) }
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(http.StatusMethodNotAllowed, invalidRequest)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	id, secret, _ := r.BasicAuth()
	id, errID := url.QueryUnescape(id)
	secret, errSecret := url.QueryUnescape(secret)
	if errID != nil || errSecret != nil || id != a.client.ClientID || subtle.ConstantTimeCompare([]byte(secret), []byte(a.client.ClientSecret)) != 1 {
		w.Header().Set("WWW-Authenticate", `Basic realm="token"`)
		fail(http.StatusUnauthorized, "invalid_client")
		return
	}
	if err := r.ParseForm(); err != nil {
		fail(http.StatusBadRequest, invalidRequest)
		return
	}
	if r.PostForm.Get("grant_type") != "client_credentials" {
		fail(http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	if resource := r.PostForm["resource"]; len(resource) != 1 || resource[0] != a.hub.opts.Resource {
		fail(http.StatusBadRequest, "invalid_target")
		return
	}
	details := json.RawMessage(r.PostForm.Get("authorization_details"))
	if _, ok := a.hub.parseDetails(object{"authorization_details": details}); !ok {
		fail(http.StatusBadRequest, "invalid_authorization_details")
		return
	}
	token, err := a.issue(details)
	if err != nil {
		fail(http.StatusInternalServerError, "server_error")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLifetime.Seconds()), "authorization_details": details,
	})
}

// issue signs a token for the client.
func (a *authServer) issue(details json.RawMessage) (string, error) {
	now := time.Now()
	segment := func(v any) string { return base64.RawURLEncoding.EncodeToString(encode(v)) }
	input := segment(map[string]string{"typ": "at+jwt", "alg": "ES256", "kid": authServerKid}) + "." + segment(map[string]any{
		"iss": a.issuer, "aud": a.hub.opts.Resource, "sub": a.client.ClientID, "client_id": a.client.ClientID,
		"iat": now.Unix(), "exp": now.Add(tokenLifetime).Unix(), "jti": newID(), "authorization_details": details,
	})
	digest := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, a.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("refhub: sign: %w", err)
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return input + "." + base64.RawURLEncoding.EncodeToString(signature[:]), nil
}
