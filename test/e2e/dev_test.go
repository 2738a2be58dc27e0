package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/harness"
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
func shell(t *testing.T, ctx context.Context, line string) (*exec.Cmd, *harness.Buffer) { //nolint:revive // the test comes first
	t.Helper()
	out := harness.NewBuffer()
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
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "da ta", "dir"))
	lines := printed(d.Out.String())
	for _, with := range []string{"curl", "hub"} {
		t.Run(with, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Patience)
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
	if banner := d.Out.String(); strings.Contains(strings.ToLower(banner), "password") {
		t.Error("the banner speaks of a password")
	}
}

func TestDev_refusals(t *testing.T) {
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"))
	c := d.Client()
	topic := d.Origin + "/demo/books/1"
	good := d.Header("publish")
	meta := `resource_metadata="` + d.Origin + `/.well-known/oauth-protected-resource/.well-known/mercure"`
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
		{"no grant", d.Header("subscribe"), url.Values{"topic": {topic}}, 403, `Bearer error="insufficient_scope"`},
		{"a malformed request", good, url.Values{"data": {"x"}}, 400, ""},
		{"a malformed request comes before the missing grant", d.Header("subscribe"), url.Values{"topic": {"*"}}, 400, ""},
		{"a reserved topic, whatever the token", good, url.Values{"topic": {d.Hub() + "/x"}}, 400, ""},
		{"too large", good, url.Values{"topic": {topic}, "data": {strings.Repeat("x", 2<<20)}}, 413, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{}
			if tc.auth != "" {
				h.Set("Authorization", tc.auth)
			}
			resp, body := harness.Do(t, c, http.MethodPost, d.Hub(), tc.form, h)
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
	resp, body := harness.Do(t, c, http.MethodGet, d.Origin+"/.well-known/oauth-protected-resource/.well-known/mercure", nil, nil)
	var doc struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Cookie   string   `json:"mercure_cookie"`
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("metadata = %d %s", resp.StatusCode, body)
	}
	if doc.Resource != d.Hub() || !slices.Equal(doc.Servers, []string{d.Origin}) || doc.Cookie != "__Secure-mercure_access_token" {
		t.Errorf("metadata = %s", body)
	}
}

// normalChallenge puts the error first, since the order of parameters means nothing.
func normalChallenge(c string) string {
	re := regexp.MustCompile(`^Bearer (resource_metadata="[^"]*"), (error="[^"]*")`)
	return re.ReplaceAllString(c, "Bearer $2, $1")
}

func TestDev_servesNoOtherHost(t *testing.T) {
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.Plain+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example.com"
	resp, err := new(http.Client).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("status = %d, want 421", resp.StatusCode)
	}
}

func TestDev_facesAreTwoSites(t *testing.T) {
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"))
	c := d.Client()
	// The header file's token is for the HTTPS face; the plain one has another issuer and resource (TOK-13, TOK-18).
	resp, body := harness.Do(t, c, http.MethodPost, d.PlainHub(), url.Values{"topic": {"https://example.com/x"}}, http.Header{"Authorization": {d.Header("publish")}})
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the plain face accepted the HTTPS face's token: %d %s", resp.StatusCode, body)
	}
	for _, origin := range []string{d.Origin, d.Plain} {
		resp, body := harness.Do(t, c, http.MethodGet, origin+"/.well-known/oauth-authorization-server", nil, nil)
		var meta struct{ Issuer string }
		if err := json.Unmarshal([]byte(body), &meta); err != nil || resp.StatusCode != http.StatusOK || meta.Issuer != origin {
			t.Errorf("metadata of %s = %d %s", origin, resp.StatusCode, body)
		}
	}
	// An update reaches both.
	s := harness.Subscribe(t, c, d.PlainHub()+"?match="+url.QueryEscape("https://example.com/x"), nil)
	d.Publish(c, "https://example.com/x", "both", false)
	if got := s.Next(t); got != "both" {
		t.Errorf("event = %q", got)
	}
}

