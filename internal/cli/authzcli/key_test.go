package authzcli_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

type keyJSON struct {
	KeyID       string    `json:"kid"`
	Issuer      string    `json:"issuer"`
	Algorithm   string    `json:"alg"`
	Actions     []string  `json:"actions"`
	State       string    `json:"state"`
	CreatedAt   time.Time `json:"created_at"`
	ActivatesAt time.Time `json:"activates_at"`
	RetiresAt   time.Time `json:"retires_at"`
	ExpiresAt   time.Time `json:"expires_at"`
}

type rotationJSON struct {
	Made []keyJSON `json:"made"`
	Keys []keyJSON `json:"keys"`
}

// statesOf counts keys by family and state.
func statesOf(keys []keyJSON) map[string]int {
	n := map[string]int{}
	for _, k := range keys {
		n[strings.Join(k.Actions, "+")+" "+k.State]++
	}
	return n
}

func each(states map[string]int) map[string]int {
	out := map[string]int{}
	for _, family := range []string{"publish", "subscribe", "publish+subscribe"} {
		for state, n := range states {
			out[family+" "+state] = n
		}
	}
	return out
}

func TestKeyRotate(t *testing.T) {
	p := serve(t)
	list := func() []keyJSON { return decode[[]keyJSON](t, p.ok(t, "key", "list", "--json")) }
	if diff := cmp.Diff(each(map[string]int{"active": 1}), statesOf(list())); diff != "" {
		t.Errorf("the first keys differ (-want +got):\n%s", diff)
	}
	token := p.mint(t, "--publish", "*").Token

	r := decode[rotationJSON](t, p.ok(t, "key", "rotate", "--alg", "EdDSA", "--overlap", "5m", "--json"))
	if diff := cmp.Diff(each(map[string]int{"active": 1, "next": 1}), statesOf(r.Keys)); diff != "" {
		t.Errorf("keys after a rotation differ (-want +got):\n%s", diff)
	}
	for _, k := range r.Made {
		if wait := k.ActivatesAt.Sub(k.CreatedAt); k.Algorithm != "EdDSA" || k.State != "next" || wait != 5*time.Minute || k.Issuer != issuer {
			t.Errorf("a new key is %+v, want an EdDSA one that signs in 5 minutes", k)
		}
	}
	for _, k := range r.Keys {
		if k.State == "active" && (!k.RetiresAt.Equal(r.Made[0].ActivatesAt) || k.ExpiresAt.Sub(k.RetiresAt) != 24*time.Hour+10*time.Minute) {
			t.Errorf("the old key is %+v, want it to outlive the longest token", k)
		}
	}
	again := p.run(t, "key", "rotate", "--json")
	if got := decode[rotationJSON](t, again.stdout); again.code != cli.ExitOK || len(got.Made) != 0 || !cmp.Equal(got.Keys, list()) {
		t.Errorf("a second rotation made %v, code %d", got.Made, again.code)
	}
	if r := p.run(t, "key", "rotate"); r.code != cli.ExitOK || !strings.Contains(r.stderr, "wait for their turn") {
		t.Errorf("a second rotation says %q, code %d", r.stderr, r.code)
	}

	p.ok(t, "key", "rotate", "--now")
	if diff := cmp.Diff(each(map[string]int{"active": 1, "retiring": 2}), statesOf(list())); diff != "" {
		t.Errorf("keys after --now differ (-want +got):\n%s", diff)
	}
	if got, code := p.judged(t, "inspect", "--action", "publish", token); !got.Valid || code != cli.ExitOK {
		t.Errorf("--now made the server refuse the tokens there were, at %s", got.Failed)
	}
	p.ok(t, "key", "rotate", "--now", "--revoke")
	if diff := cmp.Diff(each(map[string]int{"active": 1, "gone": 3}), statesOf(list())); diff != "" {
		t.Errorf("keys after --now --revoke differ (-want +got):\n%s", diff)
	}
	if got, _ := p.judged(t, "inspect", "--action", "publish", token); got.Failed != "key" {
		t.Errorf("--now --revoke lets a token pass until %q, want it to fail for its key", got.Failed)
	}
	if got, _ := p.judged(t, "inspect", p.mint(t, "--subscribe", "*").Token); !got.Valid {
		t.Errorf("a token of the new key is refused at %s", got.Failed)
	}
	if out := p.ok(t, "key", "list"); !strings.Contains(out, "publish+subscribe") || !strings.Contains(out, "SIGNS FROM") {
		t.Errorf("key list prints\n%s", out)
	}
	records, err := p.core.Store.ListAudit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var modes []string
	for _, r := range records {
		if r.Event == "keys_rotated" {
			modes = append(modes, r.Details["mode"])
		}
	}
	if diff := cmp.Diff([]string{"revoke", "now", "planned"}, modes); diff != "" {
		t.Errorf("rotations in the audit trail, newest first, differ (-want +got):\n%s", diff)
	}
}

func TestKeyRotate_refuses(t *testing.T) {
	p := serve(t)
	for _, args := range [][]string{
		{"--revoke"}, {"--now", "--overlap", "5m"}, {"--overlap", "10s"}, {"--overlap", "soon"}, {"--alg", "HS256"}, {"spare"},
	} {
		p.fails(t, cli.ExitUsage, "", append([]string{"key", "rotate"}, args...)...)
	}
	for range 15 { // the last ones may be too many
		p.run(t, "key", "rotate", "--now")
	}
	p.fails(t, cli.ExitFailure, "--now --revoke", "key", "rotate", "--now")
}

// TestKeyRotate_live: a server that runs has the new keys within a second, and processes that rotate at once agree.
func TestKeyRotate_live(t *testing.T) {
	p := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.issuer.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	before, err := p.issuer.Ring.Signing(t.Context(), rar.Actions(rar.Publish))
	if err != nil {
		t.Fatal(err)
	}
	p.ok(t, "key", "rotate", "--now")
	deadline, tick := time.After(10*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		now, err := p.issuer.Ring.Signing(t.Context(), rar.Actions(rar.Publish))
		if err == nil && now.ID != before.ID {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the server does not follow the rotation")
		}
	}

	second, _ := open(t, p.config)
	made := make([]int, 6)
	var group sync.WaitGroup
	for i := range made {
		core := []*authzapp.Core{p.core, second}[i%2]
		group.Go(func() {
			ring, err := core.OpenRing(context.Background(), issuer, "ES256")
			if err != nil {
				t.Error(err)
				return
			}
			keys, err := ring.Rotate(context.Background(), keyring.RotateOptions{})
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
	keys := decode[[]keyJSON](t, p.ok(t, "key", "list", "--json"))
	if diff := cmp.Diff(each(map[string]int{"active": 1, "next": 1, "retiring": 1}), statesOf(keys)); diff != "" || sum != 3 {
		t.Errorf("rotations at once made %d keys, states differ (-want +got):\n%s", sum, diff)
	}
}
