package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/refhub"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// hub runs the reference hub, and gives its URL and the flag that names its issuer.
func hub(t *testing.T, fault string) (hubURL, issuer string) {
	t.Helper()
	key, err := jose.Generate("HS256")
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	known := []refhub.Key{{Alg: "HS256", Verify: key.Secret()}}
	h, err := refhub.New(refhub.Options{
		URL: server.URL + suite.DefaultPath, Anonymous: true, CookieName: "mercure_token", Fault: fault,
		Issuers: []refhub.Issuer{{ID: "https://issuer.example", Publish: known, Subscribe: known}},
	})
	if err != nil {
		t.Fatal(err)
	}
	handler = h
	t.Cleanup(func() {
		h.Close()
		server.Close()
	})
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, key.Secret(), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL + suite.DefaultPath, "id=https://issuer.example,alg=HS256,key=" + file
}

// call runs the program.
func call(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

func TestARunThatPasses(t *testing.T) {
	at, issuer := hub(t, "")
	stdout, stderr, code := call(t, "-hub", at, "-issuer", issuer, "-run", "^TOPIC-0", "-progress")
	if code != exitPassed || stderr != "" && !strings.Contains(stderr, "checks done") {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for _, want := range []string{"Mercure 1.0 conformance of " + at + "\nfeatures: anonymous, cookie", "\nTOPIC", "nothing that counts (MUST) failed."} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing:\n%s", want, stdout)
		}
	}
}

func TestARunThatFails(t *testing.T) {
	fault := refhub.Faults()[0]
	at, issuer := hub(t, fault.Name)
	files := t.TempDir()
	jsonFile, junitFile := filepath.Join(files, "r.json"), filepath.Join(files, "r.xml")
	run := "^" + regexp.QuoteMeta(fault.Check) + "$"
	stdout, stderr, code := call(t, "-hub", at, "-issuer", issuer, "-run", run, "-json", jsonFile, "-junit", junitFile, "-fail-on", "derived")
	if code != exitFailed || stderr != "" || !strings.Contains(stdout, "FAIL") || !strings.Contains(stdout, fault.Check) {
		t.Fatalf("code %d: %s\n%s", code, stderr, stdout)
	}
	raw, err := os.ReadFile(jsonFile)
	if err != nil {
		t.Fatal(err)
	}
	var report suite.Report
	if err := json.Unmarshal(raw, &report); err != nil || len(report.Results) != 1 || report.Results[0].Status != suite.Fail || report.Hub != at {
		t.Errorf("%v: %s", err, raw)
	}
	if raw, err = os.ReadFile(junitFile); err != nil || !bytes.Contains(raw, []byte("<failure ")) {
		t.Errorf("%v: %s", err, raw)
	}
	if _, _, code := call(t, "-hub", at, "-issuer", issuer, "-run", run, "-fail-on", "none"); code != exitPassed {
		t.Errorf("code %d when no failure counts", code)
	}
	stdout, _, _ = call(t, "-hub", at, "-issuer", issuer, "-run", run, "-json", "-")
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Errorf("standard output is not JSON alone: %v: %s", err, stdout)
	}
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	at, issuer := hub(t, "")
	missing := filepath.Join(t.TempDir(), "missing")
	key := issuer[strings.Index(issuer, "key=")+4:]
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"nothing":               {nil, "hub URL"},
		"no issuer":             {[]string{"-hub", at}, "no issuer"},
		"no hub":                {[]string{"-issuer", issuer}, "hub URL"},
		"an argument":           {[]string{"-hub", at, "-issuer", issuer, "x"}, `unexpected argument "x"`},
		"no such flag":          {[]string{"-hubs", at}, "not defined"},
		"no such level":         {[]string{"-hub", at, "-issuer", issuer, "-fail-on", "may"}, "-fail-on"},
		"no such feature":       {[]string{"-hub", at, "-issuer", issuer, "-features", "magic"}, `"magic" is none of anonymous`},
		"no regular expression": {[]string{"-hub", at, "-issuer", issuer, "-run", "("}, "-run"},
		"nor to skip":           {[]string{"-hub", at, "-issuer", issuer, "-skip", "("}, "-skip"},
		"no check":              {[]string{"-hub", at, "-issuer", issuer, "-run", "^NOTHING"}, "no check"},
		"no key file":           {[]string{"-hub", at, "-issuer", "id=x,alg=HS256,key=" + missing}, "missing"},
		"no such algorithm":     {[]string{"-hub", at, "-issuer", "id=x,alg=none,key=" + key}, "none"},
		"no such role":          {[]string{"-hub", at, "-issuer", "id=x,alg=HS256,role=all,key=" + key}, "role"},
		"half an issuer":        {[]string{"-hub", at, "-issuer", "id=x,alg=HS256,role=publish,key=" + key}, "no key for each role"},
		"an odd issuer":         {[]string{"-hub", at, "-issuer", "id=x;alg=HS256"}, "-issuer"},
		"no certificates":       {[]string{"-hub", at, "-issuer", issuer, "-ca", key}, "no certificate"},
		"no certificate file":   {[]string{"-hub", at, "-issuer", issuer, "-ca", missing}, "-ca"},
		"half a server":         {[]string{"-hub", at, "-issuer", issuer, "-as-issuer", "https://as.example"}, "go together"},
		"no secret":             {[]string{"-hub", at, "-issuer", issuer, "-as-issuer", "https://as.example", "-as-client", "x", "-as-secret-file", missing}, "-as-secret-file"},
		"nobody there":          {[]string{"-hub", at, "-issuer", issuer, "-address", "127.0.0.1:1", "-run", "TOPIC"}, "cannot be tested"},
		"not trusted":           {[]string{"-hub", at, "-issuer", "id=https://other.example,alg=HS256,key=" + key, "-run", "TOPIC"}, "with right tokens"},
		"no file to write":      {[]string{"-hub", at, "-issuer", issuer, "-run", "TOPIC-02", "-json", filepath.Join(missing, "x")}, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := call(t, c.args...)
			if code != exitBroken || !strings.Contains(stderr, c.says) {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
	}
}

