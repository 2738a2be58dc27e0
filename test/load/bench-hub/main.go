// Command bench-hub starts a hub for a benchmark: it writes a configuration in which nothing is limited that a benchmark would run
// into, and becomes 'hub serve' with it.
//
//	bench-hub PORT DIR KEY ALG ISSUER AUDIENCE [DB]
//
// The hub listens on 127.0.0.1:PORT, at the path /.well-known/mercure; with TLS when DIR holds a certificate (server.crt, server.key), as
// 'load -https' puts one there, and otherwise in the clear. Subscribers may be anonymous. KEY is a file with the shared secret (HS
// algorithms) or the public key (PEM) of tokens from ISSUER for AUDIENCE. DB is where the history is kept: empty or - for memory, bolt:FILE
// for the bolt driver, otherwise the folder of the segments driver. DIR takes the configuration (hub.yaml), which 'hub history' can be
// given, and the control socket.
//
// The program is that of CINNABAR_HUB_BIN, or else one called hub beside this one, or else it is built into DIR, which only works
// inside the module. Keys of the configuration can be overridden by the environment: CINNABAR_HUB_HISTORY_MAX_EVENTS=1000000 has
// retention at work, CINNABAR_HUB_SUBSCRIPTIONS=true has subscriptions announced and listed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "bench-hub: %v\n", err)
		os.Exit(1)
	}
}

// arguments is the command line.
type arguments struct {
	port                                      int
	dir, key, algorithm, issuer, audience, db string
}

// run becomes the hub; it returns only when that fails, or, where no process can become another program, when the hub has ended.
func run(args []string, stderr io.Writer) error {
	a, err := parse(args)
	if err != nil {
		return err
	}
	text, err := configuration(a)
	if err != nil {
		return err
	}
	file := filepath.Join(a.dir, "hub.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	hub, err := program(a.dir, stderr)
	if err != nil {
		return err
	}
	argv := []string{hub, "serve", "--config", file}
	if runtime.GOOS != "windows" {
		return fmt.Errorf("become %s: %w", hub, syscall.Exec(hub, argv, environment()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, stderr, environment()
	return cmd.Run()
}

func parse(args []string) (a arguments, err error) {
	if len(args) != 6 && len(args) != 7 {
		return a, errors.New("usage: bench-hub PORT DIR KEY ALG ISSUER AUDIENCE [DB]")
	}
	if a.port, err = strconv.Atoi(args[0]); err != nil || a.port < 1 || a.port > 65535 {
		return a, fmt.Errorf("%q is not a port", args[0])
	}
	a.algorithm, a.issuer, a.audience = args[3], args[4], args[5]
	if len(args) == 7 && args[6] != "-" {
		a.db = args[6]
	}
	// The hub takes relative names as relative to its configuration.
	if a.dir, err = filepath.Abs(args[1]); err != nil {
		return a, err
	}
	if a.key, err = filepath.Abs(args[2]); err != nil {
		return a, err
	}
	return a, nil
}

// security gives the scheme of the hub's URL, and how the hub's listener is secured: with the certificate in the folder, if there is one.
func security(dir string) (scheme string, tls map[string]any, err error) {
	cert := filepath.Join(dir, "server.crt")
	switch _, err := os.Stat(cert); {
	case errors.Is(err, fs.ErrNotExist):
		return "http", map[string]any{"mode": "off"}, nil
	case err != nil:
		return "", nil, err
	}
	return "https", map[string]any{"mode": "files", "cert_file": cert, "key_file": filepath.Join(dir, "server.key")}, nil
}

// configuration gives the hub's configuration. JSON is YAML.
func configuration(a arguments) ([]byte, error) {
	type object = map[string]any
	key := object{"alg": a.algorithm, "pem_file": a.key}
	if strings.HasPrefix(a.algorithm, "HS") {
		key = object{"alg": a.algorithm, "secret_file": a.key}
	}
	history := object{"driver": "memory", "max_events": 0, "max_bytes": "0", "max_age": "0s"}
	if a.db != "" {
		history["driver"] = "segments"
		path, bolt := strings.CutPrefix(a.db, "bolt:")
		if bolt {
			history["driver"] = "bolt"
		}
		var err error
		if history["path"], err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	scheme, tls, err := security(a.dir)
	if err != nil {
		return nil, err
	}
	c := object{
		"public_url": scheme + "://127.0.0.1:" + strconv.Itoa(a.port) + "/.well-known/mercure",
		"resource":   a.audience,
		"listen":     "127.0.0.1:" + strconv.Itoa(a.port),
		"tls":        tls,
		"anonymous":  true,
		"issuers":    []object{{"id": a.issuer, "keys": []object{key}}},
		"history":    history,
		"limits": object{
			"url": "1MiB", "matchers": 100_000, "pattern": "1MiB", "body": "256MiB", "topics": 100_000, "topic": "1MiB", "id": "64KiB", "type": "64KiB",
			"details": 100_000, "topics_per_detail": 100_000, "connections_per_address": 0, "connections_total": 0,
		},
		"max_connection_lifetime": "0s",
		"drain":                   "1s",
		"ops":                     object{"listen": ""},
		"log":                     object{"level": "warn"},
	}
	if a.db != "" {
		c["control_socket"] = filepath.Join(a.dir, "hub.sock")
	}
	return json.MarshalIndent(c, "", "  ")
}

// binVariable names the hub's program.
const binVariable = "CINNABAR_HUB_BIN"

// environment is the hub's: it refuses variables with its prefix that it does not know.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, binVariable+"=") })
}

// program finds the hub, or builds it.
func program(dir string, stderr io.Writer) (string, error) {
	name := "hub"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if bin := os.Getenv(binVariable); bin != "" {
		return filepath.Abs(bin)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	built := filepath.Join(dir, name)
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", built, "github.com/cinnabar-hub/cinnabar/cmd/hub")
	cmd.Stderr = stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("there is no hub: name it with CINNABAR_HUB_BIN (building it failed: %w)", err)
	}
	return built, nil
}
