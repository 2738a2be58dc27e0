package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// fill gives a store so many grants, each with a token and two refresh tokens, and as many entries in the revocation log.
func fill(tb testing.TB, s *Store, n int) {
	tb.Helper()
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) `
	for _, query := range []string{
		`INSERT INTO grants (` + grantColumns + `, sweep_at) ` + numbers + `SELECT 'g' || i, 'https://as', 'spa', 'u_' || (i / 10), 's' || (i / 10),
			'https://hub', '[]', i, 4000000000000, CASE WHEN i % 3 = 0 THEN i ELSE 0 END, 4000000000000 FROM n`,
		`INSERT INTO issued_tokens (` + tokenColumns + `) ` + numbers + `SELECT 't' || i, 'https://as', 'g' || i, 's' || (i / 10), 'u_' || (i / 10),
			'spa', i, 4000000000000, 0 FROM n`,
		`INSERT INTO refresh_tokens (` + refreshColumns + `) ` + numbers + `SELECT 'r' || i, 'https://as', 'spa', 'g' || (i / 2 + 1), '{}', 1,
			4000000000000, 0, '' FROM n`,
		`INSERT INTO revocations (seq, issuer, kind, value, issued_before, until) ` + numbers + `SELECT i, 'https://as', 'jti', 't' || i, seq, until
			FROM (SELECT i, i AS seq, 4000000000000 AS until FROM n)`,
	} {
		if _, err := s.db.ExecContext(tb.Context(), query, n); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkHot is what requests cost beside many grants. The time must not grow with their number.
func BenchmarkHot(b *testing.B) {
	for _, n := range []int{1_000, 200_000} {
		o := Options{Path: b.TempDir() + "/data/authz.db", Secret: make([]byte, 32), Migrate: true}
		s, err := open(b.Context(), o.withDefaults(), sqliteDialect{})
		if err != nil {
			b.Fatal(err)
		}
		fill(b, s, n)
		count := 0
		token := func() store.IssuedToken {
			count++
			return store.IssuedToken{
				ID: fmt.Sprintf("new%d", count), Issuer: "https://as", GrantID: "g1", SessionID: "s0", Subject: "u_0", ClientID: "spa",
				IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
			}
		}
		for _, hot := range []struct {
			name string
			call func() error
		}{
			{"RevocationsSince/nothing_new", func() error {
				_, err := s.RevocationsSince(b.Context(), int64(n), 1000)
				return err
			}},
			{"RefreshToken", func() error {
				_, err := s.RefreshToken(b.Context(), "r1")
				return err
			}},
			{"UseRefreshToken", func() error {
				return s.UseRefreshToken(b.Context(), "r1", time.Now(), time.Now().Add(time.Hour), token())
			}},
			{"EndSession", func() error {
				count++
				_, err := s.EndSession(b.Context(), "https://as", fmt.Sprintf("s%d", count), time.Now())
				return err
			}},
			{"ListGrants/account", func() error {
				_, err := s.ListGrants(b.Context(), store.GrantFilter{AccountID: "u_1", ClientID: "spa"})
				return err
			}},
			{"Sweep/nothing_ended", func() error {
				_, err := s.Sweep(b.Context(), time.Now(), 1000)
				return err
			}},
		} {
			b.Run(fmt.Sprintf("%s/grants=%d", hot.name, n), func(b *testing.B) {
				for b.Loop() {
					if err := hot.call(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
