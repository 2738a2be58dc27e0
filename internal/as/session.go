package as

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// session is what a grant carries from the authorization request to its tokens. fosite drops form parameters of its own
// accord when it stores a request, so everything a token needs is here. It is stored with the code and with each refresh token.
type session struct {
	Subject       string          `json:"sub"`
	Username      string          `json:"username,omitempty"`
	SessionID     string          `json:"sid,omitempty"`
	Resource      string          `json:"resource"`
	Scopes        []string        `json:"scopes,omitempty"`
	Granted       json.RawMessage `json:"granted"` // the ceiling of every token of the grant
	CodeExpiresAt time.Time       `json:"code_expires_at,omitzero"`
	// EndsAt is the end of the grant, which no token of it outlives. Zero: there is no grant.
	EndsAt time.Time `json:"ends_at,omitzero"`

	issuing issuing
}

// issuing is about the one token that is being issued. It is never stored, and hydrate leaves it alone: fosite hydrates the
// session again between computing a token and storing it.
type issuing struct {
	details   []rar.Detail // what the token says
	scopes    []string     // the scopes that stand for some of it
	tokenID   string
	issuedAt  time.Time
	expiresAt time.Time
	// refreshToken is handed out beside the token; empty: none is.
	refreshToken string
}

var _ fosite.Session = (*session)(nil)

// hydrate replaces what is stored with a grant, and nothing else.
func (s *session) hydrate(stored []byte) error {
	fresh := session{issuing: s.issuing}
	if err := json.Unmarshal(stored, &fresh); err != nil {
		return err
	}
	*s = fresh
	return nil
}

// encode is what hydrate reads.
func (s *session) encode() (json.RawMessage, error) {
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode session: %w", err)
	}
	return encoded, nil
}

// granted says whether a grant of somebody stands behind the session. Without one the client acts for itself.
func (s *session) granted() bool { return s.Granted != nil }

func (s *session) SetExpiresAt(key fosite.TokenType, at time.Time) {
	switch key {
	case fosite.AuthorizeCode:
		s.CodeExpiresAt = at
	case fosite.AccessToken:
		s.issuing.expiresAt = at
	default: // the end of a refresh token is in its record
	}
}

func (s *session) GetExpiresAt(key fosite.TokenType) time.Time {
	switch key {
	case fosite.AuthorizeCode:
		return s.CodeExpiresAt
	case fosite.AccessToken:
		return s.issuing.expiresAt
	default:
		return time.Time{}
	}
}

func (s *session) GetUsername() string { return s.Username }
func (s *session) GetSubject() string  { return s.Subject }

// Clone returns a deep copy.
func (s *session) Clone() fosite.Session {
	if s == nil {
		return nil
	}
	c := *s
	c.Scopes = append([]string(nil), s.Scopes...)
	c.Granted = append(json.RawMessage(nil), s.Granted...)
	c.issuing.details = append([]rar.Detail(nil), s.issuing.details...)
	c.issuing.scopes = append([]string(nil), s.issuing.scopes...)
	return &c
}
