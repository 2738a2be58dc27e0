package as

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/url"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/clientassertion"
)

// Basic is what an Authorization header of the Basic scheme holds, as it was sent: form-encoded (RFC 6749 section 2.3.1).
type Basic struct {
	User, Password string
}

// credentials is how a client presents itself, before anything of it is believed.
type credentials struct {
	clientID  string
	basic     bool
	secret    string
	assertion string
}

// readCredentials finds the one method a request uses. Two at once are refused (RFC 6749 section 2.3), and so is a client_id
// beside them that differs: authenticating as one client and acting as another is how mix-ups begin.
func readCredentials(p params, basic *Basic) (credentials, error) {
	c := credentials{clientID: p.get("client_id"), secret: p.get("client_secret"), assertion: p.get("client_assertion")}
	asserts := c.assertion != "" || p.has("client_assertion_type")
	methods := 0
	for _, used := range []bool{basic != nil, c.secret != "", asserts} {
		if used {
			methods++
		}
	}
	switch {
	case methods > 1:
		return credentials{}, refuse(CodeInvalidRequest, "Only one client authentication method may be used.")
	case basic != nil:
		id, err := url.QueryUnescape(basic.User)
		if err != nil {
			e := badClient().because(err)
			e.BasicChallenge = true
			return credentials{}, e
		}
		c.basic, c.secret = true, basic.Password
		return c.as(id)
	case asserts && (c.assertion == "" || p.get("client_assertion_type") != clientassertion.Type):
		return credentials{}, refuse(CodeInvalidRequest, "The client assertion type is not supported.")
	case asserts:
		return c.as(unverifiedSubject(c.assertion))
	default:
		return c, nil
	}
}

// as says which client the credentials themselves name; "" if they do not say.
func (c credentials) as(id string) (credentials, error) {
	if c.clientID != "" && id != "" && c.clientID != id {
		return credentials{}, clientMismatch()
	}
	if c.clientID == "" {
		c.clientID = id
	}
	return c, nil
}

// authenticate returns the client that sent a request to one of the endpoints for clients. Failures change nothing but the
// audit trail: golang.org/x/oauth2 tries one method, and on any error the next, with the same code.
func (s *Server) authenticate(ctx context.Context, p params, basic *Basic) (store.Client, error) {
	creds, err := readCredentials(p, basic)
	if err != nil {
		return store.Client{}, err
	}
	if creds.clientID == "" {
		return store.Client{}, s.clientRefused(ctx, creds, authError("no client named"))
	}
	client, err := s.client(ctx, creds.clientID)
	if errors.Is(err, ErrClient) {
		return store.Client{}, s.clientRefused(ctx, creds, err)
	}
	if err != nil {
		return store.Client{}, err
	}
	err = s.checkCredentials(ctx, client, creds)
	if failure, ok := errors.AsType[authError](err); ok {
		return store.Client{}, s.clientRefused(ctx, creds, failure)
	}
	return client, err
}

// authError says why a client could not be authenticated. It is for the audit trail; the client learns only that it was not.
type authError string

func (f authError) Error() string { return "as: " + string(f) }

func (s *Server) checkCredentials(ctx context.Context, client store.Client, creds credentials) error {
	switch client.AuthMethod {
	case AuthNone:
		// An empty password is how HTTP libraries that know nothing else present a public client.
		if creds.secret != "" || creds.assertion != "" {
			return authError("a public client has no credentials")
		}
		return nil
	case AuthPrivateKeyJWT:
		if creds.assertion == "" {
			return authError("no assertion")
		}
		return s.checkAssertion(ctx, client, creds.assertion)
	case AuthSecretBasic, AuthSecretPost:
		return checkSecret(client, creds)
	default:
		return authError("the client's authentication method is not supported")
	}
}

// checkSecret compares a client secret. A client uses the method it is registered with: a secret in a body ends up in more logs
// than one in a header, so which it may be is the operator's choice.
func checkSecret(client store.Client, creds credentials) error {
	switch {
	case creds.basic != (client.AuthMethod == AuthSecretBasic):
		return authError("another authentication method than the client's")
	case creds.secret == "":
		return authError("no secret")
	}
	right := sameSecret(client, creds.secret)
	// RFC 6749 section 2.3.1 has the password form-encoded before it is put into the header, which many clients do not do.
	if decoded, err := url.QueryUnescape(creds.secret); creds.basic && err == nil {
		right = sameSecret(client, decoded) || right
	}
	if !right {
		return authError("wrong secret")
	}
	return nil
}

// sameSecret compares in constant time; a client without a hash has no secret that matches.
func sameSecret(client store.Client, secret string) bool {
	return len(client.SecretHash) == sha256.Size && subtle.ConstantTimeCompare(client.SecretHash, HashClientSecret(secret)) == 1
}

// clientRefused records a failed authentication and returns what the client is told, which is always the same.
func (s *Server) clientRefused(ctx context.Context, creds credentials, reason error) error {
	id := creds.clientID
	if len(id) > 256 || !printable(id) {
		id = ""
	}
	s.audit(ctx, store.AuditRecord{
		Event: EventClientRefused, Client: id, Details: map[string]string{"reason": reason.Error()},
	})
	e := badClient().because(reason)
	e.BasicChallenge = creds.basic
	return e
}

// sameText compares secrets in constant time.
func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
