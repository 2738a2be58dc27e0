package config_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/config"
)

func loadHub(t *testing.T, text string, environ ...string) *config.Loaded[config.Hub] {
	t.Helper()
	l, err := config.LoadHub(config.Source{Path: write(t, text), Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPrint(t *testing.T) {
	l := loadHub(t, minimal+"limits: { body: 2MiB }\n", "CINNABAR_HUB_HEARTBEAT=3s", "CINNABAR_HUB_CORS_ORIGINS=[https://a.example]")
	text, err := config.Print(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"public_url: https://hub.example.com/.well-known/mercure # file\n", "resource: https://hub.example.com/.well-known/mercure # default\n",
		"heartbeat: 3s # environment\n", "cors_origins: ['https://a.example'] # environment\n", "issuers: # file\n", "  - id: https://app.example.com\n",
		"  body: 2MiB # file\n", "  topics: 1000 # default\n", "tls:\n  mode: off # file\n  cert_file: \"\" # default\n",
	} {
		if !strings.Contains(strings.ReplaceAll(text, `mode: "off"`, "mode: off"), want) {
			t.Errorf("Print lacks %q:\n%s", want, text)
		}
	}

	// What is printed is a configuration again, and the same one.
	again := loadHub(t, text)
	if keys := config.Changed(l.Value, again.Value); len(keys) > 0 {
		t.Errorf("the printed configuration differs in %v", keys)
	}
	bare, err := config.Print(&config.Loaded[config.Hub]{Value: l.Value})
	if err != nil || strings.Contains(bare, "#") {
		t.Errorf("Print without origins = %q, %v", bare, err)
	}
}

func TestPrintJSON(t *testing.T) {
	l := loadHub(t, minimal+"session: { profiles: { default: { scope: live } } }\n", "CINNABAR_HUB_HEARTBEAT=3s")
	text, err := config.PrintJSON(l)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]config.Printed
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]config.Printed{
		"public_url":              {Value: "https://hub.example.com/.well-known/mercure", Origin: config.FromFile},
		"heartbeat":               {Value: "3s", Origin: config.FromEnvironment},
		"max_connection_lifetime": {Value: "1h", Origin: config.FromDefault},
		"history.max_bytes":       {Value: "1GiB", Origin: config.FromDefault},
		"history.max_events":      {Value: 1e6, Origin: config.FromDefault},
		"anonymous":               {Value: true, Origin: config.FromDefault},
		"trusted_proxies":         {Value: []any{}, Origin: config.FromDefault},
		"session.profiles":        {Value: map[string]any{"default": map[string]any{"scope": "live", "authorization_details": ""}}, Origin: config.FromFile},
	} {
		if diff := cmp.Diff(want, got[key]); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", key, diff)
		}
	}
	issuers, ok := got["issuers"].Value.([]any)
	if !ok || len(issuers) != 1 {
		t.Fatalf("issuers = %v", got["issuers"])
	}
	for _, name := range leafPaths(reflect.TypeFor[config.Hub](), "") {
		if _, ok := got[name]; !ok {
			t.Errorf("key %s is not printed", name)
		}
	}
	if _, err := config.PrintJSON(&config.Loaded[config.Authz]{Value: config.ExampleAuthz()}); err != nil {
		t.Error(err)
	}
}

func TestChanged(t *testing.T) {
	before := loadHub(t, minimal).Value
	elsewhere := loadHub(t, minimal).Value // its files are in another folder: the secret, the history and the socket beside it
	if diff := cmp.Diff([]string{"issuers", "history.path", "control_socket"}, config.Changed(before, elsewhere)); diff != "" {
		t.Errorf("Changed differs (-want +got):\n%s", diff)
	}
	after := before
	after.Listen, after.TLS.Mode, after.Limits.Body, after.Heartbeat = ":1", "files", 5, time.Minute
	after.CORSOrigins = []string{"https://a.example"}
	after.PublishOrigins = []string{}
	after.Session.Profiles = map[string]config.Profile{"default": {Scope: "live"}}
	want := []string{"listen", "tls.mode", "cors_origins", "heartbeat", "limits.body", "session.profiles"}
	if diff := cmp.Diff(want, config.Changed(before, after)); diff != "" {
		t.Errorf("Changed differs (-want +got):\n%s", diff)
	}
	if keys := config.Changed(config.ExampleAuthz(), config.ExampleAuthz()); keys != nil {
		t.Errorf("Changed of equal configurations = %v", keys)
	}
}

// leafPaths are the dotted paths of all keys.
func leafPaths(t reflect.Type, path string) []string {
	var out []string
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if path != "" {
			key = path + "." + key
		}
		if f.Type.Kind() == reflect.Struct {
			out = append(out, leafPaths(f.Type, key)...)
			continue
		}
		out = append(out, key)
	}
	return out
}

// everyField calls do for the fields of a type and of all types in it.
func everyField(t reflect.Type, do func(owner reflect.Type, f reflect.StructField)) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		do(t, f)
		everyField(f.Type, do)
	}
}

// TestReference_complete: every key is in the reference, with a comment.
func TestReference_complete(t *testing.T) {
	for _, c := range []struct {
		of        reflect.Type
		reference func() (string, error)
	}{
		{reflect.TypeFor[config.Hub](), config.ReferenceHub},
		{reflect.TypeFor[config.Authz](), config.ReferenceAuthz},
	} {
		text, err := c.reference()
		if err != nil {
			t.Fatal(err)
		}
		everyField(c.of, func(owner reflect.Type, f reflect.StructField) {
			key := f.Tag.Get("yaml")
			if key == "" || strings.Contains(key, ",") {
				t.Errorf("%s.%s has no plain yaml key", owner.Name(), f.Name)
			}
			if !regexp.MustCompile(`(?m)^ *# .+\n *(- )?` + regexp.QuoteMeta(key) + `:|^ *- # .+\n *` + regexp.QuoteMeta(key) + `:`).MatchString(text) {
				t.Errorf("the reference has no comment for %s (%s.%s)", key, owner.Name(), f.Name)
			}
		})
	}
}

// TestNoSecrets: configuration names files with secrets and holds none, which is why it can be printed.
func TestNoSecrets(t *testing.T) {
	secret := regexp.MustCompile(`(?i)secret|password|token|credential|dsn|private`)
	check := func(owner reflect.Type, f reflect.StructField) {
		key := f.Tag.Get("yaml")
		if secret.MatchString(key) && f.Type.Kind() == reflect.String && f.Type != reflect.TypeFor[config.File]() {
			t.Errorf("%s.%s (%s) would hold a secret: make it a File", owner.Name(), f.Name, key)
		}
		if strings.HasSuffix(key, "_file") != (f.Type == reflect.TypeFor[config.File]()) && key != "path" && key != "control_socket" {
			t.Errorf("%s.%s (%s): names of files end in _file and are Files", owner.Name(), f.Name, key)
		}
	}
	everyField(reflect.TypeFor[config.Hub](), check)
	everyField(reflect.TypeFor[config.Authz](), check)
}

func TestLoad_missingFile(t *testing.T) {
	if _, err := config.LoadHub(config.Source{Path: filepath.Join(t.TempDir(), "none.yaml")}); err == nil {
		t.Error("a missing file loads")
	}
}
