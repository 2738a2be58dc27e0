package as_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// lastRecord is the newest record of the audit trail.
func lastRecord(t *testing.T, st store.Store) store.AuditRecord {
	t.Helper()
	records, err := st.ListAudit(t.Context(), 1)
	must(t, err)
	if len(records) == 0 {
		return store.AuditRecord{}
	}
	return records[0]
}

// logOf is the revocation log as kind:value.
func logOf(t *testing.T, st store.Store) []string {
	t.Helper()
	entries, err := st.RevocationsSince(t.Context(), 0, 100)
	must(t, err)
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, string(e.Kind)+":"+e.Value)
	}
	return out
}

// withKeys gives issuers a key set: what concerns a client or an account is revoked for issuers that have one.
func withKeys(t *testing.T, st store.Store, issuers ...string) {
	t.Helper()
	for _, i := range issuers {
		must(t, st.SaveKeys(t.Context(), i, 0, []store.Key{{ID: "k", Issuer: i, Algorithm: "ES256", Private: []byte("private")}}))
	}
}

func TestAdmin_clients(t *testing.T) {
	d := dependencies(t)
	withKeys(t, d.Store, issuer)
	admin := as.NewAdmin(d.Store, as.AdminOptions{Issuer: issuer, Actor: "root"})
	_, hash := as.NewClientSecret()
	backend := store.Client{ID: "backend", AuthMethod: as.AuthSecretBasic, SecretHash: hash, GrantTypes: []string{as.GrantClientCredentials}, Static: true}
	must(t, admin.CreateClient(t.Context(), backend))
	stored, err := d.Store.Client(t.Context(), "backend")
	must(t, err)
	if stored.Static || stored.CreatedAt.IsZero() {
		t.Errorf("stored: %+v", stored)
	}
	if r := lastRecord(t, d.Store); r.Event != as.EventClientCreated || r.Actor != "root" || r.Client != "backend" || r.Issuer != issuer {
		t.Errorf("audit record: %+v", r)
	}
	t.Run("one that exists is not replaced", func(t *testing.T) {
		other := backend
		other.Name = "other"
		if err := admin.CreateClient(t.Context(), other); !errors.Is(err, store.ErrExists) {
			t.Errorf("got %v", err)
		}
	})
	for name, change := range map[string]func(*store.Client){
		"no id":                         func(c *store.Client) { c.ID = "" },
		"an account's id":               func(c *store.Client) { c.ID = "u_x" },
		"the commands' own id":          func(c *store.Client) { c.ID = as.CommandClientID },
		"an unknown method":             func(c *store.Client) { c.AuthMethod = "tls_client_auth" },
		"a secret that is no hash":      func(c *store.Client) { c.SecretHash = []byte("secret") },
		"no secret":                     func(c *store.Client) { c.SecretHash = nil },
		"a secret and keys":             func(c *store.Client) { c.JWKS = []byte(`{"keys":[]}`) },
		"keys that are none":            func(c *store.Client) { c.AuthMethod = as.AuthPrivateKeyJWT },
		"a public client with a secret": func(c *store.Client) { c.AuthMethod, c.GrantTypes = as.AuthNone, nil },
		"a public client for itself":    func(c *store.Client) { c.AuthMethod, c.SecretHash = as.AuthNone, nil },
		"a public broker": func(c *store.Client) {
			c.AuthMethod, c.SecretHash, c.GrantTypes, c.Broker = as.AuthNone, nil, nil, true
		},
		"an unknown grant type":           func(c *store.Client) { c.GrantTypes = []string{"password"} },
		"refresh tokens of nothing":       func(c *store.Client) { c.GrantTypes = append(c.GrantTypes, as.GrantRefreshToken) },
		"codes without redirect URI":      func(c *store.Client) { c.GrantTypes = []string{as.GrantAuthorizationCode} },
		"no grant type, without any":      func(c *store.Client) { c.GrantTypes = nil },
		"a redirect URI with a wildcard":  func(c *store.Client) { c.RedirectURIs = []string{"https://app.example/*"} },
		"an origin with a path, although": func(c *store.Client) { c.Origins = []string{"https://app.example/x"} },
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			c := backend
			c.ID = "another"
			change(&c)
			if err := admin.CreateClient(t.Context(), c); !errors.Is(err, as.ErrOptions) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("deletes it, and what it has", func(t *testing.T) {
		must(t, admin.DeleteClient(t.Context(), "backend"))
		if _, err := d.Store.Client(t.Context(), "backend"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if got := logOf(t, d.Store); !slices.Equal(got, []string{"client:backend"}) {
			t.Errorf("log: %v", got)
		}
		if r := lastRecord(t, d.Store); r.Event != as.EventClientDeleted || r.Actor != "root" || r.Client != "backend" {
			t.Errorf("audit record: %+v", r)
		}
		if err := admin.DeleteClient(t.Context(), "backend"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
	})
	t.Run("leaves those of the configuration alone", func(t *testing.T) {
		_, err := as.New(t.Context(), options(), d)
		must(t, err)
		if err := admin.DeleteClient(t.Context(), "spa"); !errors.Is(err, as.ErrStatic) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAdmin_revokes(t *testing.T) {
	d := dependencies(t)
	admin := as.NewAdmin(d.Store, as.AdminOptions{Issuer: issuer, Actor: "root"})
	ann, err := d.Accounts.Create(t.Context(), "ann", "correct horse", nil)
	must(t, err)
	_, err = as.New(t.Context(), options(), d)
	must(t, err)
	now := time.Now()
	const other = "https://other.example"
	must(t, d.Store.CreateGrant(t.Context(), store.Grant{
		ID: "g_1", Issuer: other, ClientID: "spa", AccountID: ann.ID, Resource: hubURL, Details: []byte("[]"), CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}, nil))
	must(t, d.Store.RecordToken(t.Context(), store.IssuedToken{
		ID: "jti", Issuer: issuer, Subject: "script", ClientID: as.CommandClientID, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
	}))
	for range 2 {
		must(t, admin.RevokeGrant(t.Context(), "g_1"))
	}
	if r := lastRecord(t, d.Store); r.Event != as.EventGrantRevoked || r.Issuer != other || r.Subject != ann.ID || r.Details["grant_id"] != "g_1" {
		t.Errorf("audit record: %+v", r)
	}
	for range 2 {
		must(t, admin.RevokeToken(t.Context(), "jti"))
	}
	if r := lastRecord(t, d.Store); r.Event != as.EventTokenRevoked || r.Subject != "script" || r.Details["jti"] != "jti" {
		t.Errorf("audit record: %+v", r)
	}
	records, err := d.Store.ListAudit(t.Context(), 10)
	must(t, err)
	if len(records) != 2 {
		t.Errorf("what was revoked twice is not recorded once: %+v", records)
	}
	if got := logOf(t, d.Store); !slices.Equal(got, []string{"grant:g_1", "jti:jti"}) {
		t.Errorf("log: %v", got)
	}
	for name, err := range map[string]error{
		"grant": admin.RevokeGrant(t.Context(), "g_2"), "token": admin.RevokeToken(t.Context(), "another"),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an unknown %s: %v", name, err)
		}
	}
}

// TestNew_asReload makes a server anew with a client less: what the client had is revoked, of every issuer, and told at once.
func TestNew_asReload(t *testing.T) {
	d := dependencies(t)
	withKeys(t, d.Store, issuer, "https://other.example")
	pokes := 0
	d.Revoked = func() { pokes++ }
	o := options()
	o.Clients = append(o.Clients, store.Client{ID: "second", AuthMethod: as.AuthNone, RedirectURIs: []string{"https://two.example/cb"}})
	_, err := as.New(t.Context(), o, d)
	must(t, err)
	ann, err := d.Accounts.Create(t.Context(), "ann", "correct horse", nil)
	must(t, err)
	now := time.Now()
	for _, id := range []string{"spa", "second"} {
		must(t, d.Store.CreateGrant(t.Context(), store.Grant{
			ID: "g_" + id, Issuer: issuer, ClientID: id, AccountID: ann.ID, Resource: hubURL, Details: []byte("[]"), CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		}, nil))
	}
	broken := options()
	broken.Issuer = "nonsense"
	if _, err := as.New(t.Context(), broken, d); !errors.Is(err, as.ErrOptions) {
		t.Fatalf("got %v", err)
	}
	if _, err := d.Store.Client(t.Context(), "second"); err != nil || pokes != 0 {
		t.Fatalf("options that are refused changed something: %v", err)
	}
	_, err = as.New(t.Context(), options(), d)
	must(t, err)
	if got := logOf(t, d.Store); !slices.Equal(got, []string{"client:second", "client:second"}) || pokes != 1 {
		t.Errorf("log %v, %d pokes", got, pokes)
	}
	for id, revoked := range map[string]bool{"spa": false, "second": true} {
		g, err := d.Store.Grant(t.Context(), "g_"+id)
		if err != nil || g.RevokedAt.IsZero() == revoked {
			t.Errorf("grant of %s: %+v, %v", id, g, err)
		}
	}
	if r := lastRecord(t, d.Store); r.Event != as.EventClientDeleted || r.Actor != as.ActorConfiguration || r.Client != "second" {
		t.Errorf("audit record: %+v", r)
	}
	t.Run("again changes nothing", func(t *testing.T) {
		_, err := as.New(t.Context(), options(), d)
		must(t, err)
		if pokes != 1 {
			t.Errorf("%d pokes", pokes)
		}
	})
	t.Run("and without a client to tell about, nobody is told", func(t *testing.T) {
		d.Revoked = nil
		o := options()
		o.Clients = nil
		_, err := as.New(t.Context(), o, d)
		must(t, err)
	})
}
