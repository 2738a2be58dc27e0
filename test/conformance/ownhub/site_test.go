package ownhub_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/devcert"
	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

const (
	cookieName = "__Secure-mercure_access_token"
	clientID   = "conformance"
	secretFile = "client.secret"
)

// site is a running hub of ours in one configuration.
type site struct {
	configuration

	dir      string // with keys, certificate and configuration
	port     int    // of the hub itself
	url      string
	asIssuer string

	yaml  strings.Builder // the issuers, for the hub
	flags []string        // the issuers, for the suite
	hub   *harness.Process
}

// start starts the hub of a configuration, and what it needs.
func start(t *testing.T, c configuration) *site {
	t.Helper()
	s := &site{configuration: c, dir: filepath.Join(t.TempDir(), "data")}
	if _, _, err := devcert.Certificate(filepath.Join(s.dir, "tls"), time.Now()); err != nil {
		t.Fatal(err)
	}
	ports := harness.FreePorts(t, 3)
	s.port = ports[0]
	if s.path == "" {
		s.path = suite.DefaultPath
	}
	switch {
	case s.nginx:
		s.url = fmt.Sprintf("https://localhost:%d%s", ports[1], s.path)
		s.startNginx(t, ports[1])
	case s.tls:
		s.url = fmt.Sprintf("https://localhost:%d%s", s.port, s.path)
	default:
		s.url = fmt.Sprintf("http://localhost:%d%s", s.port, s.path)
	}
	if s.resource == "" {
		s.resource = s.url
	}
	if s.server {
		s.startServer(t, ports[2])
	}
	for n, i := range s.issuers {
		s.trust(t, n, i)
	}
	s.startHub(t)
	return s
}

// trust makes the keys of an issuer, for the hub and for the suite.
func (s *site) trust(t *testing.T, n int, i issuer) {
	t.Helper()
	if !i.separate {
		fmt.Fprintf(&s.yaml, "  - { id: %s, keys: [ %s ] }\n", i.id, s.key(t, fmt.Sprintf("issuer%d", n), i, "both"))
		return
	}
	fmt.Fprintf(&s.yaml, "  - { id: %s, publisher: { keys: [ %s ] }, subscriber: { keys: [ %s ] } }\n", i.id,
		s.key(t, fmt.Sprintf("publisher%d", n), i, "publish"), s.key(t, fmt.Sprintf("subscriber%d", n), i, "subscribe"))
}

// key makes one key: its private part goes to the suite, and what is given is the hub's view of it.
func (s *site) key(t *testing.T, name string, i issuer, role string) string {
	t.Helper()
	private, view := s.private(t, name, i.alg)
	s.flags = append(s.flags, "-issuer", fmt.Sprintf("id=%s,alg=%s,kid=%s,role=%s,key=%s", i.id, i.alg, name, role, private))
	return fmt.Sprintf("{ alg: %s, kid: %s, %s }", i.alg, name, view)
}

func (s *site) private(t *testing.T, name, alg string) (path, view string) {
	t.Helper()
	if strings.HasPrefix(alg, "HS") {
		return harness.WriteFile(t, s.dir, name+".secret", harness.RandomSecret(t, 64)), "secret_file: " + name + ".secret"
	}
	key, err := jose.Generate(alg)
	if err != nil {
		t.Fatal(err)
	}
	private, err := key.PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, s.dir, name+".pub.pem", string(public))
	return harness.WriteFile(t, s.dir, name+".pem", string(private)), "pem_file: " + name + ".pub.pem"
}

