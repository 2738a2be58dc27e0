package as_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/sqlstore"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	issuer = "https://as.example"
	hubURL = "https://hub.example/.well-known/mercure"
)

type memoryKeys struct {
	mu      sync.Mutex
	entries []keyring.Entry
	version int64
}

func (k *memoryKeys) LoadKeys(context.Context, string) ([]keyring.Entry, int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.entries), k.version, nil
}

func (k *memoryKeys) SaveKeys(_ context.Context, _ string, _ int64, entries []keyring.Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries, k.version = slices.Clone(entries), k.version+1
	return nil
}

func dependencies(t *testing.T) as.Dependencies {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{
		Path: filepath.Join(t.TempDir(), "private", "authz.db"), Secret: make([]byte, 32), Migrate: true,
	})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	accounts, err := account.New(account.Options{Store: db, Hash: account.HashOptions{MemoryKiB: 64, Iterations: 1}})
	must(t, err)
	ring, err := keyring.Open(t.Context(), keyring.Options{Store: &memoryKeys{}, Issuer: issuer})
	must(t, err)
	return as.Dependencies{Store: db, Accounts: accounts, Keys: ring, Secret: [32]byte{1}}
}

func options() as.Options {
	return as.Options{
		Issuer:    issuer,
		Resources: []as.Resource{{ID: hubURL}},
		Clients:   []store.Client{{ID: "spa", AuthMethod: as.AuthNone, RedirectURIs: []string{"https://app.example/cb"}}},
		Policies:  []as.Policy{{ID: "p", Grant: []rar.Detail{detail("https://example.com/{{sub}}", rar.Subscribe)}}},
	}
}

