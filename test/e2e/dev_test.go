package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/needs"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// printed gives the command lines of a banner, by their titles.
func printed(banner string) map[string]string {
	out := map[string]string{}
	title := ""
	for line := range strings.Lines(banner) {
		line = strings.TrimSpace(line)
		if t, ok := strings.CutPrefix(line, "# "); ok {
			title = t
		} else if title != "" && line != "" {
			out[title], title = line, ""
		}
	}
	return out
}

// shell runs a command line as a user does who pastes it, in a folder of its own, and gives its standard output.
func shell(t *testing.T, ctx context.Context, line string) (*exec.Cmd, *lineBuffer) { //nolint:revive // the test comes first
	t.Helper()
	out := newLineBuffer()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	cmd.Dir = t.TempDir()
	w := secretwatch.Output(t, "shell", out)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func TestDev_printedCommandsWork(t *testing.T) {
	needs.Program(t, "curl")
	d := startDev(t, filepath.Join(t.TempDir(), "da ta", "dir"))
	lines := printed(d.out.String())
	for _, with := range []string{"curl", "hub"} {
		t.Run(with, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			watch, seen := shell(t, ctx, lines["watch with "+with])
			defer func() { cancel(); _ = watch.Wait() }()
			if !publishUntilSeen(func() (string, error) {
				publish, out := shell(t, ctx, lines["publish with "+with])
				err := publish.Wait()
				return out.String(), err
			}, seen) {
				t.Errorf("the watcher saw nothing: %s", seen)
			}
		})
	}
	if banner := d.out.String(); strings.Contains(strings.ToLower(banner), "password") {
		t.Error("the banner speaks of a password")
	}
}

func TestDev_refusals(t *testing.T) {
	d := startDev(t, filepath.Join(t.TempDir(), "data"))
	c := d.client()
	topic := d.origin + "/demo/books/1"
	good := d.header("publish")
	meta := `resource_metadata="` + d.origin + `/.well-known/oauth-protected-resource/.well-known/mercure"`
	for _, tc := range []struct {
		name      string
		auth      string
		form      url.Values
		status    int
		challenge string
	}{
		{"no token: a bare challenge", "", url.Values{"topic": {topic}}, 401, "Bearer " + meta},
		{"no token comes before a malformed request", "", url.Values{"data": {"x"}}, 401, "Bearer " + meta},
		{"a bad token", good[:len(good)-10] + "AAAAAAAAAA", url.Values{"topic": {topic}}, 401, `Bearer error="invalid_token"`},
		{"a malformed presentation", "Bearer a b", url.Values{"topic": {topic}}, 400, `Bearer error="invalid_request"`},
		{"no grant", d.header("subscribe"), url.Values{"topic": {topic}}, 403, `Bearer error="insufficient_scope"`},
		{"a malformed request", good, url.Values{"data": {"x"}}, 400, ""},
		{"a malformed request comes before the missing grant", d.header("subscribe"), url.Values{"topic": {"*"}}, 400, ""},
		{"a reserved topic, whatever the token", good, url.Values{"topic": {d.hub() + "/x"}}, 400, ""},
		{"too large", good, url.Values{"topic": {topic}, "data": {strings.Repeat("x", 2<<20)}}, 413, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{}
			if tc.auth != "" {
				h.Set("Authorization", tc.auth)
			}
			resp, body := do(t, c, http.MethodPost, d.hub(), tc.form, h)
			got := resp.Header.Get("WWW-Authenticate")
			if resp.StatusCode != tc.status {
				t.Errorf("status = %d, want %d: %s", resp.StatusCode, tc.status, body)
			}
			switch {
			case tc.challenge == "" && got != "":
				t.Errorf("challenge = %q, want none", got)
			case !strings.HasPrefix(normalChallenge(got), tc.challenge):
				t.Errorf("challenge = %q, want %q first", got, tc.challenge)
			case tc.challenge != "" && tc.status != 400 && !strings.Contains(got, meta):
				t.Errorf("challenge = %q, want the metadata in it", got)
			}
			if !json.Valid([]byte(body)) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
				t.Errorf("body is no problem document: %q %q", resp.Header.Get("Content-Type"), body)
			}
		})
	}
	resp, body := do(t, c, http.MethodGet, d.origin+"/.well-known/oauth-protected-resource/.well-known/mercure", nil, nil)
	var doc struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Cookie   string   `json:"mercure_cookie"`
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("metadata = %d %s", resp.StatusCode, body)
	}
	if doc.Resource != d.hub() || !slices.Equal(doc.Servers, []string{d.origin}) || doc.Cookie != "__Secure-mercure_access_token" {
		t.Errorf("metadata = %s", body)
	}
}

// normalChallenge puts the error first, since the order of parameters means nothing.
func normalChallenge(c string) string {
	re := regexp.MustCompile(`^Bearer (resource_metadata="[^"]*"), (error="[^"]*")`)
	return re.ReplaceAllString(c, "Bearer $2, $1")
}

