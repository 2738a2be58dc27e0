package keyring_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

func allFamilies() []rar.ActionSet { return []rar.ActionSet{subscribe, publish, both} }

func rotate(t *testing.T, r *keyring.Ring, o keyring.RotateOptions) []keyring.Entry {
	t.Helper()
	made, err := r.Rotate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// states counts the keys of a family by state.
func states(r *keyring.Ring, family rar.ActionSet, now time.Time) map[keyring.State]int {
	n := map[keyring.State]int{}
	for _, e := range r.Entries() {
		if e.Actions == family {
			n[e.State(now)]++
		}
	}
	return n
}

func TestRing_Rotate(t *testing.T) {
	t.Parallel()
	c := &clock{now: start}
	r := open(t, keyring.Options{Store: newStore(), Now: c.Now})
	old := signing(t, r, publish)
	made := rotate(t, r, keyring.RotateOptions{Overlap: 10 * time.Minute, MaxTokenLife: time.Hour, Algorithm: "EdDSA"})
	if len(made) != 3 || made[0].Private != nil || made[0].Algorithm != "EdDSA" {
		t.Fatalf("Rotate() made %d keys, the first %+v; want one EdDSA key for each family, without its private part", len(made), made[0])
	}
	next := made[slices.IndexFunc(made, func(e keyring.Entry) bool { return e.Actions == publish })]
	for _, step := range []struct {
		minute int
		signs  string
		states map[keyring.State]int
	}{
		{0, old.ID, map[keyring.State]int{keyring.Active: 1, keyring.Next: 1}},
		{9, old.ID, map[keyring.State]int{keyring.Active: 1, keyring.Next: 1}},
		{10, next.KeyID, map[keyring.State]int{keyring.Retiring: 1, keyring.Active: 1}},
		{79, next.KeyID, map[keyring.State]int{keyring.Retiring: 1, keyring.Active: 1}},
		{80, next.KeyID, map[keyring.State]int{keyring.Gone: 1, keyring.Active: 1}},
	} {
		c.Set(start.Add(time.Duration(step.minute) * time.Minute))
		if k := signing(t, r, publish); k.ID != step.signs {
			t.Errorf("minute %d: %s signs, want %s", step.minute, k.ID, step.signs)
		}
		if diff := cmp.Diff(step.states, states(r, publish, c.Now())); diff != "" {
			t.Errorf("minute %d: states differ (-want +got):\n%s", step.minute, diff)
		}
	}
}

func TestRing_Rotate_onceWhileOneWaits(t *testing.T) {
	t.Parallel()
	c := &clock{now: start}
	s := newStore()
	r := open(t, keyring.Options{Store: s, Now: c.Now})
	rotate(t, r, keyring.RotateOptions{})
	saves := s.saves
	c.Set(start.Add(9 * time.Minute))
	if made := rotate(t, r, keyring.RotateOptions{}); len(made) != 0 || s.saves != saves {
		t.Errorf("a second rotation made %d keys in %d writes, want none while the next keys wait", len(made), s.saves-saves)
	}
	c.Set(start.Add(10 * time.Minute))
	if made := rotate(t, r, keyring.RotateOptions{}); len(made) != 3 {
		t.Errorf("a rotation after the first one made %d keys, want 3", len(made))
	}
}

func TestRing_Rotate_immediately(t *testing.T) {
	t.Parallel()
	for _, revoke := range []bool{false, true} {
		c := &clock{now: start}
		r := open(t, keyring.Options{Store: newStore(), Now: c.Now})
		old := signing(t, r, both)
		planned := rotate(t, r, keyring.RotateOptions{})
		c.Set(start.Add(time.Minute))
		made := rotate(t, r, keyring.RotateOptions{Immediately: true, Revoke: revoke})
		if k := signing(t, r, both); len(made) != 3 || k.ID != made[2].KeyID {
			t.Errorf("revoke %t: %s signs, want the new key of the family", revoke, k.ID)
		}
		want := map[keyring.State]int{keyring.Active: 1, keyring.Retiring: 2}
		accepted := 1
		if revoke {
			want, accepted = map[keyring.State]int{keyring.Active: 1, keyring.Gone: 2}, 0
		}
		if diff := cmp.Diff(want, states(r, both, c.Now())); diff != "" {
			t.Errorf("revoke %t: states differ (-want +got):\n%s", revoke, diff)
		}
		for _, id := range []string{old.ID, planned[2].KeyID} {
			if keys, _ := r.Keys(t.Context(), id); len(keys) != accepted {
				t.Errorf("revoke %t: Keys(%s) = %d keys, want %d", revoke, id, len(keys), accepted)
			}
		}
		c.Set(start.Add(time.Hour)) // the planned key never signs
		if k := signing(t, r, both); k.ID != made[2].KeyID {
			t.Errorf("revoke %t: %s signs an hour later, want the new key", revoke, k.ID)
		}
	}
}

func TestRing_Rotate_mendsGaps(t *testing.T) {
	t.Parallel()
	c := &clock{now: start}
	s := newStore()
	r := open(t, keyring.Options{Store: s, Now: c.Now})
	s.edit(func(es []keyring.Entry) []keyring.Entry {
		for i := range es {
			switch es[i].Actions {
			case publish: // would stop before a key made now takes over
				es[i].RetiresAt, es[i].ExpiresAt = start.Add(time.Minute), start.Add(2*time.Minute)
			case subscribe: // signs no more
				es[i].RetiresAt = start
			}
		}
		return es
	})
	rotate(t, r, keyring.RotateOptions{})
	for minute := range 30 {
		c.Set(start.Add(time.Duration(minute) * time.Minute))
		for _, f := range allFamilies() {
			if n := states(r, f, c.Now())[keyring.Active]; n != 1 {
				t.Errorf("minute %d: %d keys sign for %s, want 1", minute, n, f)
			}
		}
	}
}

func TestRing_Rotate_refuses(t *testing.T) {
	t.Parallel()
	broken := newStore()
	r := open(t, keyring.Options{Store: broken})
	for name, c := range map[string]struct {
		o    keyring.RotateOptions
		want error
	}{
		"a negative overlap":       {keyring.RotateOptions{Overlap: -1}, keyring.ErrRotation},
		"a negative token life":    {keyring.RotateOptions{MaxTokenLife: -1}, keyring.ErrRotation},
		"revoking without haste":   {keyring.RotateOptions{Revoke: true}, keyring.ErrRotation},
		"an algorithm nobody made": {keyring.RotateOptions{Algorithm: "HS256"}, token.ErrKey},
	} {
		if made, err := r.Rotate(t.Context(), c.o); !errors.Is(err, c.want) || made != nil {
			t.Errorf("%s: Rotate() = %v, %v, want %v", name, made, err, c.want)
		}
	}
	broken.setFail(errors.New("disk"))
	if _, err := r.Rotate(t.Context(), keyring.RotateOptions{}); !errors.Is(err, broken.fail) {
		t.Errorf("Rotate() on a broken store = %v", err)
	}
	never := &conflicting{store: newStore()}
	open(t, keyring.Options{Store: never.store})
	r = open(t, keyring.Options{Store: never})
	if _, err := r.Rotate(t.Context(), keyring.RotateOptions{}); !errors.Is(err, keyring.ErrConflict) || never.saves > 50 {
		t.Errorf("Rotate() with conflicts without end = %v after %d attempts, want ErrConflict after some", err, never.saves)
	}
}

func TestRing_Rotate_keepsTheSetShort(t *testing.T) {
	t.Parallel()
	c := &clock{now: start}
	r := open(t, keyring.Options{Store: newStore(), Now: c.Now})
	var err error
	for range 40 {
		if _, err = r.Rotate(t.Context(), keyring.RotateOptions{Immediately: true}); err != nil {
			break
		}
	}
	if !errors.Is(err, keyring.ErrCrowded) {
		t.Errorf("Rotate() = %v after many rotations, want ErrCrowded", err)
	}
	if _, err := token.ParseJWKSet(r.PublicSet(), 0); err != nil {
		t.Errorf("verifiers refuse the set: %v", err)
	}
	rotate(t, r, keyring.RotateOptions{Immediately: true, Revoke: true}) // makes room
	c.Set(start.Add(48 * time.Hour))
	rotate(t, r, keyring.RotateOptions{})
	if n := len(r.Entries()); n != 6 {
		t.Errorf("%d keys are kept two days later, want those that sign and those that wait", n)
	}
}

// TestRing_Rotate_together lets processes rotate at once: they agree on one key for each family.
func TestRing_Rotate_together(t *testing.T) {
	t.Parallel()
	c := &clock{now: start}
	s := newStore()
	const processes = 8
	var rings []*keyring.Ring
	for range processes {
		rings = append(rings, open(t, keyring.Options{Store: s, Now: c.Now}))
	}
	made := make([]int, processes)
	var group sync.WaitGroup
	for i, r := range rings {
		group.Go(func() {
			keys, err := r.Rotate(context.Background(), keyring.RotateOptions{})
			if err != nil {
				t.Error(err)
			}
			made[i] = len(keys)
		})
	}
	group.Wait()
	sum := 0
	for _, n := range made {
		sum += n
	}
	if sum != 3 || len(s.entries[issuer]) != 6 {
		t.Errorf("%d processes made %d keys, the store has %d; want 3 new ones, 6 in all", processes, sum, len(s.entries[issuer]))
	}
	for _, r := range rings {
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if string(r.PublicSet()) != string(rings[0].PublicSet()) {
			t.Error("two processes publish different keys")
		}
	}
}

func TestRing_Rotate_losesRaces(t *testing.T) {
	t.Parallel()
	for _, immediately := range []bool{false, true} {
		s := newStore()
		first, second := open(t, keyring.Options{Store: s}), open(t, keyring.Options{Store: s})
		s.beforeSave = func() { rotate(t, second, keyring.RotateOptions{}) }
		made := rotate(t, first, keyring.RotateOptions{Immediately: immediately})
		want, keys := map[keyring.State]int{keyring.Active: 1, keyring.Next: 1}, 0
		if immediately { // it retires what the other one planned
			want, keys = map[keyring.State]int{keyring.Active: 1, keyring.Retiring: 2}, 3
		}
		if diff := cmp.Diff(want, states(first, publish, start)); diff != "" || len(made) != keys {
			t.Errorf("immediately %t: %d keys were made, want %d; states differ (-want +got):\n%s", immediately, len(made), keys, diff)
		}
	}
}

// gap finds an instant from now on at which not exactly one key of a family signs.
func gap(entries []keyring.Entry, family rar.ActionSet, now time.Time) (at time.Time, found bool) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e keyring.Entry) bool { return e.Actions != family })
	instants := []time.Time{now}
	for _, e := range entries {
		for _, t := range []time.Time{e.ActivatesAt, e.RetiresAt, e.ExpiresAt} {
			instants = append(instants, t.Add(-time.Millisecond), t)
		}
	}
	for _, at := range instants {
		signing := 0
		for _, e := range entries {
			if e.State(at) == keyring.Active {
				signing++
			}
		}
		if !at.Before(now) && signing != 1 {
			return at, true
		}
	}
	return time.Time{}, false
}