func detail(match string, actions ...rar.Action) rar.Detail {
	return rar.Detail{Actions: actions, Topics: []rar.TopicMatcher{{Match: match, MatchType: topic.Exact}}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNew_options(t *testing.T) {
	d := dependencies(t)
	_, err := as.New(t.Context(), options(), d)
	must(t, err)
	for name, change := range map[string]func(*as.Options){
		"no issuer":                       func(o *as.Options) { o.Issuer = "" },
		"an issuer with a final slash":    func(o *as.Options) { o.Issuer += "/" },
		"an issuer with a query":          func(o *as.Options) { o.Issuer += "?x" },
		"an issuer with a fragment":       func(o *as.Options) { o.Issuer += "#" },
		"an issuer with a user":           func(o *as.Options) { o.Issuer = "https://u@as.example" },
		"an issuer with two slashes":      func(o *as.Options) { o.Issuer += "//other.example" },
		"an issuer with a colon":          func(o *as.Options) { o.Issuer += "/a:b" },
		"an issuer with an asterisk":      func(o *as.Options) { o.Issuer += "/*" },
		"an issuer with an escape":        func(o *as.Options) { o.Issuer += "/a%20b" },
		"an issuer with dot segments":     func(o *as.Options) { o.Issuer += "/a/../b" },
		"an http issuer":                  func(o *as.Options) { o.Issuer = "http://as.example" },
		"no resource":                     func(o *as.Options) { o.Resources = nil },
		"a relative resource":             func(o *as.Options) { o.Resources[0].ID = "/hub" },
		"a resource twice":                func(o *as.Options) { o.Resources = append(o.Resources, o.Resources[0]) },
		"a demo user outside development": func(o *as.Options) { o.DemoUser = "demo" },
		"a negative lifetime":             func(o *as.Options) { o.AccessTokenTTL = -1 },
		"a policy without id":             func(o *as.Options) { o.Policies[0].ID = "" },
		"a policy twice":                  func(o *as.Options) { o.Policies = append(o.Policies, o.Policies[0]) },
		"an unknown on_missing_request":   func(o *as.Options) { o.Policies[0].OnMissingRequest = "x" },
		"an unknown on_excess":            func(o *as.Options) { o.Policies[0].OnExcess = "x" },
		"an unknown template variable":    func(o *as.Options) { o.Policies[0].Grant[0].Topics[0].Match = "https://e/{{nobody}}" },
		"a template that cannot compile": func(o *as.Options) {
			o.Policies[0].Grant[0].Topics[0] = rar.TopicMatcher{Match: "https://e/(", MatchType: topic.URLPattern}
		},
		"a scope with such a template": func(o *as.Options) {
			o.Scopes = map[string][]rar.Detail{"s": {detail("https://e/{{x}}", rar.Subscribe)}}
		},
		"a client twice":                   func(o *as.Options) { o.Clients = append(o.Clients, o.Clients[0]) },
		"a client without id":              func(o *as.Options) { o.Clients[0].ID = "" },
		"a client that looks like account": func(o *as.Options) { o.Clients[0].ID = "u_x" },
		"a client with a secret":           func(o *as.Options) { o.Clients[0].AuthMethod = "client_secret_basic" },
		"a client without redirect URI":    func(o *as.Options) { o.Clients[0].RedirectURIs = nil },
		"a client with a wildcard":         func(o *as.Options) { o.Clients[0].RedirectURIs = []string{"https://app.example*"} },
		"a client with a path as origin":   func(o *as.Options) { o.Clients[0].Origins = []string{"https://app.example/"} },
		"private_key_jwt without keys":     func(o *as.Options) { o.Clients[0].AuthMethod = as.AuthPrivateKeyJWT },
		"private_key_jwt with bad keys": func(o *as.Options) {
			o.Clients[0].AuthMethod = as.AuthPrivateKeyJWT
			o.Clients[0].JWKS = []byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`)
		},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			o := options()
			change(&o)
			// What checks a configuration without a store finds what the start would.
			if err := o.Validate(); !errors.Is(err, as.ErrOptions) {
				t.Errorf("Validate = %v", err)
			}
			if _, err := as.New(t.Context(), o, d); !errors.Is(err, as.ErrOptions) {
				t.Errorf("New = %v", err)
			}
		})
	}
	t.Run("accepts http on loopback", func(t *testing.T) {
		o := options()
		o.Issuer = "http://localhost:8080"
		s, err := as.New(t.Context(), o, d)
		must(t, err)
		if s.Origin() != "http://localhost:8080" || s.BasePath() != "" || s.Issuer() != o.Issuer {
			t.Errorf("origin %s, base %q", s.Origin(), s.BasePath())
		}
	})
	t.Run("wants its dependencies", func(t *testing.T) {
		if _, err := as.New(t.Context(), options(), as.Dependencies{}); err == nil {
			t.Error("no error")
		}
	})
}

func TestNew_staticClients(t *testing.T) {
	d := dependencies(t)
	ids := func() []string {
		clients, err := d.Store.ListClients(t.Context())
		must(t, err)
		var ids []string
		for _, c := range clients {
			ids = append(ids, c.ID)
		}
		return ids
	}
	must(t, d.Store.PutClient(t.Context(), store.Client{ID: "by-command", AuthMethod: as.AuthNone}))
	o := options()
	o.Clients = append(o.Clients, store.Client{ID: "second", AuthMethod: as.AuthNone, RedirectURIs: []string{"https://two.example/cb"}})
	_, err := as.New(t.Context(), o, d)
	must(t, err)
	if got := ids(); !slices.Equal(got, []string{"by-command", "second", "spa"}) {
		t.Errorf("clients: %v", got)
	}
	before, err := d.Store.Client(t.Context(), "spa")
	must(t, err)
	version, err := d.Store.Version(t.Context())
	must(t, err)
	_, err = as.New(t.Context(), options(), d)
	must(t, err)
	if got := ids(); !slices.Equal(got, []string{"by-command", "spa"}) {
		t.Errorf("clients: %v", got)
	}
	after, err := d.Store.Client(t.Context(), "spa")
	must(t, err)
	if !after.Static || !after.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("client: %+v, was %+v", after, before)
	}
	if now, err := d.Store.Version(t.Context()); err != nil || now != version+1 {
		t.Errorf("a restart raised the version from %d to %d, %v; only the deletion should", version, now, err)
	}
}

func TestRun_sweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dependencies(t)
		s, err := as.New(t.Context(), options(), d)
		must(t, err)
		_, err = d.Accounts.Create(t.Context(), "ann", "correct horse", nil)
		must(t, err)
		must(t, d.Store.CreateInteraction(t.Context(), store.Interaction{
			IDHash: "x", BindingHash: "y", Issuer: issuer, ClientID: "spa", Request: []byte(`{}`),
			CreatedAt: time.Now(), ExpiresAt: time.Now().Add(30 * time.Second),
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		<-time.After(61 * time.Second)
		cancel()
		must(t, <-done)
		if n, err := d.Store.Sweep(t.Context(), time.Now(), 10); err != nil || n != 0 {
			t.Errorf("%d records were left, %v", n, err)
		}
	})
}

// busyStore has more to sweep than it deletes at a time.
type busyStore struct {
	store.Store

	left int
}

func (s *busyStore) Sweep(_ context.Context, _ time.Time, limit int) (int, error) {
	n := min(limit, s.left)
	s.left -= n
	return n, nil
}

func TestRun_sweepsAllThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dependencies(t)
		busy := &busyStore{Store: d.Store, left: 100_000}
		d.Store = busy
		s, err := as.New(t.Context(), options(), d)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		<-time.After(61 * time.Second)
		cancel()
		must(t, <-done)
		if busy.left != 0 {
			t.Errorf("after a minute %d records were left", busy.left)
		}
	})
}

func TestMintOffline(t *testing.T) {
	d := dependencies(t)
	r := as.OfflineRequest{
		Issuer: issuer, Resource: as.Resource{ID: hubURL}, Subject: "deploy-script", Actor: "root",
		Details: []rar.Detail{detail("https://example.com/a", rar.Publish)},
	}
	compact, err := as.MintOffline(t.Context(), d.Store, d.Keys, r)
	must(t, err)
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	must(t, err)
	v, err := token.NewVerifier(token.Options{
		Resource: hubURL, Compiler: compiler, Issuers: []token.Issuer{{ID: issuer, Keys: d.Keys, AuthorizationServer: true}},
	})
	must(t, err)
	claims, err := v.Verify(t.Context(), compact, rar.Publish)
	must(t, err)
	if claims.Subject != "deploy-script" || claims.ClientID != "authz-cli" || claims.GrantID != "" ||
		claims.ExpiresAt.Sub(claims.IssuedAt) != as.DefaultAccessTokenTTL {
		t.Errorf("claims: %+v", claims)
	}
	t.Run("leaves an audit record with its jti, and no token", func(t *testing.T) {
		records, err := d.Store.ListAudit(t.Context(), 10)
		must(t, err)
		if len(records) != 1 || records[0].Event != as.EventTokenMinted || records[0].Details["jti"] != claims.ID || records[0].Actor != "root" {
			t.Fatalf("audit trail: %+v", records)
		}
		for _, value := range records[0].Details {
			if strings.HasPrefix(value, "eyJ") {
				t.Error("the record has the token")
			}
		}
	})
	for name, change := range map[string]func(*as.OfflineRequest){
		"no subject":        func(r *as.OfflineRequest) { r.Subject = "" },
		"more than a day":   func(r *as.OfflineRequest) { r.TTL = 25 * time.Hour },
		"no time at all":    func(r *as.OfflineRequest) { r.TTL = time.Nanosecond },
		"no details":        func(r *as.OfflineRequest) { r.Details = nil },
		"an unknown action": func(r *as.OfflineRequest) { r.Details = []rar.Detail{detail("x", "fly")} },
		"a bad pattern": func(r *as.OfflineRequest) {
			r.Details[0].Topics[0] = rar.TopicMatcher{Match: "(", MatchType: topic.URLPattern}
		},
		"a bad hub URL": func(r *as.OfflineRequest) { r.Resource.HubURL = ":" },
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			r := r
			r.Details = []rar.Detail{detail("https://example.com/a", rar.Publish)}
			change(&r)
			if _, err := as.MintOffline(t.Context(), d.Store, d.Keys, r); !errors.Is(err, as.ErrMint) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBrowser(t *testing.T) {
	a, b := strings.Repeat("a", 43), strings.Repeat("b", 43)
	for cookie, want := range map[string]as.Browser{
		"":                    {},
		"x":                   {},
		a:                     {Binding: a},
		a + "." + b:           {Binding: a, Session: b},
		a + ".x":              {Binding: a},
		"." + b:               {},
		a + "." + b + "." + b: {Binding: a},
	} {
		if got := as.ParseBrowser(cookie); got != want {
			t.Errorf("%q: %+v", cookie, got)
		}
		if want.Binding != "" && as.ParseBrowser(want.String()) != want {
			t.Errorf("%+v does not come back", want)
		}
	}
}