func TestDev_servesNoOtherHost(t *testing.T) {
	d := startDev(t, filepath.Join(t.TempDir(), "data"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.plain+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example.com"
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // plain HTTP on loopback
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("status = %d, want 421", resp.StatusCode)
	}
}

func TestDev_facesAreTwoSites(t *testing.T) {
	d := startDev(t, filepath.Join(t.TempDir(), "data"))
	c := d.client()
	// The header file's token is for the HTTPS face; the plain one has another issuer and resource (TOK-13, TOK-18).
	resp, body := do(t, c, http.MethodPost, d.plainHub(), url.Values{"topic": {"https://example.com/x"}}, http.Header{"Authorization": {d.header("publish")}})
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the plain face accepted the HTTPS face's token: %d %s", resp.StatusCode, body)
	}
	for _, origin := range []string{d.origin, d.plain} {
		resp, body := do(t, c, http.MethodGet, origin+"/.well-known/oauth-authorization-server", nil, nil)
		var meta struct{ Issuer string }
		if err := json.Unmarshal([]byte(body), &meta); err != nil || resp.StatusCode != http.StatusOK || meta.Issuer != origin {
			t.Errorf("metadata of %s = %d %s", origin, resp.StatusCode, body)
		}
	}
	// An update reaches both.
	s := subscribe(t, c, d.plainHub()+"?match="+url.QueryEscape("https://example.com/x"), nil)
	d.publish(c, "https://example.com/x", "both", false)
	if got := s.next(t); got != "both" {
		t.Errorf("event = %q", got)
	}
}

func TestDev_mintAndInspect(t *testing.T) {
	for name, args := range map[string][]string{"kept": nil, "ephemeral": {"--ephemeral"}} {
		t.Run(name, func(t *testing.T) {
			d := startDev(t, filepath.Join(t.TempDir(), "data"), args...)
			minted, stderr, code := command(t, "", "authz", "token", "mint", "--data", d.data, "--publish", "*")
			if code != 0 {
				t.Fatalf("mint = %d %s", code, stderr)
			}
			token := strings.TrimSpace(minted)
			secretwatch.Add(t, token)
			resp, body := do(t, d.client(), http.MethodPost, d.hub(), url.Values{"topic": {"https://example.com/minted"}, "data": {"x"}},
				http.Header{"Authorization": {"Bearer " + token}})
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("publish with the minted token = %d %s", resp.StatusCode, body)
			}
			out, _, code := command(t, token, "authz", "token", "inspect", "--data", d.data, "--action", "publish", "-")
			if code != 0 {
				t.Errorf("inspect = %d %s", code, out)
			}
			for _, check := range []string{"size", "form", "header", "typ", "alg", "crit", "payload", "iss", "key", "signature", "exp", "nbf", "iat", "aud", "cnf", "details", "key_actions", "revocation"} {
				if !regexp.MustCompile(`(?m)^` + check + `\s+ok\s`).MatchString(out) {
					t.Errorf("no verdict of %s in:\n%s", check, out)
				}
			}
			if strings.Contains(out, token) {
				t.Error("inspect prints the token")
			}
			broken := token[:len(token)-8] + "AAAAAAAA"
			out, _, code = command(t, broken, "authz", "token", "inspect", "--data", d.data, "-")
			if code != 1 || !regexp.MustCompile(`(?m)^signature\s+failed\s`).MatchString(out) {
				t.Errorf("inspect of a broken token = %d\n%s", code, out)
			}
		})
	}
}

// snapshot is what must survive.
func (d *dev) keySet(c *http.Client) string {
	d.t.Helper()
	_, body := do(d.t, c, http.MethodGet, d.origin+"/jwks.json", nil, nil)
	return body
}

func TestDev_survives(t *testing.T) {
	for name, end := range map[string]func(*dev){"restart": func(d *dev) { d.stop() }, "SIGKILL": func(d *dev) { d.kill() }} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			ports := freePorts(t, 2)
			d := startDevOn(t, data, ports[0], ports[1])
			c := d.client()
			if _, stderr, code := command(t, "correct horse battery\n", "authz", "user", "add", "--data", data, "--password-stdin", "alice"); code != 0 {
				t.Fatalf("user add = %d %s", code, stderr)
			}
			d.signIn(c)
			keys := d.keySet(c)
			topic := d.origin + "/demo/books/7"
			var ids []string
			for _, v := range []string{"one", "two", "three"} {
				ids = append(ids, d.publish(c, topic, v, true))
			}
			end(d)

			d = startDevOn(t, data, ports[0], ports[1])
			again := d.client()
			again.Jar = c.Jar
			if got := d.keySet(again); got != keys {
				t.Error("the signing keys changed")
			}
			if out, _, _ := command(t, "", "authz", "user", "list", "--data", data); !strings.Contains(out, "alice") {
				t.Errorf("users = %s", out)
			}
			if s := d.session(again); !s.Active {
				t.Errorf("session = %+v", s)
			}
			s := subscribe(t, again, d.hub()+"?match="+url.QueryEscape(topic)+"&last_event_id="+url.QueryEscape(ids[0]), nil)
			if got := s.resp.Header.Get("Mercure-Last-Event-ID"); got != ids[0] {
				t.Errorf("resumed from %q, want %q", got, ids[0])
			}
			for _, want := range []string{"two", "three"} {
				if got := s.next(t); got != want {
					t.Errorf("event = %q, want %q", got, want)
				}
			}
		})
	}
}

