package wire_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// site is a running hub, behind nginx or not, with a backend that signs its own tokens.
type site struct {
	url                string // of the hub, as everybody knows it
	direct             string // the address of the hub itself
	hub                *harness.Process
	tap                *tap   // between nginx and the hub; nil without nginx
	publish, subscribe string // tokens
}

// start starts a hub with its history in segments.
func start(t *testing.T, behindNginx bool) *site {
	t.Helper()
	ports := harness.FreePorts(t, 2)
	s := &site{direct: "localhost:" + strconv.Itoa(ports[0])}
	s.url = "http://" + s.direct + harness.HubPath
	if behindNginx {
		s.url = fmt.Sprintf("http://localhost:%d%s", ports[1], harness.HubPath)
		s.tap = newTap(t, s.direct)
		startNginx(t, ports[1], s.tap.address)
	}
	dir := t.TempDir()
	pub, sub := harness.RandomSecret(t, 32), harness.RandomSecret(t, 32)
	harness.WriteFile(t, dir, "pub.secret", pub+"\n")
	harness.WriteFile(t, dir, "sub.secret", sub+"\n")
	config := harness.WriteFile(t, dir, "hub.yaml", fmt.Sprintf(`
public_url: %s
listen: %s
tls: { mode: off }
issuers:
  - id: %s
    publisher: { keys: [ { alg: HS256, secret_file: pub.secret } ] }
    subscriber: { keys: [ { alg: HS256, secret_file: sub.secret } ] }
history: { driver: segments, path: %q }
ops: { listen: "" }
`, s.url, s.direct, harness.SelfIssuer, filepath.Join(dir, "history")))
	s.publish = harness.SelfIssued(t, []byte(pub), s.url, rar.Publish)
	s.subscribe = harness.SelfIssued(t, []byte(sub), s.url, rar.Subscribe)
	s.hub = harness.Start(t, "hub", "serve", "--config", config)
	s.hub.WaitFor("hub is ready")
	return s
}

// startNginx starts nginx with as little configuration as it takes to pass requests on: whatever is not said is as nginx had it
// before version 1.29.7, HTTP/1.0 to the hub and buffering among it. It writes no access log, which would hold tokens.
func startNginx(t *testing.T, port int, upstream string) {
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
events {}
http {
  access_log off;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  client_max_body_size 2m;
  server {
    listen localhost:%[3]d;
    location / {
      proxy_pass http://%[4]s;
      proxy_http_version 1.0;
      proxy_set_header Host $http_host;
    }
  }
}
`, user, dir, port, upstream))
	p := harness.Run(t, "nginx", exec.Command(program, "-p", dir, "-e", "stderr", "-c", config))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range harness.Patience / (20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", "localhost:"+strconv.Itoa(port)); err == nil {
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

// tap passes connections on and notes what they begin with.
type tap struct {
	address string

	mu    sync.Mutex
	lines []string // the first of each connection, without its query
	open  int
}

// newTap starts a tap, which ends with the test.
func newTap(t *testing.T, upstream string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{address: l.Addr().String()}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.relay(t, conn, upstream) })
		}
	})
	return p
}

// relay passes one connection on, until either side ends it.
func (p *tap) relay(t *testing.T, conn net.Conn, upstream string) {
	t.Helper()
	defer func() { _ = conn.Close() }()
	up, err := net.Dial("tcp", upstream)
	if err != nil {
		return // the hub is gone, which nginx answers with 502
	}
	defer func() { _ = up.Close() }()
	p.count(1)
	defer p.count(-1)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, up)
		_ = conn.(*net.TCPConn).CloseWrite()
	})
	defer back.Wait()
	in := bufio.NewReaderSize(conn, 64<<10)
	line, err := in.ReadString('\n')
	if err != nil {
		_ = up.Close()
		return
	}
	p.note(line)
	if _, err := io.WriteString(up, line); err != nil {
		t.Errorf("pass the request on: %v", err)
	}
	if _, err := io.Copy(up, in); err != nil { // the hub has said all it has to say: nginx still wants to read that
		_, _ = io.Copy(io.Discard, in)
	}
	_ = up.Close()
}

func (p *tap) count(delta int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open += delta
}

// note keeps the method and the version of a request, and nothing that may be secret.
func (p *tap) note(line string) {
	fields := strings.Fields(line)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fields[0]+" "+fields[len(fields)-1])
}

// state gives the requests so far, and how many connections are open.
func (p *tap) state() (lines []string, open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...), p.open
}