func TestDev_mintAndInspect(t *testing.T) {
	for name, args := range map[string][]string{"kept": nil, "ephemeral": {"--ephemeral"}} {
		t.Run(name, func(t *testing.T) {
			d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"), args...)
			minted, stderr, code := harness.Command(t, "", "authz", "token", "mint", "--data", d.Data, "--publish", "*")
			if code != 0 {
				t.Fatalf("mint = %d %s", code, stderr)
			}
			token := strings.TrimSpace(minted)
			secretwatch.Add(t, token)
			resp, body := harness.Do(t, d.Client(), http.MethodPost, d.Hub(), url.Values{"topic": {"https://example.com/minted"}, "data": {"x"}},
				http.Header{"Authorization": {"Bearer " + token}})
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("publish with the minted token = %d %s", resp.StatusCode, body)
			}
			out, _, code := harness.Command(t, token, "authz", "token", "inspect", "--data", d.Data, "--action", "publish", "-")
			if code != 0 {
				t.Errorf("inspect = %d %s", code, out)
			}
			for _, check := range []string{"size", "form", "header", "typ", "alg", "crit", "payload", "iss", "key", "signature", "exp", "nbf", "iat", "aud", "cnf", "details", "key_actions", "revocation"} {
				if !regexp.MustCompile(`(?m)^\s+` + check + `\s+ok\s`).MatchString(out) {
					t.Errorf("no verdict of %s in:\n%s", check, out)
				}
			}
			if strings.Contains(out, token) {
				t.Error("inspect prints the token")
			}
			broken := token[:len(token)-8] + "AAAAAAAA"
			out, _, code = harness.Command(t, broken, "authz", "token", "inspect", "--data", d.Data, "-")
			if code != 1 || !regexp.MustCompile(`(?m)^> signature\s+failed\s`).MatchString(out) {
				t.Errorf("inspect of a broken token = %d\n%s", code, out)
			}
		})
	}
}

// keySet is what must survive.
func keySet(d *harness.Dev, c *http.Client) string {
	d.T.Helper()
	_, body := harness.Do(d.T, c, http.MethodGet, d.Origin+"/jwks.json", nil, nil)
	return body
}

func TestDev_survives(t *testing.T) {
	for name, end := range map[string]func(*harness.Dev){"restart": func(d *harness.Dev) { d.Stop() }, "SIGKILL": func(d *harness.Dev) { d.Kill() }} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			ports := harness.FreePorts(t, 2)
			d := harness.StartDevOn(t, data, ports[0], ports[1])
			c := d.Client()
			if _, stderr, code := harness.Command(t, "correct horse battery\n", "authz", "user", "add", "--data", data, "--password-stdin", "alice"); code != 0 {
				t.Fatalf("user add = %d %s", code, stderr)
			}
			d.SignIn(c)
			keys := keySet(d, c)
			topic := d.Origin + "/demo/books/7"
			var ids []string
			for _, v := range []string{"one", "two", "three"} {
				ids = append(ids, d.Publish(c, topic, v, true))
			}
			end(d)

			d = harness.StartDevOn(t, data, ports[0], ports[1])
			again := d.Client()
			again.Jar = c.Jar
			if got := keySet(d, again); got != keys {
				t.Error("the signing keys changed")
			}
			if out, _, _ := harness.Command(t, "", "authz", "user", "list", "--data", data); !strings.Contains(out, "alice") {
				t.Errorf("users = %s", out)
			}
			if s := d.Session(again); !s.Active {
				t.Errorf("session = %+v", s)
			}
			s := harness.Subscribe(t, again, d.Hub()+"?match="+url.QueryEscape(topic)+"&last_event_id="+url.QueryEscape(ids[0]), nil)
			if got := s.Resp.Header.Get("Mercure-Last-Event-ID"); got != ids[0] {
				t.Errorf("resumed from %q, want %q", got, ids[0])
			}
			for _, want := range []string{"two", "three"} {
				if got := s.Next(t); got != want {
					t.Errorf("event = %q, want %q", got, want)
				}
			}
		})
	}
}

