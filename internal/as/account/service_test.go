package account_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/sqlstore"
)

const good = "correct horse"

func home() netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, 1}) }

func openStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{
		Path: filepath.Join(t.TempDir(), "data", "authz.db"), Secret: bytes.Repeat([]byte{1}, 32), Migrate: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newService(t *testing.T, s account.Store) *account.Service {
	t.Helper()
	svc, err := account.New(account.Options{Store: s, Hash: cheap(), Throttle: limits(5, 1000, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func mustCreate(t *testing.T, svc *account.Service, username string) store.Account {
	t.Helper()
	a, err := svc.Create(t.Context(), username, good, []string{"editor"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestService_Create(t *testing.T) {
	ctx := t.Context()
	svc := newService(t, openStore(t))
	a := mustCreate(t, svc, "ADA")
	if a.Username != "ada" || !strings.HasPrefix(a.ID, store.AccountIDPrefix) || len(a.Roles) != 1 || a.CreatedAt.IsZero() {
		t.Errorf("Create = %+v", a)
	}
	if strings.Contains(a.PasswordHash, good) {
		t.Error("the hash holds the password")
	}
	for name, c := range map[string]struct {
		username, password string
		want               error
	}{
		"a taken name":                     {"ada", good, store.ErrExists},
		"a taken name in another spelling": {"ＡＤＡ", good, store.ErrExists},
		"no name":                          {"", good, account.ErrUsername},
		"no password":                      {"bob", "", account.ErrPassword},
		"a short password":                 {"bob", "1234567", account.ErrPassword},
		"the name as password":             {"bob.bobson", "Bob.Bobson", account.ErrPassword},
	} {
		if _, err := svc.Create(ctx, c.username, c.password, nil); !errors.Is(err, c.want) {
			t.Errorf("Create with %s = %v, want %v", name, err, c.want)
		}
	}
	if _, err := svc.Add(ctx, account.Draft{Username: "demo", Demo: true, Attributes: map[string]string{"a": "b"}}); err != nil {
		t.Errorf("Add without password = %v", err)
	}
}

func TestService_Authenticate(t *testing.T) {
	ctx := t.Context()
	st := openStore(t)
	svc := newService(t, st)
	ada := mustCreate(t, svc, "zoë")
	disabled := mustCreate(t, svc, "disabled")
	if _, err := svc.Update(ctx, disabled.ID, func(a *store.Account) { a.Disabled = true }); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Add(ctx, account.Draft{Username: "demo", Demo: true}); err != nil {
		t.Fatal(err)
	}
	broken := mustCreate(t, svc, "broken")
	if _, err := svc.Update(ctx, broken.ID, func(a *store.Account) { a.PasswordHash = "$1$md5" }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"zoë", "ZOË", "Zoe\u0308"} {
		got, err := svc.Authenticate(ctx, name, good, home())
		if err != nil || got.ID != ada.ID {
			t.Errorf("Authenticate(%q) = %q, %v, want %q", name, got.ID, err, ada.ID)
		}
	}
	for what, c := range map[string][2]string{
		"a wrong password":           {"zoë", "correct horsf"},
		"another case":               {"zoë", "Correct horse"},
		"no password":                {"zoë", ""},
		"an endless password":        {"zoë", strings.Repeat(good, 10_000)},
		"a control character":        {"zoë", good + "\x00"},
		"an unknown name":            {"nobody", good},
		"no name":                    {"", good},
		"an impossible name":         {"a b\x00", good},
		"an id for a name":           {ada.ID, good},
		"a disabled account":         {"disabled", good},
		"an account without hash":    {"demo", ""},
		"an account with a bad hash": {"broken", good},
	} {
		got, err := svc.Authenticate(ctx, c[0], c[1], home())
		if err != account.ErrBadCredentials || got.ID != "" { //nolint:errorlint // the very same error for all, nothing wrapped around it
			t.Errorf("Authenticate with %s = %q, %v, want ErrBadCredentials", what, got.ID, err)
		}
	}
}

func TestService_Authenticate_sameFormOfPassword(t *testing.T) {
	ctx := t.Context()
	svc := newService(t, openStore(t))
	if _, err := svc.Create(ctx, "ada", "cafe\u0301 cafe\u0301", nil); err != nil { // decomposed, and with plain spaces
		t.Fatal(err)
	}
	if _, err := svc.Authenticate(ctx, "ada", "café\u00a0café", home()); err != nil {
		t.Errorf("Authenticate with the composed form = %v", err)
	}
}

func TestService_Authenticate_throttles(t *testing.T) {
	ctx := t.Context()
	svc := newService(t, openStore(t))
	mustCreate(t, svc, "ada")
	for _, name := range []string{"ada", "nobody"} { // known or not, it looks the same
		for n := range 5 {
			if _, err := svc.Authenticate(ctx, name, "wrong password", home()); !errors.Is(err, account.ErrBadCredentials) {
				t.Fatalf("Authenticate(%s) %d = %v, want ErrBadCredentials", name, n, err)
			}
		}
		_, err := svc.Authenticate(ctx, strings.ToUpper(name), good, home())
		var throttled *account.ThrottledError
		if !errors.As(err, &throttled) || throttled.RetryAfter <= 0 || throttled.RetryAfter > time.Minute {
			t.Errorf("Authenticate(%s) after 5 failures = %v, want *ThrottledError", name, err)
		}
	}
	if _, err := svc.Authenticate(ctx, "ada", good, netip.AddrFrom4([4]byte{192, 0, 2, 2})); err != nil {
		t.Errorf("Authenticate from another address = %v", err)
	}
}

// failingStore fails as an unreachable database does.
type failingStore struct{ account.Store }

func (failingStore) AccountByUsername(context.Context, string) (store.Account, error) {
	return store.Account{}, store.ErrUnavailable
}

func TestService_Authenticate_storeFails(t *testing.T) {
	svc := newService(t, failingStore{})
	for range 20 { // an outage must not throttle people
		if _, err := svc.Authenticate(t.Context(), "ada", good, home()); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("Authenticate = %v, want store.ErrUnavailable", err)
		}
	}
}

func TestService_Authenticate_rehashes(t *testing.T) {
	ctx := t.Context()
	st := openStore(t)
	a := mustCreate(t, newService(t, st), "ada")
	dearer := cheap()
	dearer.Iterations = 2
	svc, err := account.New(account.Options{Store: st, Hash: dearer})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := svc.Authenticate(ctx, "ada", good, home())
		if err != nil {
			t.Fatal(err)
		}
		stored, err := st.Account(ctx, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.PasswordHash != stored.PasswordHash || got.Revision != stored.Revision || stored.Revision != 2 {
			t.Errorf("Authenticate = revision %d, stored is %d, want 2", got.Revision, stored.Revision)
		}
		if !strings.Contains(stored.PasswordHash, "t=2") {
			t.Error("the hash still has its old cost")
		}
	}
}

func TestService_SetPassword(t *testing.T) {
	ctx := t.Context()
	st := openStore(t)
	svc := newService(t, st)
	a := mustCreate(t, svc, "ada")
	session := store.BrowserSession{
		IDHash: "h", SessionID: "s", AccountID: a.ID, Issuer: "https://auth.example.com", ExpiresAt: time.Now().Add(time.Hour),
	}
	if err := st.CreateBrowserSession(ctx, session); err != nil {
		t.Fatal(err)
	}
	if err := svc.SetPassword(ctx, a.ID, "short"); !errors.Is(err, account.ErrPassword) {
		t.Errorf("SetPassword(short) = %v, want ErrPassword", err)
	}
	if err := svc.SetPassword(ctx, "u_nobody", good); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("SetPassword(unknown) = %v, want store.ErrNotFound", err)
	}
	key := store.Key{ID: "k", Issuer: session.Issuer, Algorithm: "ES256", Private: []byte("private")}
	if err := st.SaveKeys(ctx, session.Issuer, 0, []store.Key{key}); err != nil {
		t.Fatal(err)
	}
	if err := svc.SetPassword(ctx, a.ID, "another password"); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Authenticate(ctx, "ada", good, home()); !errors.Is(err, account.ErrBadCredentials) {
		t.Errorf("Authenticate with the old password = %v, want ErrBadCredentials", err)
	}
	if _, err := svc.Authenticate(ctx, "ada", "another password", home()); err != nil {
		t.Errorf("Authenticate with the new password = %v", err)
	}
	if _, err := st.BrowserSession(ctx, "h"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("BrowserSession = %v, want store.ErrNotFound", err)
	}
	log, err := st.RevocationsSince(ctx, 0, 10)
	if err != nil || len(log) != 1 || log[0].Value != a.ID {
		t.Errorf("revocation log = %v (%v), want an entry for the account", log, err)
	}
}

// TestService_Update checks that two changes at once are both kept.
func TestService_Update(t *testing.T) {
	ctx := t.Context()
	st := openStore(t)
	svc := newService(t, st)
	a := mustCreate(t, svc, "ada")
	interfered := false
	got, err := svc.Update(ctx, a.ID, func(a *store.Account) {
		a.Roles = append(a.Roles, "admin")
		if interfered {
			return
		}
		interfered = true
		if _, err := svc.Update(ctx, a.ID, func(a *store.Account) { a.Disabled = true }); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Disabled || len(got.Roles) != 2 {
		t.Errorf("account after two changes = %+v, want both", got)
	}
}

// BenchmarkVerify is what a login costs with the default cost.
func BenchmarkVerify(b *testing.B) {
	h, err := account.NewHasher(account.HashOptions{})
	if err != nil {
		b.Fatal(err)
	}
	hash, err := h.Hash(b.Context(), good)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if match, _, err := h.Verify(b.Context(), good, hash); err != nil || !match {
			b.Fatal(match, err)
		}
	}
}
