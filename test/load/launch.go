package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/devcert"
	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
)

// launched is a hub that was started for one scenario.
type launched struct {
	options options // those that fit it
	dir     string
	cancel  context.CancelFunc
	ended   chan struct{}
}

const (
	launchedIssuer = "https://issuer.load.example"
	hubPath        = "/.well-known/mercure"
)

// What a hub that speaks https finds in its folder, and what its clients trust.
const (
	certFile    = "server.crt"
	certKeyFile = "server.key"
	caFile      = "ca.crt"
)

// startWait bounds a hub's start, stopWait its end.
const (
	startWait = 60 * time.Second
	stopWait  = 20 * time.Second
)

// launch starts a hub by the command in o.start, in a new folder, and waits until it accepts connections.
func (o *options) launch(ctx context.Context) (*launched, error) {
	dir, err := os.MkdirTemp(o.dir, "load-*")
	if err != nil {
		return nil, err
	}
	h := &launched{options: *o, dir: dir, ended: make(chan struct{}), cancel: func() {}}
	h.options.alg, h.options.kid, h.options.issuer, h.options.key = o.alg, "", launchedIssuer, filepath.Join(dir, "signing-key")
	verify, err := h.keys()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	scheme, err := h.secure()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	h.options.hub = scheme + "://127.0.0.1:" + strconv.Itoa(port) + hubPath
	h.options.audience = h.options.hub
	db := o.db
	if db == "" {
		db = filepath.Join(dir, "history")
	}
	args, err := o.command(strings.NewReplacer("{port}", strconv.Itoa(port), "{dir}", dir, "{key}", verify, "{alg}", o.alg,
		"{issuer}", launchedIssuer, "{audience}", h.options.audience, "{db}", db), port, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := h.exec(ctx, args); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := h.await(ctx, port); err != nil {
		log, _ := os.ReadFile(h.log())
		h.stop()
		return nil, fmt.Errorf("%w; its output ends with: %s", err, log[max(0, len(log)-500):])
	}
	return h, nil
}

// command gives the words of the command. Each becomes one argument, whatever a placeholder in it is replaced with.
func (o *options) command(r *strings.Replacer, port int, dir string) ([]string, error) {
	words := strings.Fields(o.start)
	if len(words) == 0 {
		return nil, errors.New("-start: no command")
	}
	if words[0] == "floor" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		args := []string{self, "floor", "-listen", "127.0.0.1:" + strconv.Itoa(port)}
		if len(words) > 1 && words[1] == "sync" {
			args = append(args, "-log", filepath.Join(dir, "floor.log"))
		}
		return args, nil
	}
	for i := range words {
		words[i] = r.Replace(words[i])
	}
	return words, nil
}

// secure makes a certificate when the hub is to speak https, and gives the scheme of its URL.
func (h *launched) secure() (string, error) {
	o := &h.options
	if words := strings.Fields(o.start); !o.https || len(words) > 0 && words[0] == "floor" {
		o.http2 = false
		return "http", nil
	}
	if _, _, err := devcert.Certificate(h.dir, time.Now()); err != nil {
		return "", err
	}
	if o.ca == "" {
		o.ca = filepath.Join(h.dir, caFile)
	}
	return "https", nil
}

// keys makes a key, and gives the file with the half that the hub needs.
func (h *launched) keys() (string, error) {
	key, err := jose.Generate(h.options.alg)
	if err != nil {
		return "", err
	}
	if key.Symmetric() {
		return h.options.key, os.WriteFile(h.options.key, []byte(jose.Encode(key.Secret())), 0o600)
	}
	private, err := key.PrivatePEM()
	if err != nil {
		return "", err
	}
	public, err := key.PublicPEM()
	if err != nil {
		return "", err
	}
	verify := filepath.Join(h.dir, "key.pem")
	return verify, errors.Join(os.WriteFile(h.options.key, private, 0o600), os.WriteFile(verify, public, 0o600))
}

func (h *launched) log() string { return filepath.Join(h.dir, "hub.log") }

func (h *launched) exec(ctx context.Context, args []string) error {
	log, err := os.Create(h.log())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	ctx, h.cancel = context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, stopWait
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return cmd.Process.Kill() // not every system has signals
		}
		return nil
	}
	if err := cmd.Start(); err != nil {
		h.cancel()
		return fmt.Errorf("start the hub: %w", err)
	}
	h.options.pid = cmd.Process.Pid
	if _, err := measure(h.options.pid); err != nil {
		h.options.pid = 0
	}
	go func() { _ = cmd.Wait(); close(h.ended) }() // stop waits for it
	return nil
}

// await waits until the hub accepts connections.
func (h *launched) await(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		if conn, err := d.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-h.ended:
			return errors.New("the hub has ended before it accepted connections")
		case <-ctx.Done():
			return fmt.Errorf("the hub does not accept connections: %w", ctx.Err())
		}
	}
}

// stop ends the hub and removes its folder.
func (h *launched) stop() {
	h.cancel()
	<-h.ended
	_ = os.RemoveAll(h.dir)
}

func freePort(ctx context.Context) (int, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
