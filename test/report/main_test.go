package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFindLeaks(t *testing.T) {
	dir := t.TempDir()
	outputs := filepath.Join(dir, "output")
	if err := os.Mkdir(outputs, 0o700); err != nil {
		t.Fatal(err)
	}
	secrets := filepath.Join(dir, "secrets")
	write(t, secrets, "\"correct horse battery staple\"\n\"short\"\n")
	jwt := "ey" + "JhbGciOiJFUzI1NiJ9.ey" + "JzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
	for name, tc := range map[string]struct {
		output string
		leak   string
	}{
		"clean":              {output: "level=INFO msg=\"nothing to see\" short\n"},
		"the whole secret":   {output: "a\npassword=correct horse battery staple\n", leak: "line 2: a piece"},
		"12 characters":      {output: "xxhorse batteryxx\n", leak: "a piece"},
		"11 characters":      {output: "xxhorse battexx\n"},
		"a token never told": {output: "token=" + jwt + "\n", leak: "something shaped like a token"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(outputs, "hub.log"), tc.output)
			leaks, err := findLeaks(secrets, outputs)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(leaks, "; "); (tc.leak == "") != (got == "") || !strings.Contains(got, tc.leak) || strings.Contains(got, "horse") {
				t.Errorf("leaks = %q, want %q", got, tc.leak)
			}
		})
	}
}

func TestReport_summary(t *testing.T) {
	for name, tc := range map[string]struct {
		events  []event
		require string
		leaks   []string
		code    int
		want    string
	}{
		"all pass": {events: []event{{Action: "pass", Package: "p", Test: "A"}, {Action: "pass", Package: "p"}}, want: "1 passed, 0 failed, 0 skipped"},
		"a failure": {
			events: []event{{Action: "output", Package: "p", Test: "A", Output: "boom\n"}, {Action: "fail", Package: "p", Test: "A"}},
			code:   1, want: "boom",
		},
		"a skip says why": {
			events: []event{{Action: "output", Package: "p", Test: "A", Output: "    a_test.go:3: needs a browser\n"}, {Action: "skip", Package: "p", Test: "A"}},
			want:   "A: needs a browser",
		},
		"a skip where everything is required": {
			events: []event{{Action: "skip", Package: "p", Test: "A"}}, require: "all", code: 1, want: "asks for everything",
		},
		"a leak": {leaks: []string{"hub.log line 1"}, code: 1, want: "SECRET IN OUTPUT: hub.log line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CINNABAR_TEST_REQUIRE", tc.require)
			all, err := os.Create(filepath.Join(t.TempDir(), "all"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = all.Close() }()
			var out strings.Builder
			r := &report{output: map[key]*strings.Builder{}, all: all, out: &out}
			for _, e := range tc.events {
				if err := r.take(e); err != nil {
					t.Fatal(err)
				}
			}
			if code := r.summary(nil, tc.leaks, 0); code != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("code %d, want %d; output %q, want %q in it", code, tc.code, out.String(), tc.want)
			}
		})
	}
}
