package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m, "test/load", "test/load/bench-hub")) }

func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args         []string
		driver, path string
	}{
		"memory, left out": {[]string{"8080", dir, dir + "/key", "HS256", "https://issuer.example", "https://hub.example/"}, "memory", ""},
		"memory":           {[]string{"8080", dir, dir + "/key", "HS256", "https://issuer.example", "https://hub.example/", "-"}, "memory", ""},
		"segments":         {[]string{"8080", dir, dir + "/key", "ES256", "https://issuer.example", "https://hub.example/", dir + "/a b: \"c\""}, "segments", dir + "/a b: \"c\""},
		"bolt":             {[]string{"8080", dir, dir + "/key", "ES256", "https://issuer.example", "https://hub.example/", "bolt:" + dir + "/d"}, "bolt", dir + "/d"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := parse(c.args)
			if err != nil {
				t.Fatal(err)
			}
			text, err := configuration(a)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "hub.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := config.LoadHub(config.Source{Path: file})
			if err != nil {
				t.Fatal(err)
			}
			h := loaded.Value
			if h.History.Driver != c.driver || c.path != "" && string(h.History.Path) != c.path || h.Limits.ConnectionsPerAddress != 0 || h.History.MaxEvents != 0 {
				t.Errorf("configuration = %+v", h)
			}
		})
	}
}

// TestConfiguration_certificate has a certificate in the folder.
func TestConfiguration_certificate(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "server.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := configuration(arguments{port: 8443, dir: dir, key: dir + "/key", algorithm: "HS256", issuer: "https://issuer.example"})
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		PublicURL string `json:"public_url"`
		TLS       struct {
			Mode     string
			CertFile string `json:"cert_file"`
			KeyFile  string `json:"key_file"`
		}
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	if raw.PublicURL != "https://127.0.0.1:8443/.well-known/mercure" || raw.TLS.Mode != "files" ||
		raw.TLS.CertFile != filepath.Join(dir, "server.crt") || raw.TLS.KeyFile != filepath.Join(dir, "server.key") {
		t.Errorf("configuration = %+v, want https with the certificate", raw)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{nil, {"1", "2"}, {"x", "d", "k", "HS256", "i", "a"}, {"70000", "d", "k", "HS256", "i", "a"}, {"1", "d", "k", "HS256", "i", "a", "db", "x"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("parse(%q) gave no error", args)
		}
	}
	if err := run(nil, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "usage: ") {
		t.Errorf("run without arguments = %v, want the usage", err)
	}
}

// TestLoad puts a small load on the hub, started as users of both programs do.
func TestLoad(t *testing.T) {
	t.Setenv(binVariable, harness.Program("hub"))
	for name, c := range map[string]struct {
		db, alg, scenarios string
		more               []string
		rows               int
	}{
		"memory":   {"-", "HS256", "fan-out,replay", nil, 6},
		"segments": {"{db}", "ES256", "all", nil, 14},
		"HTTP/2":   {"-", "HS256", "idle,fan-out", []string{"-https", "-http2"}, 2},
		"stalled":  {"{db}", "HS256", "fan-out,private", []string{"-https", "-stalled", "5", "-size", "10000"}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			results := load(t, append(c.more, "-scenario", c.scenarios, "-alg", c.alg, "-tokens", "-n", "20", "-c", "4", "-events", "200", "-history", "500",
				"-duration", "500ms", "-rest", "200ms", "-start", harness.Program("bench-hub")+" {port} {dir} {key} {alg} {issuer} {audience} "+c.db)...)
			for _, line := range results {
				var r struct {
					Scenario, Phase                   string
					Acknowledged, Expected, Delivered int64
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				if r.Delivered != r.Expected || r.Scenario != "idle" && r.Scenario != "connect" && r.Acknowledged+r.Delivered == 0 {
					t.Errorf("%+v: not all was delivered, or nothing done", r)
				}
			}
			if len(results) != c.rows {
				t.Errorf("%d results, want %d:\n%s", len(results), c.rows, results)
			}
		})
	}
}

// load runs the program, which must end well, and gives its lines.
func load(t *testing.T, args ...string) []string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), harness.Program("load"), append([]string{"-json", "-dir", t.TempDir()}, args...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, errs.String(), out)
	}
	return slices.Collect(strings.Lines(string(out)))
}

// TestVersus compares the hub with the floor, which has no history to read back and speaks plain HTTP/1.1, and with itself in the clear.
func TestVersus(t *testing.T) {
	hub := harness.Program("bench-hub") + " {port} {dir} {key} {alg} {issuer} {audience} "
	for name, c := range map[string]struct {
		args  []string
		units string
	}{
		"floor":            {[]string{"-scenario", "fan-out,durable", "-start", hub + "{db}", "-versus", "floor sync"}, "deliveries/s publications/s"},
		"floor, HTTP/2":    {[]string{"-start", hub + "-", "-https", "-http2", "-versus", "floor"}, "deliveries/s"},
		"itself":           {[]string{"-start", hub + "-", "-https", "-http2", "-versus", hub + "-"}, "deliveries/s"},
		"itself, in clear": {[]string{"-start", hub + "-", "-https", "-versus", hub + "-", "-versus-plain"}, "deliveries/s"},
	} {
		t.Run(name, func(t *testing.T) {
			var units []string
			for _, line := range load(t, append(c.args, "-times", "2", "-n", "10", "-c", "2", "-events", "100")...) {
				var c struct {
					Unit             string
					Ratio, Low, High float64
				}
				if err := json.Unmarshal([]byte(line), &c); err != nil {
					t.Fatal(err)
				}
				units = append(units, c.Unit)
				if c.Ratio <= 0 || c.Low <= 0 || c.Low > c.High {
					t.Errorf("%s: no ratio", line)
				}
			}
			if strings.Join(units, " ") != c.units {
				t.Errorf("units = %v, want %s", units, c.units)
			}
		})
	}
}