func TestDev_ephemeralKeepsNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	d := startDev(t, data, "--ephemeral")
	d.publish(d.client(), "https://example.com/x", "gone soon", false)
	d.stop()
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		left, _ := filepath.Glob(filepath.Join(data, "*"))
		t.Errorf("left behind: %v", left)
	}

	t.Run("nor what a killed one left", func(t *testing.T) {
		d := startDev(t, data, "--ephemeral")
		id := d.publish(d.client(), "https://example.com/x", "gone soon", false)
		d.kill()
		d = startDev(t, data, "--ephemeral")
		s := subscribe(t, d.client(), d.hub()+"?match=*&last_event_id="+url.QueryEscape(id), nil)
		if got := s.resp.Header.Get("Mercure-Last-Event-ID"); got != "earliest" {
			t.Errorf("resumed from %q: an ephemeral update survived", got)
		}
	})
	t.Run("and refuses a folder with data", func(t *testing.T) {
		kept := filepath.Join(t.TempDir(), "kept")
		d := startDev(t, kept)
		d.stop()
		_, stderr, code := command(t, "", "hub", "dev", "--ephemeral", "--data", kept)
		if code == 0 || !strings.Contains(stderr, "already holds data") {
			t.Errorf("exit %d, %s", code, stderr)
		}
	})
}

func TestDev_namesTheFlagOfABusyPort(t *testing.T) {
	d := startDev(t, filepath.Join(t.TempDir(), "data"))
	https := strings.TrimPrefix(d.origin, "https://")
	plain := strings.TrimPrefix(d.plain, "http://")
	free := freePorts(t, 1)[0]
	for flag, args := range map[string][]string{
		"--listen": {"--listen", https, "--http", "localhost:" + itoa(free)},
		"--http":   {"--listen", "localhost:" + itoa(free), "--http", plain},
	} {
		_, stderr, code := command(t, "", "hub", append([]string{"dev", "--ephemeral"}, args...)...)
		if code != 1 || !strings.Contains(stderr, flag) {
			t.Errorf("exit %d, want the flag %s in %q", code, flag, stderr)
		}
	}
	if _, stderr, code := command(t, "", "hub", "dev", "--data", d.data); code == 0 || !strings.Contains(stderr, "in use by another process") || !strings.Contains(stderr, "--data another folder") {
		t.Errorf("a second server on the folder: exit %d, %s", code, stderr)
	}
	if _, stderr, code := command(t, "", "hub", "dev", "--ephemeral", "--listen", "0.0.0.0:1234"); code == 0 || !strings.Contains(stderr, "loopback") {
		t.Errorf("a public address: exit %d, %s", code, stderr)
	}
}

func TestHub_publishAndSubscribe(t *testing.T) {
	d := startDev(t, filepath.Join(t.TempDir(), "data"))
	topic := d.origin + "/demo/books/9"
	id, stderr, code := command(t, "line one\nline two", "hub", "publish", "--data", d.data, "--private", "--type", "note", topic, "-")
	if code != 0 {
		t.Fatalf("publish = %d %s", code, stderr)
	}
	out, stderr, code := command(t, "", "hub", "subscribe", "--data", d.data, "--last-event-id", "earliest", "--count", "1", "--json", topic)
	if code != 0 {
		t.Fatalf("subscribe = %d %s", code, stderr)
	}
	var e struct{ ID, Type, Data string }
	if err := json.Unmarshal(bytes.TrimSpace([]byte(out)), &e); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if e.ID != strings.TrimSpace(id) || e.Type != "note" || e.Data != "line one\nline two" {
		t.Errorf("event = %+v, published as %s", e, id)
	}
	if _, stderr, code := command(t, "", "hub", "publish", "--data", d.data, "--token", "no.good.token", topic); code != 3 || !strings.Contains(stderr, "invalid_token") {
		t.Errorf("a bad token: exit %d, %s", code, stderr)
	}
	if _, stderr, code := command(t, "", "hub", "publish", "--data", d.data, "*"); code != 1 || !strings.Contains(stderr, "400") {
		t.Errorf("a bad topic: exit %d, %s", code, stderr)
	}
	if _, stderr, code := command(t, "", "hub", "subscribe"); code != 2 {
		t.Errorf("nothing to subscribe to: exit %d, %s", code, stderr)
	}
}
