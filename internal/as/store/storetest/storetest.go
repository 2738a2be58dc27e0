package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// Opener opens the store in a location, which is an empty folder at first; opening a location again, also while it is open, gives the same
// database. now is the store's clock. Run closes what was opened.
type Opener func(tb testing.TB, location string, now func() time.Time) store.Store

// Run checks a store. file is where in a location the database is: a copy that Backup made, put there in an empty location, is to be a
// database like the first. The parts run in parallel, each in a location of its own.
func Run(t *testing.T, open Opener, file string) {
	t.Helper()
	if location := os.Getenv(childVariable); location != "" {
		runChild(t, open, location)
		return
	}
	for _, part := range []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"clients", testClients},
		{"version", testVersion},
		{"assertions", testAssertions},
		{"accounts", testAccounts},
		{"browser sessions", testBrowserSessions},
		{"interactions", testInteractions},
		{"grants", testGrants},
		{"codes", testCodes},
		{"tokens", testTokens},
		{"revoked grants", testRevokedGrants},
		{"keys", testKeys},
		{"revocation log", testRevocations},
		{"refresh tokens", testRefreshTokens},
		{"refresh tokens: rotation", testRotation},
		{"pushed requests", testPushedRequests},
		{"sign-out: a session", testEndSession},
		{"sign-out: everywhere", testSignOutEverywhere},
		{"revoked clients", testRevokedClients},
		{"requests under way during a revocation", testUnderWay},
		{"audit trail", testAudit},
		{"sweep", testSweep},
		{"sweep: what has to stay", testSweepKeeps},
		{"backup", testBackup},
		{"invalid records", testInvalid},
		{"copies", testCopies},
		{"odd strings", testOddStrings},
		{"ended context", testContext},
		{"reopen", testReopen},
		{"closed", testClosed},
		{"concurrency: redemption", testParallelRedemption},
		{"concurrency: one-time records", testParallelOnce},
		{"concurrency: compare and set", testParallelCompareAndSet},
		{"concurrency: revocation log", testParallelRevocations},
		{"concurrency: revocation and issue", testRevocationRace},
		{"concurrency: refresh", testParallelRefresh},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, newFixture(t, open, file))
		})
	}
	t.Run("concurrency: two processes", func(t *testing.T) {
		t.Parallel()
		testProcesses(t, open, t.TempDir())
	})
	t.Run("acknowledged writes survive kill -9", func(t *testing.T) {
		t.Parallel()
		testCrash(t, open, file, t.TempDir())
	})
}

// fixture is one store and its clock.
type fixture struct {
	store.Store
	open     Opener
	file     string
	location string
	clock    *clock
}

func newFixture(t *testing.T, open Opener, file string) *fixture {
	t.Helper()
	f := &fixture{open: open, file: file, location: t.TempDir(), clock: &clock{now: epoch()}}
	f.Store = f.another(t)
	return f
}

// another opens the same database once more, as another process would.
func (f *fixture) another(t *testing.T) store.Store {
	t.Helper()
	s := f.open(t, f.location, f.clock.Now)
	t.Cleanup(func() { check(t, "close", s.Close()) })
	return s
}

// clock is a clock that moves when it is told to.
type clock struct {
	mu  sync.Mutex // protects now
	now time.Time
}

// Now returns the time of the clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// epoch is an instant between two milliseconds.
func epoch() time.Time {
	return time.Date(2031, time.March, 4, 5, 6, 7, 89_123_456, time.UTC)
}

const (
	issuer   = "https://auth.example.com"
	resource = "https://hub.example.com/.well-known/mercure"
	clientID = "app"
)

func account(n int) store.Account {
	return store.Account{
		ID: fmt.Sprintf("%sperson%d", store.AccountIDPrefix, n), Username: fmt.Sprintf("person%d", n), PasswordHash: "phc",
		Roles: []string{"editor", "admin"}, Attributes: map[string]string{"team": "red", "room": "1"}, CreatedAt: epoch(),
	}
}

func grant(n int) store.Grant {
	return store.Grant{
		ID: fmt.Sprintf("grant%d", n), Issuer: issuer, ClientID: clientID, AccountID: account(1).ID, SessionID: "sid1", Resource: resource,
		Details:   json.RawMessage(`[{"type":"https://mercure.rocks/authorization-detail", "actions":["subscribe"]}]`),
		CreatedAt: epoch().Add(time.Duration(n) * time.Second), ExpiresAt: epoch().Add(24 * time.Hour),
	}
}

func code(n int) store.Code {
	return store.Code{
		Signature: fmt.Sprintf("signature%d", n), Issuer: issuer, ClientID: clientID, GrantID: grant(n).ID,
		Request: json.RawMessage(`{"b":1, "a":[2]}`), PKCE: json.RawMessage(`{"challenge":"x"}`),
		CreatedAt: epoch(), ExpiresAt: epoch().Add(time.Minute),
	}
}

func issued(n int, id string) store.IssuedToken {
	return store.IssuedToken{
		ID: id, Issuer: issuer, GrantID: grant(n).ID, SessionID: "sid1", Subject: account(1).ID, ClientID: clientID,
		IssuedAt: epoch(), ExpiresAt: epoch().Add(10 * time.Minute),
	}
}

// grace is that of rotations in tests.
const grace = 30 * time.Second

func refresh(n int, id string) store.RefreshToken {
	return store.RefreshToken{
		ID: id, Issuer: issuer, ClientID: clientID, GrantID: grant(n).ID, Request: json.RawMessage(`{"granted":[1]}`),
		CreatedAt: epoch(), ExpiresAt: epoch().Add(time.Hour),
	}
}

func revocation(kind store.RevocationKind, value string) store.Revocation {
	return store.Revocation{Issuer: issuer, Kind: kind, Value: value, IssuedBefore: epoch(), Until: epoch().Add(time.Hour)}
}

// check fails the test at an error.
func check(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// want fails the test unless err is the target.
func want(t testing.TB, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%s = %v, want %v", what, err, target)
	}
}

// same compares records; times lose what is below a millisecond.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	truncate := cmp.Transformer("milliseconds", func(t time.Time) time.Time { return t.Truncate(time.Millisecond) })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.FilterValues(isTime, truncate)); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// isTime lets truncate apply once: to times that have something to lose.
func isTime(a, b time.Time) bool {
	return a.Nanosecond()%int(time.Millisecond) != 0 || b.Nanosecond()%int(time.Millisecond) != 0
}

// entries are all entries of the revocation log, without their numbers.
func entries(ctx context.Context, t testing.TB, s store.Store) []store.Revocation {
	t.Helper()
	log, err := s.RevocationsSince(ctx, 0, 1000)
	check(t, "RevocationsSince", err)
	for i := range log {
		log[i].Seq = 0
	}
	return log
}
