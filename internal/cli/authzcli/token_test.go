package authzcli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
)

type judgementJSON struct {
	Valid    bool `json:"valid"`
	Verdicts []struct {
		Check  string `json:"check"`
		Status string `json:"status"`
		Detail string `json:"detail"`
	} `json:"verdicts"`
	Warnings  []string       `json:"warnings"`
	Header    map[string]any `json:"header"`
	Payload   map[string]any `json:"payload"`
	Failed    string         `json:"failed"`
	RevokedBy *struct {
		Kind         string    `json:"kind"`
		Value        string    `json:"value"`
		IssuedBefore time.Time `json:"issued_before"`
	} `json:"revoked_by"`
	Answers []answerJSON `json:"answers"`
}

type answerJSON struct {
	Action  string       `json:"action"`
	Topic   string       `json:"topic"`
	Allowed bool         `json:"allowed"`
	Note    string       `json:"note"`
	Details []detailJSON `json:"details"`
}

type detailJSON struct {
	Index   int    `json:"index"`
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

type mintedJSON struct {
	Token     string    `json:"access_token"`
	ID        string    `json:"jti"`
	Subject   string    `json:"sub"`
	Resource  string    `json:"resource"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (p *place) mint(t *testing.T, args ...string) mintedJSON {
	t.Helper()
	return decode[mintedJSON](t, p.ok(t, append([]string{"token", "mint", "--json"}, args...)...))
}

// judged runs inspect or explain with --json and returns the judgement and the exit code.
func (p *place) judged(t *testing.T, verb string, args ...string) (judgementJSON, int) {
	t.Helper()
	r := p.run(t, append([]string{"token", verb, "--json"}, args...)...)
	if r.stdout == "" {
		t.Fatalf("authz token %s: code %d, %s", verb, r.code, r.stderr)
	}
	return decode[judgementJSON](t, r.stdout), r.code
}

func TestTokenMint(t *testing.T) {
	p := serve(t)
	got := p.mint(t, "--subscribe", "*", "--sub", "u_1", "--ttl", "1m")
	if got.Subject != "u_1" || got.Resource != hubURL || strings.Count(got.Token, ".") != 2 || got.ID == "" {
		t.Errorf("token mint --json = %+v", got)
	}
	if left := time.Until(got.ExpiresAt); left < 30*time.Second || left > time.Minute {
		t.Errorf("the token expires in %v, want about a minute", left)
	}
	if out := p.ok(t, "token", "mint", "--subscribe", "*"); strings.Count(out, "\n") != 1 || strings.Count(out, ".") != 2 {
		t.Errorf("token mint prints %q, want the token alone", out)
	}
	if diff := cmp.Diff([]string{as.EventTokenMinted, as.EventTokenMinted}, p.audited(t)); diff != "" {
		t.Errorf("audit trail: %s", diff)
	}
}

func TestTokenExplain(t *testing.T) {
	p := serve(t)
	token := p.mint(t, "--publish", "https://example.com/books/1", "--subscribe-pattern", "https://example.com/books/:id").Token
	yes := func(i int, reason string) detailJSON { return detailJSON{Index: i, Allowed: true, Reason: reason} }
	no := func(i int, reason string) detailJSON { return detailJSON{Index: i, Reason: reason} }
	notFor := func(i int, action, other string) detailJSON {
		return no(i, "it is not for "+action+", but for "+other)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want []answerJSON
	}{
		"a topic that is granted": {
			[]string{"--topic", "https://example.com/books/1", "--action", "publish"},
			cli.ExitOK,
			[]answerJSON{{
				Action: "publish", Topic: "https://example.com/books/1", Allowed: true,
				Details: []detailJSON{yes(0, `matches "https://example.com/books/1"`), notFor(1, "publish", "subscribe")},
			}},
		},
		"both actions": {
			[]string{"--topic", "https://example.com/books/2"},
			cli.ExitFailure,
			[]answerJSON{
				{
					Action: "publish", Topic: "https://example.com/books/2",
					Details: []detailJSON{no(0, `none of its topics matches: "https://example.com/books/1"`), notFor(1, "publish", "subscribe")},
				},
				{
					Action: "subscribe", Topic: "https://example.com/books/2", Allowed: true,
					Details: []detailJSON{notFor(0, "subscribe", "publish"), yes(1, `matches pattern "https://example.com/books/:id"`)},
				},
			},
		},
		"a topic of the hub's own": {
			[]string{"--topic", hubURL + "/subscriptions/x", "--action", "publish"},
			cli.ExitFailure,
			[]answerJSON{{
				Action: "publish", Topic: hubURL + "/subscriptions/x", Note: "the hub keeps this topic for itself: publishing to it is refused whatever the token",
				Details: []detailJSON{no(0, `none of its topics matches: "https://example.com/books/1"`), notFor(1, "publish", "subscribe")},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, code := p.judged(t, "explain", append(c.args, token)...)
			if diff := cmp.Diff(c.want, got.Answers); diff != "" || code != c.code || !got.Valid {
				t.Errorf("code %d, valid %t, answers differ (-want +got):\n%s", code, got.Valid, diff)
			}
		})
	}
	t.Run("in words", func(t *testing.T) {
		r := p.run(t, "token", "explain", "--topic", "https://example.com/books/2", token)
		for _, want := range []string{
			"\npublish https://example.com/books/2: no\n", "\nsubscribe https://example.com/books/2: yes\n",
			`  detail 1  yes  matches pattern "https://example.com/books/:id"`, "  revocation   ok  not revoked\n",
		} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("token explain lacks %q:\n%s", want, r.stdout)
			}
		}
		if r.code != cli.ExitFailure || !strings.Contains(r.stderr, "does not allow to publish https://example.com/books/2") {
			t.Errorf("code %d, %s", r.code, r.stderr)
		}
		if strings.Contains(r.stdout+r.stderr, token) {
			t.Error("the token is printed")
		}
	})
	t.Run("a wildcard of many", func(t *testing.T) {
		args := []string{"--subscribe", "*"}
		for id := range strings.SplitSeq("a b c d e f g h i j", " ") {
			args = append(args, "--publish", id)
		}
		many := p.mint(t, args...).Token
		got, _ := p.judged(t, "explain", "--topic", "x", many)
		if r := got.Answers[0].Details[0].Reason; !strings.HasSuffix(r, `"h", and 2 more`) {
			t.Errorf("a long list is told as %q", r)
		}
		if r := got.Answers[1].Details[1].Reason; r != "matches every topic (*)" {
			t.Errorf("the wildcard is told as %q", r)
		}
	})
}

// TestTokenInspect_agrees: inspect and explain are one implementation, and a token that does not verify is judged to the end.
func TestTokenInspect_agrees(t *testing.T) {
	p := serve(t)
	token := p.mint(t, "--subscribe", "*").Token
	for name, c := range map[string]struct{ token, failed string }{
		"good":            {token, ""},
		"no token at all": {"x.y.z", "form"},
		"broken": {func() string {
			part := strings.Split(token, ".")
			return part[0] + "." + part[1] + "." + strings.Repeat("A", len(part[2]))
		}(), "signature"},
	} {
		inspected, code := p.judged(t, "inspect", c.token)
		explained, other := p.judged(t, "explain", "--action", "subscribe", c.token)
		if diff := cmp.Diff(inspected.Failed, c.failed); diff != "" || code != other || (code == cli.ExitOK) != (c.failed == "") {
			t.Errorf("%s: failed at %q, codes %d and %d", name, inspected.Failed, code, other)
		}
		if len(inspected.Verdicts) != 18 {
			t.Errorf("%s: %d verdicts, want one for each check", name, len(inspected.Verdicts))
		}
		for i, v := range inspected.Verdicts {
			if w := explained.Verdicts[i]; v.Check != w.Check || v.Status != w.Status {
				t.Errorf("%s: inspect says %v, explain %v", name, v, w)
			}
		}
	}
	r := p.run(t, "token", "inspect", "x.y.z")
	if strings.Count(r.stdout, ">") != 1 || !strings.Contains(r.stdout, "> form ") {
		t.Errorf("the first failure is not marked, or not alone:\n%s", r.stdout)
	}
}

func TestTokenMint_life(t *testing.T) {
	p := serve(t)
	for _, ttl := range []string{"0s", "-1m", "999ms", "24h1s"} {
		p.fails(t, cli.ExitUsage, "--ttl must be between 1s and 24h0m0s", "token", "mint", "--publish", "*", "--ttl", ttl)
	}
}

func TestTokenRevoke(t *testing.T) {
	p := serve(t)
	first, second := p.mint(t, "--subscribe", "*"), p.mint(t, "--subscribe", "*")
	file := filepath.Join(p.dir, "token")
	if err := os.WriteFile(file, []byte(first.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is harmless
		if out := p.ok(t, "token", "revoke", "--token-file", file); out != "revoked token "+first.ID+"\n" {
			t.Errorf("token revoke prints %q", out)
		}
	}
	p.ok(t, "token", "revoke", "--jti", second.ID)
	for _, m := range []mintedJSON{first, second} {
		got, code := p.judged(t, "inspect", m.Token)
		if got.Failed != "revocation" || code != cli.ExitFailure || got.RevokedBy == nil || got.RevokedBy.Kind != "jti" || got.RevokedBy.Value != m.ID {
			t.Errorf("inspect of a revoked token: failed at %q, code %d, revoked by %+v", got.Failed, code, got.RevokedBy)
		}
	}
	if got, code := p.judged(t, "inspect", p.mint(t, "--subscribe", "*").Token); !got.Valid || code != cli.ExitOK || got.RevokedBy != nil {
		t.Errorf("a token nobody revoked is %+v", got)
	}
	p.fails(t, cli.ExitUsage, "no token that", "token", "revoke", "x.y.z")
	p.fails(t, cli.ExitFailure, "knows no token", "token", "revoke", "--jti", "nobody")
	p.fails(t, cli.ExitUsage, "not both", "token", "revoke", "--jti", first.ID, first.Token)
	// An unset variable must not make it another token's revocation.
	environ := []string{"CINNABAR_TOKEN=" + first.Token}
	if r := executeIn(t.Context(), cli.Env{Args: []string{"token", "revoke", "--config", p.config, "--jti", ""}, Environ: environ}); r.code != cli.ExitUsage {
		t.Errorf("token revoke --jti '': %+v", r)
	}
	p.fails(t, cli.ExitUsage, "no token", "token", "revoke")

	t.Run("a token somebody else wrote", func(t *testing.T) {
		other := serve(t)
		foreign := other.mint(t, "--subscribe", "*")
		p.fails(t, cli.ExitUsage, "no token that "+issuer+" signed", "token", "revoke", foreign.Token)
	})
}

// grant puts a grant and a token of it into the store, as a login does.
func (p *place) grant(t *testing.T, id string, a store.Account, client string, age time.Duration) {
	t.Helper()
	now := time.Now()
	err := p.core.Store.CreateGrant(t.Context(), store.Grant{
		ID: id, Issuer: issuer, ClientID: client, AccountID: a.ID, SessionID: "s-" + id, Resource: hubURL,
		Details:   []byte(`[{"type":"https://mercure.rocks/authorization-detail","actions":["subscribe"],"topics":[{"match":"*"}]}]`),
		CreatedAt: now.Add(-age), ExpiresAt: now.Add(time.Hour - age),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

type grantJSON struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Issuer    string    `json:"issuer"`
	ClientID  string    `json:"client_id"`
	Subject   string    `json:"sub"`
	Username  string    `json:"username"`
	SessionID string    `json:"sid"`
	Resource  string    `json:"resource"`
	Details   []any     `json:"authorization_details"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	RevokedAt time.Time `json:"revoked_at"`
}

func TestGrant(t *testing.T) {
	p := serve(t)
	alice, err := p.core.Accounts.Create(t.Context(), "alice", "correct horse battery", nil)
	if err != nil {
		t.Fatal(err)
	}
	bob, err := p.core.Accounts.Create(t.Context(), "bob", "correct horse battery", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.ok(t, "client", "create", "--id", "other", "--redirect-uri", "https://o.example.com/cb")
	p.grant(t, "g1", alice, "spa", 3*time.Minute)
	p.grant(t, "g2", alice, "other", 2*time.Minute)
	p.grant(t, "g3", bob, "spa", time.Minute)
	p.grant(t, "g4", bob, "spa", 2*time.Hour) // expired

	listed := func(args ...string) string {
		t.Helper()
		var ids []string
		for _, g := range decode[[]grantJSON](t, p.ok(t, append([]string{"grant", "list", "--json"}, args...)...)) {
			ids = append(ids, g.ID)
			if g.State != "active" {
				ids[len(ids)-1] += " " + g.State
			}
			if g.Issuer != issuer || g.Resource != hubURL || len(g.Details) != 1 || g.SessionID != "s-"+g.ID || g.CreatedAt.IsZero() {
				t.Errorf("grant %+v is not whole", g)
			}
		}
		return strings.Join(ids, ",")
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"g3,g2,g1", nil},
		{"g3,g2,g1,g4 expired", []string{"--all"}},
		{"g2,g1", []string{"--user", "alice"}},
		{"g2,g1", []string{"--user", "ALICE"}},
		{"g3", []string{"--user", bob.ID}},
		{"g3,g1", []string{"--client", "spa"}},
		{"g1", []string{"--client", "spa", "--user", "alice"}},
		{"", []string{"--client", "nobody"}},
	} {
		if got := listed(c.args...); got != c.want {
			t.Errorf("grant list %v = %q, want %q", c.args, got, c.want)
		}
	}
	p.fails(t, cli.ExitFailure, `no user "carol"`, "grant", "list", "--user", "carol")
	if out := p.ok(t, "grant", "list"); !strings.Contains(out, "alice") || !strings.Contains(out, "ID") {
		t.Errorf("grant list prints\n%s", out)
	}

	for range 2 { // twice is harmless
		if out := p.ok(t, "grant", "revoke", "g1"); out != "revoked grant g1\n" {
			t.Errorf("grant revoke prints %q", out)
		}
	}
	p.fails(t, cli.ExitFailure, `no grant "nobody"`, "grant", "revoke", "nobody")
	if got := listed("--all"); got != "g3,g2,g1 revoked,g4 expired" {
		t.Errorf("grant list --all = %q after a revocation", got)
	}
	log, err := p.core.Store.RevocationsSince(t.Context(), 0, 10)
	if err != nil || len(log) != 1 || log[0].Kind != store.RevokeGrant || log[0].Value != "g1" {
		t.Errorf("the revocation log is %+v (%v), want one entry for the grant", log, err)
	}
	if events := p.audited(t); events[len(events)-1] != as.EventGrantRevoked {
		t.Errorf("audit trail: %v", events)
	}
}
