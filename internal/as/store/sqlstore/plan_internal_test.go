package sqlstore

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/storetest"
)

// recordingDialect notes every statement that a store runs.
type recordingDialect struct {
	sqliteDialect

	mu         *sync.Mutex // protects statements
	statements map[string]bool
}

func (d recordingDialect) bind(query string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.statements[query] = true
	return d.sqliteDialect.bind(query)
}

// scans are the statements that may read a whole table: they list all there is, or as many as they are asked for.
func scans() []string {
	return []string{
		"SELECT issuer FROM key_sets ORDER BY issuer", // a row for each issuer
		unfinishedClients, // a row for each client that was deleted lately
		"SELECT " + clientColumns + " FROM clients ORDER BY id",
		"SELECT " + accountColumns + " FROM accounts ORDER BY username",
		"SELECT " + grantColumns + " FROM grants ORDER BY created_at DESC, id",
		"SELECT " + auditColumns + " FROM audit ORDER BY seq DESC LIMIT ?",
	}
}

// TestStore runs the contract, and then checks that none of the statements it took is linear in the number of grants or tokens.
func TestStore(t *testing.T) {
	recorder := recordingDialect{mu: &sync.Mutex{}, statements: map[string]bool{}}
	t.Run("contract", func(t *testing.T) {
		storetest.Run(t, func(tb testing.TB, location string, now func() time.Time) store.Store {
			tb.Helper()
			o := Options{Path: filepath.Join(location, "as", "authz.db"), Secret: bytes.Repeat([]byte{7}, 32), Migrate: true, Now: now}
			s, err := open(tb.Context(), o.withDefaults(), recorder)
			if err != nil {
				tb.Fatal(err)
			}
			return s
		}, filepath.Join("as", "authz.db"))
	})
	s := mustOpen(t, testOptions(t), sqliteDialect{})
	for query := range recorder.statements {
		for _, step := range plan(t, s, query) {
			if scan := strings.HasPrefix(step, "SCAN ") && step != "SCAN CONSTANT ROW"; scan && !slices.Contains(scans(), query) {
				t.Errorf("%s: %s", step, query)
			}
			// Those of a client are very many.
			if strings.Contains(step, "grants_client_id") && strings.Contains(query, "account_id = ?") {
				t.Errorf("%s: %s", step, query)
			}
		}
	}
}

// plan returns the steps of a statement.
func plan(t *testing.T, s *Store, query string) []string {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+strings.ReplaceAll(query, "?", "0"))
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	defer func() { _ = rows.Close() }()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}
