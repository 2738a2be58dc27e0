package as

import (
	"encoding/json"
	"time"

	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// session is what a grant carries from the authorization request to its tokens. fosite drops form parameters of its own
// accord when it stores a request, so everything a token needs is here.
//
// The unexported fields belong to the one token that is being issued. They are never stored, and hydrate leaves them
// alone: fosite hydrates the session again between computing a token and storing it.
type session struct {
	Subject       string          `json:"sub"`
	Username      string          `json:"username,omitempty"`
	SessionID     string          `json:"sid,omitempty"`
	Resource      string          `json:"resource"`
	Scopes        []string        `json:"scopes,omitempty"`
	Granted       json.RawMessage `json:"granted"` // the ceiling of every token of the grant
	CodeExpiresAt time.Time       `json:"code_expires_at,omitzero"`

	effective []rar.Detail // of this token
	tokenID   string
	issuedAt  time.Time
	expiresAt time.Time
}

var _ fosite.Session = (*session)(nil)

// hydrate replaces what is stored with a grant, and nothing else.
func (s *session) hydrate(stored []byte) error {
	fresh := session{effective: s.effective, tokenID: s.tokenID, issuedAt: s.issuedAt, expiresAt: s.expiresAt}
	if err := json.Unmarshal(stored, &fresh); err != nil {
		return err
	}
	*s = fresh
	return nil
}

func (s *session) SetExpiresAt(key fosite.TokenType, at time.Time) {
	switch key {
	case fosite.AuthorizeCode:
		s.CodeExpiresAt = at
	case fosite.AccessToken:
		s.expiresAt = at
	default: // no other kind of token is made
	}
}

func (s *session) GetExpiresAt(key fosite.TokenType) time.Time {
	switch key {
	case fosite.AuthorizeCode:
		return s.CodeExpiresAt
	case fosite.AccessToken:
		return s.expiresAt
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
	c.effective = append([]rar.Detail(nil), s.effective...)
	return &c
}