func TestDev_ephemeralKeepsNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	d := harness.StartDev(t, data, "--ephemeral")
	d.Publish(d.Client(), "https://example.com/x", "gone soon", false)
	d.Stop()
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		left, _ := filepath.Glob(filepath.Join(data, "*"))
		t.Errorf("left behind: %v", left)
	}

	t.Run("nor what a killed one left", func(t *testing.T) {
		d := harness.StartDev(t, data, "--ephemeral")
		id := d.Publish(d.Client(), "https://example.com/x", "gone soon", false)
		d.Kill()
		d = harness.StartDev(t, data, "--ephemeral")
		s := harness.Subscribe(t, d.Client(), d.Hub()+"?match=*&last_event_id="+url.QueryEscape(id), nil)
		if got := s.Resp.Header.Get("Mercure-Last-Event-ID"); got != "earliest" {
			t.Errorf("resumed from %q: an ephemeral update survived", got)
		}
	})
	t.Run("and refuses a folder with data", func(t *testing.T) {
		kept := filepath.Join(t.TempDir(), "kept")
		d := harness.StartDev(t, kept)
		d.Stop()
		_, stderr, code := harness.Command(t, "", "hub", "dev", "--ephemeral", "--data", kept)
		if code != 1 || !strings.Contains(stderr, "already holds data") {
			t.Errorf("exit %d, %s", code, stderr)
		}
	})
}

func TestDev_namesTheFlagOfABusyPort(t *testing.T) {
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"))
	https := strings.TrimPrefix(d.Origin, "https://")
	plain := strings.TrimPrefix(d.Plain, "http://")
	free := harness.FreePorts(t, 1)[0]
	for flag, args := range map[string][]string{
		"--listen": {"--listen", https, "--http", "localhost:" + strconv.Itoa(free)},
		"--http":   {"--listen", "localhost:" + strconv.Itoa(free), "--http", plain},
	} {
		_, stderr, code := harness.Command(t, "", "hub", append([]string{"dev", "--ephemeral"}, args...)...)
		if code != 1 || !strings.Contains(stderr, flag) {
			t.Errorf("exit %d, want the flag %s in %q", code, flag, stderr)
		}
	}
	if _, stderr, code := harness.Command(t, "", "hub", "dev", "--data", d.Data); code != 1 || !strings.Contains(stderr, "in use by another process") || !strings.Contains(stderr, "--data another folder") {
		t.Errorf("a second server on the folder: exit %d, %s", code, stderr)
	}
	if _, stderr, code := harness.Command(t, "", "hub", "dev", "--ephemeral", "--listen", "0.0.0.0:1234"); code != 2 || !strings.Contains(stderr, "loopback") {
		t.Errorf("a public address: exit %d, %s", code, stderr)
	}
}

func TestHub_publishAndSubscribe(t *testing.T) {
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"))
	topic := d.Origin + "/demo/books/9"
	id, stderr, code := harness.Command(t, "line one\nline two", "hub", "publish", "--data", d.Data, "--private", "--type", "note", topic, "-")
	if code != 0 {
		t.Fatalf("publish = %d %s", code, stderr)
	}
	out, stderr, code := harness.Command(t, "", "hub", "subscribe", "--data", d.Data, "--last-event-id", "earliest", "--count", "1", "--json", topic)
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
	if _, stderr, code := harness.Command(t, "", "hub", "publish", "--data", d.Data, "--token", "no.good.token", topic); code != 3 || !strings.Contains(stderr, "invalid_token") {
		t.Errorf("a bad token: exit %d, %s", code, stderr)
	}
	if _, stderr, code := harness.Command(t, "", "hub", "publish", "--data", d.Data, "*"); code != 1 || !strings.Contains(stderr, "400") {
		t.Errorf("a bad topic: exit %d, %s", code, stderr)
	}
	if _, stderr, code := harness.Command(t, "", "hub", "subscribe"); code != 2 {
		t.Errorf("nothing to subscribe to: exit %d, %s", code, stderr)
	}
}

// publishUntilSeen publishes until a watcher, which may not be connected yet, has seen an update.
func publishUntilSeen(publish func() (string, error), seen *harness.Buffer) bool {
	for range 60 {
		out, err := publish()
		if err != nil || !strings.Contains(out, "urn:uuid:") {
			_, _ = fmt.Fprintf(seen, "publish: %v %s", err, out)
			return false
		}
		if seen.WaitFor(`{"status":`, time.Second) {
			return true
		}
	}
	return false
}
