package keyring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	issuer = "https://as.example"
	hubURL = "https://hub.example/.well-known/mercure"
)

var (
	start     = time.Date(2031, time.May, 4, 12, 0, 0, 0, time.UTC)
	subscribe = rar.Actions(rar.Subscribe)
	publish   = rar.Actions(rar.Publish)
	both      = rar.Actions(rar.Publish, rar.Subscribe)
)

// store is a Store in memory.
type store struct {
	mu      sync.Mutex
	entries map[string][]keyring.Entry
	version int64
	saves   int
	fail    error
	// beforeSave runs once, before the next save, to let another process be faster.
	beforeSave func()
}

func newStore() *store { return &store{entries: make(map[string][]keyring.Entry)} }

func (s *store) LoadKeys(_ context.Context, issuer string) ([]keyring.Entry, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries[issuer]), s.version, s.fail
}

func (s *store) SaveKeys(_ context.Context, issuer string, version int64, entries []keyring.Entry) error {
	s.mu.Lock()
	before := s.beforeSave
	s.beforeSave = nil
	s.mu.Unlock()
	if before != nil {
		before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saves++
	if version != s.version {
		return fmt.Errorf("save: %w", keyring.ErrConflict)
	}
	s.entries[issuer] = slices.Clone(entries)
	s.version++
	return nil
}

// edit changes the stored entries as another process would.
func (s *store) edit(f func([]keyring.Entry) []keyring.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[issuer] = f(slices.Clone(s.entries[issuer]))
	s.version++
}

func (s *store) setFail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func open(t *testing.T, o keyring.Options) *keyring.Ring {
	t.Helper()
	if o.Issuer == "" {
		o.Issuer = issuer
	}
	if o.Now == nil {
		o.Now = (&clock{now: start}).Now
	}
	r, err := keyring.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func signing(t *testing.T, r *keyring.Ring, actions rar.ActionSet) token.SigningKey {
	t.Helper()
	k, err := r.Signing(t.Context(), actions)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newKey is an entry as a rotation would make it.
func newKey(t *testing.T, actions rar.ActionSet, activates time.Time) keyring.Entry {
	t.Helper()
	k, err := token.Generate("ES256")
	if err != nil {
		t.Fatal(err)
	}
	private, err := k.PrivateJWK()
	if err != nil {
		t.Fatal(err)
	}
	return keyring.Entry{
		KeyID: k.ID, Issuer: issuer, Algorithm: k.Algorithm, Actions: actions, Private: private,
		CreatedAt: activates.Add(-time.Hour), ActivatesAt: activates,
	}
}

func TestEntry_State(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	planned := keyring.Entry{ActivatesAt: at(10), RetiresAt: at(20), ExpiresAt: at(40)}
	for _, c := range []struct {
		name   string
		entry  keyring.Entry
		minute int
		want   keyring.State
	}{
		{"before use", planned, 9, keyring.Next},
		{"at its activation", planned, 10, keyring.Active},
		{"in use", planned, 19, keyring.Active},
		{"at its retirement", planned, 20, keyring.Retiring},
		{"still accepted", planned, 39, keyring.Retiring},
		{"at its end", planned, 40, keyring.Gone},
		{"without plans", keyring.Entry{ActivatesAt: at(0)}, 1e6, keyring.Active},
		{"without an end", keyring.Entry{ActivatesAt: at(0), RetiresAt: at(1)}, 1e6, keyring.Retiring},
		{"withdrawn at once", keyring.Entry{ActivatesAt: at(0), ExpiresAt: at(1)}, 1, keyring.Gone},
		{"withdrawn before use", keyring.Entry{ActivatesAt: at(9), ExpiresAt: at(1)}, 1, keyring.Gone},
		{"retired before use", keyring.Entry{ActivatesAt: at(9), RetiresAt: at(1)}, 1, keyring.Retiring},
	} {
		if got := c.entry.State(at(c.minute)); got != c.want {
			t.Errorf("%s: State() = %s, want %s", c.name, got, c.want)
		}
	}
}

func TestOpen_MakesMissingKeys(t *testing.T) {
	t.Parallel()
	s := newStore()
	r := open(t, keyring.Options{Store: s})
	seen := make(map[string]bool)
	for _, actions := range []rar.ActionSet{subscribe, publish, both} {
		k := signing(t, r, actions)
		seen[k.ID] = true
		if k.Algorithm != "ES256" || k.Actions != actions {
			t.Errorf("Signing(%s) = %s for %s, want an ES256 key of the family", actions, k.Algorithm, k.Actions)
		}
	}
	if len(seen) != 3 || len(s.entries[issuer]) != 3 {
		t.Errorf("three families have %d keys, the store has %d", len(seen), len(s.entries[issuer]))
	}
	if _, err := r.Signing(t.Context(), 0); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("Signing(no actions) = %v, want ErrNoKey", err)
	}

	again := open(t, keyring.Options{Store: s, Algorithm: "EdDSA"})
	if signing(t, again, both).ID != signing(t, r, both).ID || s.saves != 1 {
		t.Errorf("opened again, the ring made new keys: %d saves", s.saves)
	}
	s.edit(func(es []keyring.Entry) []keyring.Entry {
		return slices.DeleteFunc(es, func(e keyring.Entry) bool { return e.Actions == publish })
	})
	third := open(t, keyring.Options{Store: s, Algorithm: "EdDSA"})
	if k := signing(t, third, publish); k.Algorithm != "EdDSA" || signing(t, third, subscribe).Algorithm != "ES256" {
		t.Errorf("the missing key is %s, want EdDSA beside ES256 keys", k.Algorithm)
	}
}

func TestOpen_ReplacesKeysThatSignNoMore(t *testing.T) {
	t.Parallel()
	s := newStore()
	first := open(t, keyring.Options{Store: s})
	old := signing(t, first, publish)
	s.edit(func(es []keyring.Entry) []keyring.Entry {
		for i := range es {
			es[i].RetiresAt = start.Add(time.Hour)
		}
		return es
	})
	r := open(t, keyring.Options{Store: s, Now: (&clock{now: start.Add(2 * time.Hour)}).Now})
	if k := signing(t, r, publish); k.ID == old.ID {
		t.Error("the retiring key still signs")
	}
	if keys, err := r.Keys(t.Context(), old.ID); err != nil || len(keys) != 1 {
		t.Errorf("Keys(retiring) = %v, %v, want the key", keys, err)
	}
}

func TestOpen_LosesRaces(t *testing.T) {
	t.Parallel()
	s := newStore()
	var winner *keyring.Ring
	s.beforeSave = func() { winner = open(t, keyring.Options{Store: s}) }
	r := open(t, keyring.Options{Store: s})
	if signing(t, r, both).ID != signing(t, winner, both).ID || len(s.entries[issuer]) != 3 {
		t.Errorf("two processes made %d keys, want 3 shared ones", len(s.entries[issuer]))
	}
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	broken := newStore()
	broken.fail = errors.New("disk")
	never := &conflicting{store: newStore()}
	foreign := newStore()
	foreign.edit(func(es []keyring.Entry) []keyring.Entry {
		e := newKey(t, both, start)
		e.KeyID = "other"
		return append(es, e)
	})
	unreadable := newStore()
	unreadable.edit(func(es []keyring.Entry) []keyring.Entry {
		e := newKey(t, both, start)
		e.Private = []byte(`{"kty":"EC"}`)
		return append(es, e)
	})
	filed := newStore()
	open(t, keyring.Options{Store: filed})
	for name, c := range map[string]struct {
		o    keyring.Options
		want error
	}{
		"no store":                  {keyring.Options{Issuer: issuer}, nil},
		"no issuer":                 {keyring.Options{Store: newStore()}, nil},
		"an algorithm not made":     {keyring.Options{Store: newStore(), Issuer: issuer, Algorithm: "HS256"}, token.ErrKey},
		"a store that fails":        {keyring.Options{Store: broken, Issuer: issuer}, broken.fail},
		"conflicts without end":     {keyring.Options{Store: never, Issuer: issuer}, keyring.ErrConflict},
		"an entry of another key":   {keyring.Options{Store: foreign, Issuer: issuer}, token.ErrKey},
		"an entry without its key":  {keyring.Options{Store: unreadable, Issuer: issuer}, token.ErrKey},
		"an entry of another owner": {keyring.Options{Store: &misfiled{filed}, Issuer: "https://other.example"}, token.ErrKey},
	} {
		r, err := keyring.Open(t.Context(), c.o)
		if err == nil || r != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: Open() = %v, %v, want the error %v", name, r, err, c.want)
		}
	}
	if never.saves > 10 {
		t.Errorf("Open tried %d times, want a few", never.saves)
	}
}

// conflicting always reports that somebody was faster.
type conflicting struct{ *store }

func (c *conflicting) SaveKeys(context.Context, string, int64, []keyring.Entry) error {
	c.saves++
	return keyring.ErrConflict
}

// misfiled hands out another issuer's keys.
type misfiled struct{ *store }

func (m *misfiled) LoadKeys(ctx context.Context, _ string) ([]keyring.Entry, int64, error) {
	return m.store.LoadKeys(ctx, issuer)
}

func TestRing_Rotation(t *testing.T) {
	t.Parallel()
	s, c := newStore(), &clock{now: start}
	r := open(t, keyring.Options{Store: s, Now: c.Now})
	old := signing(t, r, publish)
	next := newKey(t, publish, start.Add(10*time.Minute))
	s.edit(func(es []keyring.Entry) []keyring.Entry {
		for i := range es {
			if es[i].KeyID == old.ID {
				es[i].RetiresAt, es[i].ExpiresAt = start.Add(10*time.Minute), start.Add(30*time.Minute)
			}
		}
		return append(es, next)
	})
	version := r.KeysVersion()
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.KeysVersion() == version {
		t.Error("KeysVersion() does not change with the keys")
	}
	for _, step := range []struct {
		minute          int
		signs           string
		oldIn, publishd int
	}{
		{0, old.ID, 1, 4},
		{9, old.ID, 1, 4},
		{10, next.KeyID, 1, 4},
		{29, next.KeyID, 1, 4},
		{30, next.KeyID, 0, 3},
	} {
		c.Set(start.Add(time.Duration(step.minute) * time.Minute))
		if k := signing(t, r, publish); k.ID != step.signs {
			t.Errorf("minute %d: %s signs, want %s", step.minute, k.ID, step.signs)
		}
		if keys, _ := r.Keys(t.Context(), old.ID); len(keys) != step.oldIn {
			t.Errorf("minute %d: Keys(old) = %d keys, want %d", step.minute, len(keys), step.oldIn)
		}
		if keys, _ := r.Keys(t.Context(), ""); len(keys) != step.publishd {
			t.Errorf("minute %d: Keys() = %d keys, want %d", step.minute, len(keys), step.publishd)
		}
		if got := strings.Count(string(r.PublicSet()), `"kid"`); got != step.publishd {
			t.Errorf("minute %d: PublicSet() has %d keys, want %d", step.minute, got, step.publishd)
		}
	}
	version = r.KeysVersion()
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.KeysVersion() == version {
		t.Error("KeysVersion() does not change when a key has gone by the clock")
	}
	version = r.KeysVersion()
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.KeysVersion() != version {
		t.Error("KeysVersion() changes although nothing did")
	}
}

func TestRing_YoungestSigns(t *testing.T) {
	t.Parallel()
	s := newStore()
	keys := []keyring.Entry{newKey(t, both, start.Add(-time.Hour)), newKey(t, both, start), newKey(t, both, start.Add(-2*time.Hour))}
	s.edit(func([]keyring.Entry) []keyring.Entry { return keys })
	r := open(t, keyring.Options{Store: s})
	if k := signing(t, r, both); k.ID != keys[1].KeyID {
		t.Errorf("Signing() = %s, want the youngest active key %s", k.ID, keys[1].KeyID)
	}
}

func TestRing_PublicSet(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"ES256", "EdDSA"} {
		r := open(t, keyring.Options{Store: newStore(), Algorithm: alg})
		var document struct {
			Keys []map[string]any `json:"keys"`
		}
		if err := json.Unmarshal(r.PublicSet(), &document); err != nil {
			t.Fatal(err)
		}
		var families []string
		for _, k := range document.Keys {
			families = append(families, fmt.Sprint(k["mercure_actions"]))
			for _, name := range []string{"kty", "crv", "x", "kid"} {
				if text, ok := k[name].(string); !ok || text == "" {
					t.Errorf("member %s of a published key is %v", name, k[name])
				}
			}
			if k["alg"] != alg || k["use"] != "sig" {
				t.Errorf("published key has alg %v and use %v", k["alg"], k["use"])
			}
			for _, private := range []string{"d", "k", "p", "q", "dp", "dq", "qi"} {
				if _, there := k[private]; there {
					t.Fatalf("the private member %s is published", private)
				}
			}
		}
		slices.Sort(families)
		if diff := cmp.Diff([]string{"[publish subscribe]", "[publish]", "[subscribe]"}, families); diff != "" {
			t.Errorf("mercure_actions differ (-want +got):\n%s", diff)
		}
		keys, err := token.ParseJWKSet(r.PublicSet(), 0)
		if err != nil || len(keys) != 3 {
			t.Errorf("ParseJWKSet(PublicSet()) = %v, %v, want three keys", keys, err)
		}
	}
}

