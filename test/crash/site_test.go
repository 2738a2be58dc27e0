package crash_test

import (
	"fmt"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// plainHub is a hub over plain HTTP on loopback, with a backend that signs its own tokens.
type plainHub struct {
	url, config        string
	publish, subscribe string // tokens
}

// newPlainHub writes the configuration of a hub with its history of a driver in the given place, and makes the tokens.
func newPlainHub(t *testing.T, dir, driver, history string) *plainHub {
	t.Helper()
	port := harness.FreePorts(t, 1)[0]
	h := &plainHub{url: fmt.Sprintf("http://localhost:%d%s", port, harness.HubPath)}
	pub, sub := harness.RandomSecret(t, 32), harness.RandomSecret(t, 32)
	harness.WriteFile(t, dir, "pub.secret", pub+"\n")
	harness.WriteFile(t, dir, "sub.secret", sub+"\n")
	h.config = harness.WriteFile(t, dir, "hub.yaml", fmt.Sprintf(`
public_url: %s
listen: localhost:%d
tls: { mode: off }
issuers:
  - id: %s
    publisher: { keys: [ { alg: HS256, secret_file: pub.secret } ] }
    subscriber: { keys: [ { alg: HS256, secret_file: sub.secret } ] }
history: { driver: %s, path: %q }
ops: { listen: "" }
`, h.url, port, harness.SelfIssuer, driver, history))
	h.publish = harness.SelfIssued(t, []byte(pub), h.url, rar.Publish)
	h.subscribe = harness.SelfIssued(t, []byte(sub), h.url, rar.Subscribe)
	return h
}
