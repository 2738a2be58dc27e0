package crash_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// TestFullDisk_authz fills the disk of an authorization server that runs: whatever it would have to write it refuses as a failure
// of its own, what it has written stays, and it goes on by itself.
func TestFullDisk_authz(t *testing.T) {
	disk := harness.NewSmallDisk(t, 8<<20)
	dir := t.TempDir()
	port := harness.FreePorts(t, 1)[0]
	issuer := fmt.Sprintf("http://localhost:%d", port)
	const resource = "https://hub.example.com/.well-known/mercure"
	config := harness.WriteFile(t, dir, "authz.yaml", fmt.Sprintf(`
issuer: %s
listen: localhost:%d
tls: { mode: off }
store: { path: %q, secret_file: %q }
resources: [ { id: %s } ]
clients: [ { id: app, name: App, auth_method: none, redirect_uris: [ %q ] } ]
policies: [ { id: all, grant: [ { actions: [subscribe], topics: [ { match: "https://example.com/*", match_type: urlpattern } ] } ], on_missing_request: grant_all } ]
ops: { listen: "" }
`, issuer, port, filepath.Join(disk.Path, "authz.db"), filepath.Join(disk.Path, "authz.secret"), resource, harness.Callback))
	as := disk.Start(t, "authz", "serve", "--config", config)
	as.WaitFor("authorization server is ready")
	password := harness.RandomSecret(t, 18)
	if out, stderr, code := disk.Command(t, password+"\n", "authz", "user", "add", "--config", config, "--password-stdin", "alice"); code != 0 {
		t.Fatalf("user add: %s %s", out, stderr)
	}
	app := harness.OAuthClient{Issuer: issuer, ID: "app", Resource: resource, HTTP: harness.Client(t, "")}
	verifier := harness.RandomSecret(t, 32)
	code := app.Code(t, harness.Person{Client: app.HTTP}, "alice", password, verifier, "")

	for range 2 {
		disk.Fill(t)
		before := troubles(as.Out.String())
		// The code cannot be redeemed, and is not used up by that.
		answer, status := app.Token(t, harness.CodeFields(code, verifier))
		if status < 500 || answer.Error == "" || answer.AccessToken != "" {
			t.Errorf("redemption on a full disk: %d %s", status, answer.Error)
		}
		resp, body := harness.Do(t, harness.Client(t, ""), http.MethodGet, app.AuthorizeURL(verifier, ""), nil, nil)
		if resp.StatusCode < 500 || len(strings.TrimSpace(body)) == 0 {
			t.Errorf("a login on a full disk: %d %s", resp.StatusCode, body)
		}
		if _, stderr, exit := disk.Command(t, "", "authz", "token", "mint", "--config", config, "--publish", "*"); exit != 1 || !strings.Contains(stderr, "full") {
			t.Errorf("mint on a full disk: exit %d, %s", exit, stderr)
		}
		resp, _ = harness.Do(t, app.HTTP, http.MethodGet, issuer+"/jwks.json", nil, nil)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("the keys on a full disk: %d", resp.StatusCode)
		}
		during := troubles(as.Out.String())[len(before):]
		if !strings.Contains(strings.Join(during, "\n"), "full") {
			t.Errorf("the log does not say that the disk is full: %s", during)
		}
		disk.Free(t)
		if answer, status := app.Token(t, harness.CodeFields(code, verifier)); status != http.StatusOK || answer.AccessToken == "" {
			t.Fatalf("redemption after space came back: %d %s", status, answer.Error)
		}
		code = app.Code(t, harness.Person{Client: harness.Client(t, "")}, "alice", password, verifier, "")
	}
	if out, stderr, exit := disk.Command(t, "", "authz", "user", "list", "--config", config); exit != 0 || !strings.Contains(out, "alice") {
		t.Errorf("users: exit %d %s %s", exit, out, stderr)
	}
}