// TestRing_Verifies mints with each family and verifies with the ring as key source.
func TestRing_Verifies(t *testing.T) {
	t.Parallel()
	c := &clock{now: start}
	r := open(t, keyring.Options{Store: newStore(), Now: c.Now})
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := token.NewVerifier(token.Options{
		Resource: hubURL, Compiler: compiler, Now: c.Now,
		Issuers: []token.Issuer{{ID: issuer, AuthorizationServer: true, Keys: r}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, actions := range []rar.ActionSet{subscribe, publish, both} {
		details := []rar.Detail{{Actions: actions.Slice(), Topics: []rar.TopicMatcher{{Match: "*", MatchType: topic.Exact}}}}
		compact, err := token.Mint(signing(t, r, actions), token.MintClaims{
			Issuer: issuer, Subject: "u_1", Audience: hubURL, ClientID: "app",
			IssuedAt: start, ExpiresAt: start.Add(time.Minute), AuthorizationDetails: rar.Encode(details),
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second verdict is a remembered one
			claims, err := v.Verify(t.Context(), compact, rar.Subscribe)
			if err != nil || claims.Grants.Actions() != actions {
				t.Errorf("Verify(token for %s) = %v, %v", actions, claims, err)
			}
		}
	}
}

func TestRing_Run(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var log strings.Builder
		r, err := keyring.Open(t.Context(), keyring.Options{
			Store: s, Issuer: issuer, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		wait := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}

		replacement := newKey(t, both, time.Now().Add(time.Second/2))
		s.edit(func(es []keyring.Entry) []keyring.Entry { return append(es, replacement) })
		wait(time.Second)
		if k := signing(t, r, both); k.ID != replacement.KeyID {
			t.Error("a change in the store is not followed within a second")
		}

		// An outage: the keys stay, and it is told once.
		s.setFail(errors.New("disk"))
		wait(10 * time.Second)
		if k := signing(t, r, both); k.ID != replacement.KeyID {
			t.Error("the keys are lost with the store")
		}
		s.setFail(nil)
		wait(2 * time.Second)
		if n := strings.Count(log.String(), "not followed"); n != 1 {
			t.Errorf("the outage was logged %d times, want once:\n%s", n, log.String())
		}
		if n := strings.Count(log.String(), "followed again"); n != 1 {
			t.Errorf("the end of the outage was logged %d times, want once:\n%s", n, log.String())
		}

		// A key withdrawn at once is refused within a second.
		s.edit(func(es []keyring.Entry) []keyring.Entry {
			for i := range es {
				if es[i].KeyID == replacement.KeyID {
					es[i].ExpiresAt = time.Now()
				}
			}
			return es
		})
		wait(time.Second)
		if keys, _ := r.Keys(t.Context(), replacement.KeyID); len(keys) != 0 {
			t.Error("a withdrawn key is still accepted")
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
	})
}

func TestRing_Concurrently(t *testing.T) {
	t.Parallel()
	s := newStore()
	r := open(t, keyring.Options{Store: s})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				_, err := r.Signing(context.Background(), both)
				_, kerr := r.Keys(context.Background(), "")
				if err := errors.Join(err, kerr, r.Reload(context.Background())); err != nil {
					t.Error(err)
				}
				_, _ = r.PublicSet(), r.KeysVersion()
				s.edit(func(es []keyring.Entry) []keyring.Entry { return es })
			}
		})
	}
	group.Wait()
}

func TestOpen_existing(t *testing.T) {
	s := newStore()
	o := keyring.Options{Store: s, Issuer: issuer, Existing: true}
	if _, err := keyring.Open(t.Context(), o); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("Open without keys = %v, want ErrNoKey", err)
	}
	if s.saves != 0 {
		t.Error("a command made keys")
	}
	if _, err := keyring.Open(t.Context(), keyring.Options{Store: s, Issuer: issuer}); err != nil {
		t.Fatal(err)
	}
	saves := s.saves
	ring, err := keyring.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Signing(t.Context(), both); err != nil || s.saves != saves {
		t.Errorf("Signing = %v, saves %d, want %d", err, s.saves, saves)
	}
}
