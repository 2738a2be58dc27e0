package interop_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// topic is what the person may read and the workers may publish.
const topic = "https://example.com/orders/1"

// site is a hub and an authorization server with clients of every kind.
type site struct {
	*harness.Apart

	password string            // of alice
	secrets  map[string]string // by client
}

// authMethods are the ways in which a client can prove who it is.
func authMethods() []string {
	return []string{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"}
}

// startSite has an application for each way, which acts for a person, and a worker for each way with a secret, which acts for
// itself.
func startSite(t *testing.T) *site {
	t.Helper()
	s := &site{secrets: map[string]string{}}
	var clients strings.Builder
	for _, method := range authMethods() {
		fmt.Fprintf(&clients, "  - { id: app-%[1]s, name: App, auth_method: %[1]s, redirect_uris: [ %[2]q ]%[3]s }\n", method, harness.Callback, credential("app", method))
	}
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		fmt.Fprintf(&clients, "  - { id: worker-%[1]s, name: Worker, auth_method: %[1]s, grant_types: [client_credentials]%[2]s }\n", method, credential("worker", method))
	}
	s.Apart = harness.StartApart(t, harness.ApartOptions{
		Clients: clients.String(),
		Policies: `
  - { id: apps, when: { clients: [app-none, app-client_secret_basic, app-client_secret_post, app-private_key_jwt] }, grant: [ { actions: [subscribe], topics: [ { match: "https://example.com/orders/*", match_type: urlpattern } ] } ] }
  - { id: workers, when: { clients: [worker-client_secret_basic, worker-client_secret_post] }, grant: [ { actions: [publish], topics: [ { match: "https://example.com/orders/*", match_type: urlpattern } ] } ] }`,
		Prepare: func(dir string) {
			for _, id := range []string{"app-client_secret_basic", "app-client_secret_post", "worker-client_secret_basic", "worker-client_secret_post"} {
				s.secrets[id] = harness.RandomSecret(t, 32)
				harness.WriteFile(t, dir, id+".secret", s.secrets[id]+"\n")
			}
			harness.WriteKey(t, dir, "app-private_key_jwt")
		},
	})
	s.password = s.AddUser(t, "alice")
	return s
}

func credential(kind, method string) string {
	switch method {
	case "client_secret_basic", "client_secret_post":
		return fmt.Sprintf(", secret_file: %s-%s.secret", kind, method)
	case "private_key_jwt":
		return fmt.Sprintf(", jwks_file: %s-%s.jwks", kind, method)
	}
	return ""
}