func TestAnInterruptedRunIsNoSuccess(t *testing.T) {
	at, issuer := hub(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	if code := command(ctx, []string{"-hub", at, "-issuer", issuer, "-features", "anonymous", "-run", "TOPIC"}, io.Discard, &stderr); code != exitBroken {
		t.Errorf("code %d: %s", code, stderr.String())
	}
}

func TestTheListOfChecks(t *testing.T) {
	stdout, _, code := call(t, "-list", "-run", "^TOPIC-0[1-5]/", "-skip", "TOPIC-01")
	if code != exitPassed || !strings.HasPrefix(stdout, "MUST NOT    TOPIC-02/") || strings.Contains(stdout, "TOPIC-06") {
		t.Errorf("code %d:\n%s", code, stdout)
	}
}

// The manual names flags that exist, and all that tell the suite something about the hub.
func TestTheManualIsTrue(t *testing.T) {
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	_, help, code := call(t, "-h")
	if code != exitPassed {
		t.Errorf("asking for help is an error: %d", code)
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(help, -1) {
		flags[m[1]] = false
	}
	for _, m := range regexp.MustCompile("`(?:conformance )?-([a-z-]+)[^`]*`").FindAllStringSubmatch(string(raw), -1) {
		if m[1] == "h" {
			continue
		}
		if _, ok := flags[m[1]]; !ok {
			t.Errorf("the manual names -%s, which is no flag", m[1])
		}
		flags[m[1]] = true
	}
	for name, named := range flags {
		if !named && !strings.Contains(" limit parallel patience progress v list ", " "+name+" ") {
			t.Errorf("the manual does not name -%s", name)
		}
	}
	for _, f := range suite.Choices() {
		if !strings.Contains(string(raw), "`"+string(f)+"`") {
			t.Errorf("the manual does not name the feature %s", f)
		}
	}
}
