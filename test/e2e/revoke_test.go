package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// revocable is a running site where two people, or one person twice, can sign in.
type revocable struct {
	site    *harness.Site
	where   []string // says to commands which store
	signIn  func(c *http.Client, second bool)
	topics  [2]string // what each may read
	publish func(topic, data string)
	kill    func() // ends the hub without warning and starts it again
}

func revocableSites() map[string]func(t *testing.T) revocable {
	return map[string]func(t *testing.T) revocable{
		"hub dev": func(t *testing.T) revocable {
			t.Helper()
			ports := harness.FreePorts(t, 2)
			data := filepath.Join(t.TempDir(), "data")
			d := harness.StartDevOn(t, data, ports[0], ports[1])
			topic := d.Origin + "/demo/books/1"
			c := d.Client()
			return revocable{
				site: &d.Site, where: []string{"--data", data}, topics: [2]string{topic, topic},
				signIn:  func(c *http.Client, _ bool) { d.SignIn(c) },
				publish: func(topic, data string) { d.Publish(c, topic, data, true) },
				kill:    func() { d.Kill(); d.Process = harness.StartDevOn(t, data, ports[0], ports[1]).Process },
			}
		},
		"hub serve, bundled": func(t *testing.T) revocable {
			t.Helper()
			b := harness.StartBundled(t, harness.BundledOptions{})
			return people(t, &b.Site, []string{"--config", b.Config}, func() { b.Kill(); b.Restart() })
		},
		"hub serve and authz serve": func(t *testing.T) revocable {
			t.Helper()
			a := harness.StartApart(t, harness.ApartOptions{})
			return people(t, &a.Site, []string{"--config", a.Config}, func() { a.Kill(); a.StartHub() })
		},
	}
}

// people is a site with accounts for Alice and Bob.
func people(t *testing.T, site *harness.Site, where []string, kill func()) revocable {
	t.Helper()
	passwords := map[string]string{"alice": harness.AddUser(t, "alice", where...), "bob": harness.AddUser(t, "bob", where...)}
	token := harness.Mint(t, append(where, "--publish", "*", "--ttl", "5m")...)
	c := site.Client()
	return revocable{
		site: site, where: where, kill: kill, topics: [2]string{"https://example.com/users/alice/1", "https://example.com/users/bob/1"},
		signIn: func(c *http.Client, second bool) {
			name := "alice"
			if second {
				name = "bob"
			}
			p := harness.Person{Client: c}
			p.Login(t, p.Open(t, site.LoginURL(metadataPath)), name, passwords[name])
		},
		publish: func(topic, data string) { site.PublishAs(c, token, topic, data, true) },
	}
}

// token takes the access token out of the hub's cookie.
func token(t *testing.T, c *http.Client, hub string) string {
	t.Helper()
	u, err := url.Parse(hub)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range c.Jar.Cookies(u) {
		if cookie.Name == "__Secure-mercure_access_token" {
			secretwatch.Add(t, cookie.Value)
			return cookie.Value
		}
	}
	t.Fatal("there is no cookie with a token")
	return ""
}

// grantOf gives the grant that a token belongs to.
func grantOf(t *testing.T, token string) string {
	t.Helper()
	var claims struct {
		Grant string `json:"grant_id"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil || claims.Grant == "" {
		t.Fatalf("the token names no grant: %v", err)
	}
	return claims.Grant
}

// refusedToken checks whether the hub refuses a token, presented by somebody without cookies.
func (r revocable) refusedToken(t *testing.T, token string) bool {
	t.Helper()
	c := r.site.Client()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.site.Hub()+"?match=*", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = harness.Bearer(token)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return false
	case http.StatusUnauthorized:
		if got := resp.Header.Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) {
			t.Errorf("challenge = %q", got)
		}
		return true
	}
	t.Fatalf("subscribe = %d", resp.StatusCode)
	return false
}

// TestGrantRevoke revokes a grant by a command, in another process: its stream ends, its token is refused, after a restart too,
// and nobody else notices.
func TestGrantRevoke(t *testing.T) {
	for name, start := range revocableSites() {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			first, second := r.site.Client(), r.site.Client()
			r.signIn(first, false)
			r.signIn(second, true)
			tokens := [2]string{token(t, first, r.site.Hub()), token(t, second, r.site.Hub())}
			grant, other := grantOf(t, tokens[0]), grantOf(t, tokens[1])
			if grant == other {
				t.Fatal("both sign-ins have one grant")
			}
			list := harness.Must(t, "", "authz", append([]string{"grant", "list", "--json"}, r.where...)...)
			if !strings.Contains(list, grant) || !strings.Contains(list, other) {
				t.Errorf("grant list does not name both grants: %s", list)
			}
			streams := [2]*harness.Stream{}
			for i, c := range []*http.Client{first, second} {
				streams[i] = harness.Subscribe(t, c, r.site.Hub()+"?match=*", nil)
				r.publish(r.topics[i], "before")
				if got := streams[i].Next(t); got != "before" {
					t.Fatalf("event = %q", got)
				}
			}

			harness.Must(t, "", "authz", append([]string{"grant", "revoke", grant}, r.where...)...)
			done := time.Now()
			took := max(0, streams[0].End(t).Sub(done))
			t.Logf("the stream ended %v after the command", took.Round(time.Millisecond))
			if took > 5*time.Second {
				t.Errorf("the stream lived on for %v", took)
			}
			if !r.refusedToken(t, tokens[0]) {
				t.Error("the token is accepted")
			}
			if list := harness.Must(t, "", "authz", append([]string{"grant", "list", "--json"}, r.where...)...); strings.Contains(list, grant) || !strings.Contains(list, other) {
				t.Errorf("grant list after revoking: %s", list)
			}
			r.publish(r.topics[1], "after")
			for got := ""; got != "after"; {
				got = streams[1].Next(t)
			}

			r.kill()
			if !r.refusedToken(t, tokens[0]) {
				t.Error("the token is accepted after a restart")
			}
			if r.refusedToken(t, tokens[1]) {
				t.Error("the other token is refused after a restart")
			}
		})
	}
}
