package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// patience bounds every wait for something that is expected to happen.
const patience = 60 * time.Second

// bin is the folder with the programs under test, built by TestMain.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cinnabar-bin-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/hub", "./cmd/authz")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	bin = dir
	return m.Run()
}

func program(name string) string { return filepath.Join(bin, name) }

// freePorts gives TCP ports that nobody listens on.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

// process is a program under test.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *lineBuffer
	done chan struct{}
	err  error
}

// start runs a program; its output is kept and can be waited for.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, out: newLineBuffer(), done: make(chan struct{})}
	p.cmd = exec.Command(program(name), args...)
	p.cmd.Dir = t.TempDir()
	w := secretwatch.Output(t, name, p.out)
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); p.out.close(); close(p.done) }()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, p.out)
		}
	})
	return p
}

// stop ends the program as an operator does and waits for it.
func (p *process) stop() {
	p.t.Helper()
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
		p.t.Error("the program did not stop after SIGTERM")
	}
}

// kill ends the program without warning.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// waitFor waits for a line that contains text.
func (p *process) waitFor(text string) {
	p.t.Helper()
	if !p.out.waitFor(text, patience) {
		p.t.Fatalf("no %q in the output:\n%s", text, p.out)
	}
}

// lineBuffer keeps output and lets tests wait for text.
type lineBuffer struct {
	mu     sync.Mutex
	cond   *sync.Cond
	buf    bytes.Buffer
	closed bool
}

func newLineBuffer() *lineBuffer {
	b := &lineBuffer{}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cond.Broadcast()
	return b.buf.Write(p)
}

func (b *lineBuffer) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cond.Broadcast()
}

func (b *lineBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lineBuffer) waitFor(text string, d time.Duration) bool {
	timer := time.AfterFunc(d, b.close)
	defer timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !strings.Contains(b.buf.String(), text) {
		if b.closed {
			return false
		}
		b.cond.Wait()
	}
	return true
}

// holds waits a moment for text, and may be asked again.
func (b *lineBuffer) holds(text string) bool {
	deadline := time.Now().Add(time.Second)
	for !strings.Contains(b.String(), text) {
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(20 * time.Millisecond)
	}
	return true
}

// dev is a running 'hub dev'.
type dev struct {
	*process

	data          string
	origin, plain string
}

func (d *dev) hub() string      { return d.origin + "/.well-known/mercure" }
func (d *dev) plainHub() string { return d.plain + "/.well-known/mercure" }

// startDev starts the development server on free ports and waits for its banner.
func startDev(t *testing.T, data string, args ...string) *dev {
	t.Helper()
	ports := freePorts(t, 2)
	return startDevOn(t, data, ports[0], ports[1], args...)
}

func startDevOn(t *testing.T, data string, https, plain int, args ...string) *dev {
	t.Helper()
	d := &dev{
		data: data, origin: fmt.Sprintf("https://localhost:%d", https), plain: fmt.Sprintf("http://localhost:%d", plain),
	}
	all := append([]string{
		"dev", "--listen", fmt.Sprintf("localhost:%d", https), "--http", fmt.Sprintf("localhost:%d", plain), "--log-level", "debug",
	}, args...)
	if data != "" {
		all = append(all, "--data", data)
	}
	d.process = start(t, "hub", all...)
	d.waitFor("Stop with Ctrl-C")
	for _, name := range []string{"publish.header", "subscribe.header"} {
		if raw, err := os.ReadFile(filepath.Join(data, name)); err == nil {
			_, token, _ := strings.Cut(string(raw), "Bearer ")
			secretwatch.Add(t, strings.TrimSpace(token))
		}
	}
	return d
}

// client is an HTTP client that trusts the development certificate, keeps cookies, follows no redirect, and tells the checker of
// the secrets it sees.
func (d *dev) client() *http.Client {
	d.t.Helper()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(d.data, "tls", "ca.crt"))
	if err != nil {
		d.t.Fatal(err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		d.t.Fatal("ca.crt holds no certificate")
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	base := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	d.t.Cleanup(base.CloseIdleConnections)
	return &http.Client{
		Jar: jar, Transport: &secretwatch.Transport{TB: d.t, Base: base},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// header gives the Authorization header of one of the files that the printed commands use.
func (d *dev) header(name string) string {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.data, name+".header"))
	if err != nil {
		d.t.Fatal(err)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(raw)), ": ")
	return value
}

// do sends a request and gives the response with its body.
func do(t *testing.T, c *http.Client, method, target string, form url.Values, header http.Header) (*http.Response, string) {
	t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// publish publishes with the credential of the printed commands and gives the event id.
func (d *dev) publish(c *http.Client, topic, data string, private bool) string {
	d.t.Helper()
	form := url.Values{"topic": {topic}, "data": {data}}
	if private {
		form.Set("private", "on")
	}
	resp, body := do(d.t, c, http.MethodPost, d.hub(), form, http.Header{"Authorization": {d.header("publish")}})
	if resp.StatusCode != http.StatusOK {
		d.t.Fatalf("publish = %d %s", resp.StatusCode, body)
	}
	return body
}

// stream is an open subscription.
type stream struct {
	resp   *http.Response
	events chan string // the data of each event; closed when the stream has ended
}

// subscribe opens a stream and reads it in the background until the test ends.
func subscribe(t *testing.T, c *http.Client, target string, header http.Header) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{resp: resp, events: make(chan string, 1000)}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("subscribe = %d %s", resp.StatusCode, body)
	}
	go func() {
		defer close(s.events)
		defer func() { _ = resp.Body.Close() }()
		sc := bufio.NewScanner(resp.Body)
		for sc.Scan() {
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				s.events <- data
			}
		}
	}()
	return s
}

// next waits for an event.
func (s *stream) next(t *testing.T) string {
	t.Helper()
	select {
	case data, ok := <-s.events:
		if !ok {
			t.Fatal("the stream has ended")
		}
		return data
	case <-time.After(patience):
		t.Fatal("no event came")
	}
	return ""
}

// command runs a program of ours to its end and gives its output. Standard output is not shown to the checker: minting prints a
// token, which is its purpose.
func command(t *testing.T, stdin, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Dir = t.TempDir()
	var out, errOut bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = secretwatch.Output(t, name, &errOut)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// publishUntilSeen publishes until a watcher, which may not be connected yet, has seen an update.
func publishUntilSeen(publish func() (string, error), seen *lineBuffer) bool {
	for range 60 {
		out, err := publish()
		if err != nil || !strings.Contains(out, "urn:uuid:") {
			_, _ = fmt.Fprintf(seen, "publish: %v %s", err, out)
			return false
		}
		if seen.holds(`{"status":`) {
			return true
		}
	}
	return false
}
