package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// parallel is how many requests ask for the same at the same time.
const parallel = 50

// twice is an authorization server that runs as two processes on one database file, and a hub that follows its revocations.
type twice struct {
	issuer   string
	bases    []string // of the two
	hub      string
	password string // of alice
	secret   string // of the confidential client
}

func startTwice(t *testing.T) *twice {
	t.Helper()
	dir := harness.PrivateDir(t)
	ports := harness.FreePorts(t, 3)
	s := &twice{hub: fmt.Sprintf("http://localhost:%d%s", ports[2], harness.HubPath)}
	s.secret = harness.RandomSecret(t, 32)
	harness.WriteFile(t, dir, "confidential.secret", s.secret+"\n")
	harness.WriteKey(t, dir, "hub")
	s.issuer = fmt.Sprintf("http://localhost:%d", ports[0])
	for i, port := range ports[:2] {
		s.bases = append(s.bases, fmt.Sprintf("http://localhost:%d", port))
		config := harness.WriteFile(t, dir, fmt.Sprintf("authz-%d.yaml", i), fmt.Sprintf(`
issuer: %[1]s
listen: localhost:%[2]d
tls: { mode: off }
store: { path: authz.db, secret_file: authz.secret }
resources: [ { id: %[3]s } ]
clients:
  - { id: hub, name: Hub, auth_method: private_key_jwt, jwks_file: hub.jwks, grant_types: [client_credentials], broker: true }
  - { id: public, name: Public, auth_method: none, redirect_uris: [ %[4]q ] }
  - { id: confidential, name: Confidential, auth_method: client_secret_basic, secret_file: confidential.secret, redirect_uris: [ %[4]q ] }
policies: [ { id: all, grant: [ { actions: [subscribe], topics: [ { match: "https://example.com/*", match_type: urlpattern } ] } ], on_missing_request: grant_all } ]
ops: { listen: "" }
`, s.issuer, port, s.hub, harness.Callback))
		p := harness.Start(t, "authz", "serve", "--config", config)
		p.WaitFor("authorization server is ready")
		if i == 0 {
			s.password = harness.AddUser(t, "alice", "--config", config)
		}
	}
	config := harness.WriteFile(t, dir, "hub.yaml", fmt.Sprintf(`
public_url: %s
listen: localhost:%d
tls: { mode: off }
anonymous: false
issuers: [ { id: %s, authorization_server: true, revocations: { client_id: hub, client_key_file: hub.jwk } } ]
history: { driver: memory }
ops: { listen: "" }
`, s.hub, ports[2], s.issuer))
	harness.Start(t, "hub", "serve", "--config", config).WaitFor("hub is ready")
	return s
}

// answer is what one of many got.
type answer struct {
	harness.Tokens

	status int
}

// burst sends the same request many times at once, to both processes in turn, and says how long it took from the first request to
// the last answer.
func (s *twice) burst(t *testing.T, c harness.OAuthClient, fields map[string]string) (answers []answer, took time.Duration) {
	t.Helper()
	answers = make([]answer, parallel)
	var all errgroup.Group
	start, begun := make(chan struct{}), time.Now()
	for i := range answers {
		all.Go(func() error {
			<-start
			tokens, status, err := c.At(s.bases[i%len(s.bases)]).TryToken(t.Context(), fields)
			answers[i] = answer{tokens, status}
			return err
		})
	}
	close(start)
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return answers, time.Since(begun)
}

// accepts says whether the hub opens a stream for a token.
func (s *twice) accepts(t *testing.T, c *http.Client, token string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.hub+"?match="+url.QueryEscape("https://example.com/x"), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = harness.Bearer(token)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("subscribe = %d", resp.StatusCode)
	}
	return resp.StatusCode == http.StatusOK
}