// signed is a token as far as its key goes.
type signed struct {
	kid string
	exp time.Time
}

// TestRing_Rotate_property drives rotations of all kinds and the clock at random: always exactly one key of a family signs, and a
// token verifies until it expires unless its key was revoked.
func TestRing_Rotate_property(t *testing.T) {
	t.Parallel()
	const life = 36 * time.Hour
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{now: start}
		s := newStore()
		first, err := keyring.Open(context.Background(), keyring.Options{Store: s, Issuer: issuer, Now: c.Now, Algorithm: "EdDSA"})
		if err != nil {
			t.Fatal(err)
		}
		second, err := keyring.Open(context.Background(), keyring.Options{Store: s, Issuer: issuer, Now: c.Now, Algorithm: "EdDSA"})
		if err != nil {
			t.Fatal(err)
		}
		rings := []*keyring.Ring{first, second}
		var tokens []signed
		do := func(r *keyring.Ring, o keyring.RotateOptions) {
			o.MaxTokenLife = life
			if _, err := r.Rotate(context.Background(), o); err != nil && !errors.Is(err, keyring.ErrCrowded) {
				t.Fatal(err)
			} else if err == nil && o.Revoke {
				tokens = nil // refused from now on, as it was asked for
			}
		}
		pick := func(t *rapid.T) *keyring.Ring { return rapid.SampledFrom(rings).Draw(t, "process") }
		t.Repeat(map[string]func(*rapid.T){
			"rotate": func(t *rapid.T) {
				minutes := rapid.IntRange(1, 30).Draw(t, "overlap")
				do(pick(t), keyring.RotateOptions{Overlap: time.Duration(minutes) * time.Minute})
			},
			"rotate now":        func(t *rapid.T) { do(pick(t), keyring.RotateOptions{Immediately: true}) },
			"rotate and revoke": func(t *rapid.T) { do(pick(t), keyring.RotateOptions{Immediately: true, Revoke: true}) },
			"wait": func(t *rapid.T) {
				seconds := rapid.SampledFrom([]int64{1, 600, 3600, 24 * 3600, 72 * 3600}).Draw(t, "seconds")
				c.Set(c.Now().Add(time.Duration(seconds) * time.Second))
			},
			"sign": func(t *rapid.T) {
				k, err := pick(t).Signing(context.Background(), rapid.SampledFrom(allFamilies()).Draw(t, "family"))
				if err != nil {
					t.Fatal(err)
				}
				ttl := time.Duration(rapid.Int64Range(1, int64(life/time.Second)).Draw(t, "ttl")) * time.Second
				tokens = append(tokens, signed{k.ID, c.Now().Add(ttl)})
			},
			"": func(t *rapid.T) {
				for _, r := range rings { // as Run does each second
					if err := r.Reload(context.Background()); err != nil {
						t.Fatal(err)
					}
					entries := r.Entries()
					for _, f := range allFamilies() {
						if at, found := gap(entries, f, c.Now()); found {
							t.Fatalf("not one key alone signs for %s in %v", f, at.Sub(c.Now()))
						}
					}
					if keys, err := r.Keys(context.Background(), ""); err != nil || len(keys) > 64 {
						t.Fatalf("verifiers refuse a set of %d keys", len(keys))
					}
				}
				tokens = slices.DeleteFunc(tokens, func(s signed) bool { return !c.Now().Before(s.exp) })
				for _, s := range tokens {
					if keys, err := second.Keys(context.Background(), s.kid); err != nil || len(keys) != 1 {
						t.Fatalf("a token that expires in %v has lost its key", s.exp.Sub(c.Now()))
					}
				}
			},
		})
	})
}
