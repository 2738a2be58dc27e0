package as

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

func TestSession(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stored, err := json.Marshal(&session{Subject: "u_1", Username: "ann", Resource: "r", Granted: json.RawMessage(`[]`), CodeExpiresAt: at, issuing: issuing{tokenID: "lost", expiresAt: at, refreshToken: "rt_lost"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("hydrating replaces what is stored and leaves the token's part", func(t *testing.T) {
		s := &session{Subject: "other", Scopes: []string{"x"}, issuing: issuing{tokenID: "jti", expiresAt: at.Add(time.Hour), details: []rar.Detail{{}}}}
		if err := s.hydrate(stored); err != nil {
			t.Fatal(err)
		}
		if s.Subject != "u_1" || s.Scopes != nil || s.issuing.tokenID != "jti" || !s.issuing.expiresAt.Equal(at.Add(time.Hour)) || len(s.issuing.details) != 1 || !s.CodeExpiresAt.Equal(at) {
			t.Errorf("session: %+v", s)
		}
	})
	t.Run("what belongs to one token is not stored", func(t *testing.T) {
		s := &session{}
		if err := s.hydrate(stored); err != nil || s.issuing.tokenID != "" || !s.issuing.expiresAt.IsZero() || strings.Contains(string(stored), "lost") {
			t.Errorf("session: %+v, %v", s, err)
		}
	})
	t.Run("a clone shares nothing", func(t *testing.T) {
		s := &session{Scopes: []string{"a"}, Granted: json.RawMessage(`[1]`)}
		c, ok := s.Clone().(*session)
		if !ok {
			t.Fatal("a clone of another type")
		}
		c.Scopes[0], c.Granted[1] = "b", '2'
		if s.Scopes[0] != "a" || string(s.Granted) != `[1]` {
			t.Errorf("session: %+v", s)
		}
		if diff := cmp.Diff(fosite.Session(nil), (*session)(nil).Clone()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("times by kind", func(t *testing.T) {
		s := &session{}
		s.SetExpiresAt(fosite.AuthorizeCode, at)
		s.SetExpiresAt(fosite.AccessToken, at.Add(1))
		s.SetExpiresAt(fosite.RefreshToken, at.Add(2))
		if !s.GetExpiresAt(fosite.AuthorizeCode).Equal(at) || !s.GetExpiresAt(fosite.AccessToken).Equal(at.Add(1)) || !s.GetExpiresAt(fosite.RefreshToken).IsZero() {
			t.Errorf("session: %+v", s)
		}
	})
}

func TestLifetime(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 200 {
		d := lifetime(10 * time.Minute)
		if d > 10*time.Minute || d < 9*time.Minute || d%time.Second != 0 {
			t.Fatalf("lifetime: %v", d)
		}
		seen[d] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d different lifetimes", len(seen))
	}
	if d := lifetime(2 * time.Second); d != 2*time.Second {
		t.Errorf("a short life: %v", d)
	}
}
