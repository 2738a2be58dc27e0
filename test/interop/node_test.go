package interop_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/devcert"
	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/needs"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

const library = "oauth4webapi"

// nodeClient is a client as flow.mjs wants it.
type nodeClient struct {
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Secret string          `json:"secret,omitempty"`
	JWK    json.RawMessage `json:"jwk,omitempty"`
}

func (s *site) nodeClient(t *testing.T, kind, method string) nodeClient {
	t.Helper()
	c := nodeClient{ID: kind + "-" + method, Method: method, Secret: s.secrets[kind+"-"+method]}
	if method == "private_key_jwt" {
		raw, err := os.ReadFile(filepath.Join(s.Data, c.ID+".jwk"))
		if err != nil {
			t.Fatal(err)
		}
		c.JWK = raw
	}
	return c
}

// nodeEnvironment is that of the test, but for what changes how Node works, with the certificate authority of the site.
func nodeEnvironment(caFile string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NODE_") })
	return append(env, "NODE_EXTRA_CA_CERTS="+caFile)
}

// flow runs flow.mjs with an application of a method, trusting an authority.
func (s *site) flow(t *testing.T, node, method, caFile string) (stdout, stderr string, err error) {
	t.Helper()
	worker := method
	if !strings.HasPrefix(worker, "client_secret_") {
		worker = "client_secret_basic"
	}
	input, err := json.Marshal(map[string]any{
		"hub": s.Hub(), "topic": topic, "redirect_uri": harness.Callback,
		"user": map[string]string{"name": "alice", "password": s.password},
		"app":  s.nodeClient(t, "app", method), "worker": s.nodeClient(t, "worker", worker),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, node, "flow.mjs")
	cmd.Env = nodeEnvironment(caFile)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stdout, cmd.Stderr = secretwatch.Output(t, "node", &out), secretwatch.Output(t, "node", &errOut)
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// TestOAuth4WebAPI is an application for people and a worker, both with oauth4webapi: from the hub's first refusal over login,
// an update, refresh and revocation to its last refusal.
func TestOAuth4WebAPI(t *testing.T) {
	node := needs.NodePackage(t, ".", library)
	s := startSite(t)
	for _, method := range authMethods() {
		t.Run(method, func(t *testing.T) {
			stdout, stderr, err := s.flow(t, node, method, harness.CAFile(s.Data))
			if err != nil {
				t.Fatalf("%v\n%s%s", err, stdout, stderr)
			}
			want := []string{
				"challenge", "metadata", "pushed", "consent", "token", "client credentials", "event", "refresh", "revoked", "access token revoked",
			}
			if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(stdout+stderr), "\n")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("another authority", func(t *testing.T) {
		other := t.TempDir()
		if _, _, err := devcert.Certificate(filepath.Dir(harness.CAFile(other)), time.Now()); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, err := s.flow(t, node, "none", harness.CAFile(other))
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr, "UNABLE_TO_VERIFY_LEAF_SIGNATURE") || stdout != "" {
			t.Errorf("%v, want a certificate error and no step:\n%s%s", err, stdout, stderr)
		}
	})
}

// TestLibraryIsUnchanged compares every installed file with the checksums of the published archive, and the lock with the archive
// that they were taken from.
func TestLibraryIsUnchanged(t *testing.T) {
	needs.NodePackage(t, ".", library)
	raw, err := os.ReadFile(filepath.Join("testdata", library+".sha256"))
	if err != nil {
		t.Fatal(err)
	}
	want, integrity := map[string]string{}, ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "# "); ok {
			if strings.HasPrefix(comment, "sha512-") {
				integrity = comment
			}
		} else if sum, name, ok := strings.Cut(line, "  "); ok {
			want[name] = sum
		}
	}
	var lock struct {
		Packages map[string]struct{ Integrity, Resolved string }
	}
	if raw, err = os.ReadFile("package-lock.json"); err == nil {
		err = json.Unmarshal(raw, &lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" {
			t.Errorf("the lock ties %s to a registry: %s", name, p.Resolved)
		}
	}
	if got := lock.Packages["node_modules/"+library].Integrity; got == "" || got != integrity {
		t.Errorf("the lock wants %q, the checksums are of %q", got, integrity)
	}

	got := map[string]string{}
	root := filepath.Join("node_modules", library)
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		sum := sha256.Sum256(raw)
		got[filepath.ToSlash(name)] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("installed files (-published +installed):\n%s", diff)
	}
}

// TestTLSIsVerified looks for everything that would switch it off, in whatever the clients run with.
func TestTLSIsVerified(t *testing.T) {
	forbidden := []string{
		"NODE_TLS_REJECT_" + "UNAUTHORIZED", "reject" + "Unauthorized", "allowInsec" + "ureRequests", "insec" + "ure", "Skip" + "Verify", "strict" + "-ssl",
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		raw, err := os.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, f := range forbidden {
			if strings.Contains(strings.ToLower(string(raw)), strings.ToLower(f)) {
				t.Errorf("%s says %s", e.Name(), f)
			}
		}
	}
	if read < 6 {
		t.Errorf("looked at only %d files", read)
	}
	for _, v := range nodeEnvironment("ca.crt") {
		name, value, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "NODE_") && name != "NODE_EXTRA_CA_CERTS" || strings.EqualFold(name, "npm_config_"+"strict_ssl") && value != "true" {
			t.Errorf("the environment holds %s", name)
		}
	}
}