// startHub writes the hub's configuration and starts it.
func (s *site) startHub(t *testing.T) {
	t.Helper()
	var more strings.Builder
	switch {
	case s.tls:
		more.WriteString("tls: { mode: files, cert_file: tls/server.crt, key_file: tls/server.key }\n")
	case s.nginx:
		more.WriteString("tls: { mode: off, behind_tls_proxy: true }\ntrusted_proxies: [127.0.0.1, '::1']\n")
	default:
		more.WriteString("tls: { mode: off }\n")
	}
	if s.segments {
		more.WriteString("history: { driver: segments, path: history }\n")
	} else {
		more.WriteString("history: { driver: memory }\n")
	}
	if s.subscriptions {
		more.WriteString("subscriptions: true\n")
	}
	if s.cors != "" {
		fmt.Fprintf(&more, "cors_origins: [ %s ]\npublish_origins: [ %s ]\n", s.cors, s.publisher)
	}
	if s.heartbeat != 0 {
		fmt.Fprintf(&more, "heartbeat: %s\n", s.heartbeat)
	}
	if s.lifetime != 0 {
		fmt.Fprintf(&more, "max_connection_lifetime: %s\n", s.lifetime)
	}
	config := harness.WriteFile(t, s.dir, "hub.yaml", fmt.Sprintf(`
public_url: %s
resource: %s
listen: localhost:%d
anonymous: %t
cookie: { name: %s }
issuers:
%s
%s
ops: { listen: "" }
`, s.url, s.resource, s.port, !s.closed, cookieName, s.yaml.String(), more.String()))
	harness.Must(t, "", "hub", "config", "check", "--config", config)
	s.hub = s.run(t, "hub", "serve", "--config", config)
	s.hub.WaitFor("hub is ready")
}

// startServer starts an authorization server with a client that may have any grant, and has the hub trust it.
func (s *site) startServer(t *testing.T, port int) {
	t.Helper()
	s.asIssuer = fmt.Sprintf("https://localhost:%d/auth", port)
	fmt.Fprintf(&s.yaml, "  - { id: %s, authorization_server: true }\n", s.asIssuer)
	harness.WriteFile(t, s.dir, secretFile, harness.RandomSecret(t, 32))
	config := harness.WriteFile(t, s.dir, "authz.yaml", fmt.Sprintf(`
issuer: %s
listen: localhost:%d
tls: { mode: files, cert_file: tls/server.crt, key_file: tls/server.key }
store: { path: authz.db, secret_file: authz.secret }
resources: [ { id: %q, name: Test hub, hub_url: %q } ]
clients:
  - { id: %[5]s, name: Conformance suite, auth_method: client_secret_basic, secret_file: %[6]s, grant_types: [client_credentials] }
policies:
  - id: anything
    when: { clients: [%[5]s] }
    grant: [ { actions: [publish, subscribe], topics: [ { match: "*" } ] } ]
    on_missing_request: grant_all
    on_excess: deny
ops: { listen: "" }
`, s.asIssuer, port, s.resource, s.url, clientID, secretFile))
	harness.Must(t, "", "authz", "config", "check", "--config", config)
	s.run(t, "authz", "serve", "--config", config).WaitFor("authorization server is ready")
}

// run starts one of our programs, which trusts the site's certificate.
func (s *site) run(t *testing.T, name string, args ...string) *harness.Process {
	t.Helper()
	cmd := exec.Command(harness.Program(name), args...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+harness.CAFile(s.dir))
	return harness.Run(t, name, cmd)
}

// startNginx starts nginx as operators have it in front of a hub: it ends TLS, and passes everything on unchanged and at once. It
// writes no access log, which would hold the tokens of requests that present them where they must not be.
func (s *site) startNginx(t *testing.T, port int) {
	t.Helper()
	program := needs.Program(t, "nginx")
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // its workers read and write in the test's folder
	}
	dir := t.TempDir()
	config := harness.WriteFile(t, dir, "nginx.conf", fmt.Sprintf(`
%[1]s
daemon off;
pid %[2]s/pid;
error_log stderr crit;
worker_processes 1;
worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  client_max_body_size 0;
  large_client_header_buffers 8 64k;
  upstream hub { server localhost:%[4]d; keepalive 32; }
  server {
    listen localhost:%[3]d ssl http2;
    server_name localhost;
    ssl_certificate %[5]s/tls/server.crt;
    ssl_certificate_key %[5]s/tls/server.key;
    location / {
      proxy_pass http://hub;
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_read_timeout 24h;
      proxy_send_timeout 24h;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`, user, dir, port, s.port, s.dir))
	p := harness.Run(t, "nginx", exec.Command(program, "-p", dir, "-e", "stderr", "-c", config))
	address := "localhost:" + strconv.Itoa(port)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range harness.Patience / (20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-p.Done:
			t.Fatal("nginx did not start")
		case <-tick.C:
		}
	}
	t.Fatal("nginx does not listen")
}
