package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
	for name, c := range map[string]struct {
		db, alg, scenarios string
		rows               int
	}{
		"memory":   {"-", "HS256", "fan-out,replay", 6},
		"segments": {"{db}", "ES256", "all", 14},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			cmd := exec.CommandContext(t.Context(), harness.Program("load"), "-json", "-scenario", c.scenarios, "-alg", c.alg, "-tokens",
				"-n", "20", "-c", "4", "-events", "200", "-history", "500", "-duration", "500ms", "-rest", "200ms", "-dir", t.TempDir(),
				"-start", harness.Program("bench-hub")+" {port} {dir} {key} {alg} {issuer} {audience} "+c.db)
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s%s", err, errs.String(), out.String())
			}
			rows := 0
			for line := range strings.Lines(out.String()) {
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
				rows++
			}
			if rows != c.rows {
				t.Errorf("%d results, want %d:\n%s", rows, c.rows, out.String())
			}
		})
	}
}

// TestVersus compares the hub with the floor, which has no history to read back.
func TestVersus(t *testing.T) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), harness.Program("load"), "-json", "-scenario", "fan-out,durable", "-times", "2", "-n", "10", "-c", "2", "-events", "100",
		"-dir", t.TempDir(), "-start", harness.Program("bench-hub")+" {port} {dir} {key} {alg} {issuer} {audience} {db}", "-versus", "floor sync")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, errs.String(), out)
	}
	var units []string
	for line := range strings.Lines(string(out)) {
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
	if want := "deliveries/s publications/s"; strings.Join(units, " ") != want {
		t.Errorf("units = %v, want %s", units, want)
	}
}
