package sqlstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// manyGrants opens a store with a client that has more grants than are marked in one transaction.
func manyGrants(t *testing.T) *Store {
	t.Helper()
	s := mustOpen(t, testOptions(t), sqliteDialect{})
	fill(t, s, 3*sweepBatch)
	if err := s.PutClient(t.Context(), store.Client{ID: "spa"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// unmarked is how many grants of the client are in force by themselves.
func unmarked(t *testing.T, s *Store) int {
	t.Helper()
	var n int
	if err := s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM grants WHERE client_id = 'spa' AND revoked_at = 0").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func record(t *testing.T, s *Store, grant string) error {
	t.Helper()
	return s.RecordToken(t.Context(), store.IssuedToken{
		ID: "new of " + grant, Issuer: "https://as", GrantID: grant, IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	})
}

func TestEndClient_manyGrants(t *testing.T) {
	for name, end := range map[string]func(s *Store) error{
		"deleted":  func(s *Store) error { return s.DeleteClient(t.Context(), "spa", time.Now()) },
		"disabled": func(s *Store) error { return s.PutClient(t.Context(), store.Client{ID: "spa", Disabled: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := manyGrants(t)
			if unmarked(t, s) <= sweepBatch {
				t.Fatal("the test has too few grants")
			}
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			if n := unmarked(t, s); n != 0 {
				t.Errorf("%d grants are not marked", n)
			}
		})
	}
}

// interrupt leaves the store as a process does that is killed right after it acknowledged the end of the client.
func interrupt(t *testing.T, s *Store) {
	t.Helper()
	err := s.write(t.Context(), "delete client", func(q querier) error {
		if _, err := q.exec(t.Context(), "DELETE FROM clients WHERE id = 'spa'"); err != nil {
			return err
		}
		return s.endClient(t.Context(), q, "spa", time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	if unmarked(t, s) == 0 {
		t.Fatal("nothing was left to do")
	}
}

func TestEndClient_interrupted(t *testing.T) {
	last := fmt.Sprintf("g%d", 3*sweepBatch-1)
	t.Run("nothing is issued under grants that are not marked", func(t *testing.T) {
		s := manyGrants(t)
		interrupt(t, s)
		if err := record(t, s, last); !errors.Is(err, store.ErrRevoked) {
			t.Errorf("RecordToken = %v, want store.ErrRevoked", err)
		}
	})
	t.Run("a new client of the same id inherits none", func(t *testing.T) {
		s := manyGrants(t)
		interrupt(t, s)
		if err := s.PutClient(t.Context(), store.Client{ID: "spa"}); err != nil {
			t.Fatal(err)
		}
		if n := unmarked(t, s); n != 0 {
			t.Errorf("%d grants are in force", n)
		}
		if err := record(t, s, last); !errors.Is(err, store.ErrRevoked) {
			t.Errorf("RecordToken = %v, want store.ErrRevoked", err)
		}
		if err := s.CreateGrant(t.Context(), store.Grant{ID: "new", Issuer: "https://as", ClientID: "spa"}, nil); err != nil {
			t.Errorf("CreateGrant = %v", err)
		}
	})
	t.Run("Sweep does the rest", func(t *testing.T) {
		s := manyGrants(t)
		interrupt(t, s)
		if _, err := s.Sweep(t.Context(), time.Now(), 10); err != nil {
			t.Fatal(err)
		}
		if n := unmarked(t, s); n != 0 {
			t.Errorf("%d grants are in force", n)
		}
	})
}