// TestParallel redeems one code and uses one refresh token many times at once, over two processes on one database file. Who is
// first wins, and keeps what it won.
func TestParallel(t *testing.T) {
	s := startTwice(t)
	for id, secret := range map[string]string{"public": "", "confidential": s.secret} {
		t.Run(id, func(t *testing.T) {
			c := harness.OAuthClient{Issuer: s.issuer, ID: id, Secret: secret, Resource: s.hub, HTTP: harness.Client(t, "")}
			won := s.redeem(t, c)
			refresh := s.refresh(t, c, won.RefreshToken)

			// Another token of the same client is revoked. When the hub has heard of that, it has heard of all that came before.
			verifier := harness.RandomSecret(t, 32)
			other, _ := c.Token(t, harness.CodeFields(c.Code(t, harness.Person{Client: harness.Client(t, "")}, "alice", s.password, verifier, ""), verifier))
			c.Revoke(t, other.AccessToken)
			for deadline := time.Now().Add(harness.Patience); s.accepts(t, c.HTTP, other.AccessToken); {
				if time.Now().After(deadline) {
					t.Fatal("the hub does not hear of revocations")
				}
			}
			if !s.accepts(t, c.HTTP, won.AccessToken) {
				t.Error("the winner's access token is refused")
			}
			last, status := c.At(s.bases[1]).Token(t, harness.RefreshFields(refresh))
			if status != http.StatusOK || !s.accepts(t, c.HTTP, last.AccessToken) {
				t.Errorf("the winner's refresh token: %d %s", status, last.Error)
			}
		})
	}
}

// redeem redeems a new code many times at once: one gets tokens, all others a refusal.
func (s *twice) redeem(t *testing.T, c harness.OAuthClient) harness.Tokens {
	t.Helper()
	for range 5 {
		verifier := harness.RandomSecret(t, 32)
		code := c.Code(t, harness.Person{Client: harness.Client(t, "")}, "alice", s.password, verifier, "")
		answers, took := s.burst(t, c, harness.CodeFields(code, verifier))
		if took > 8*time.Second {
			continue // what comes over 10 s after the redemption revokes it, as it should: this machine was too slow to tell
		}
		var won []harness.Tokens
		for _, a := range answers {
			switch {
			case a.status == http.StatusOK && a.AccessToken != "" && a.RefreshToken != "":
				won = append(won, a.Tokens)
			case a.status != http.StatusBadRequest || a.Error != "invalid_grant":
				t.Errorf("answer %d %q", a.status, a.Error)
			}
		}
		t.Logf("%d redemptions of one code took %v", parallel, took.Round(time.Millisecond))
		if len(won) != 1 {
			t.Fatalf("%d redemptions of one code were answered with tokens", len(won))
		}
		return won[0]
	}
	t.Fatal("redemptions took too long to say anything about them")
	return harness.Tokens{}
}

// refresh uses a refresh token many times at once: each gets an access token of its own. With a public client all get the same
// successor, with a confidential one the token stays. It returns the refresh token to go on with.
func (s *twice) refresh(t *testing.T, c harness.OAuthClient, token string) string {
	t.Helper()
	answers, took := s.burst(t, c, harness.RefreshFields(token))
	if took > 25*time.Second {
		t.Fatal("the uses took longer than the grace window, which revokes the family, as it should: this machine is too slow")
	}
	t.Logf("%d uses of one refresh token took %v", parallel, took.Round(time.Millisecond))
	next, access := map[string]bool{}, map[string]bool{}
	for _, a := range answers {
		if a.status != http.StatusOK || a.AccessToken == "" {
			t.Errorf("answer %d %q", a.status, a.Error)
		}
		access[a.AccessToken] = true
		next[a.RefreshToken] = true
	}
	if len(access) != parallel || len(next) != 1 {
		t.Errorf("%d access tokens and %d refresh tokens for %d uses", len(access), len(next), parallel)
	}
	for n := range next {
		if rotated := n != "" && n != token; rotated != (c.Secret == "") {
			t.Errorf("rotated: %v", rotated)
		}
		if n != "" {
			token = n
		}
	}
	return token
}
