// Package secretwatch lets tests tell the one checker which secrets went over the wire, so that it can look for pieces of them in
// the output of every test's process (package report, which runs the tests).
//
// Secrets go to the file that CINNABAR_TEST_SECRETS names, one JSON string a line; without the variable nothing is written.
// Output of programs that tests start goes to the folder that CINNABAR_TEST_OUTPUT names. Safe for concurrent use by several
// processes: each call appends whole lines.
package secretwatch

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The variables through which report and the tests meet.
const (
	SecretsVariable = "CINNABAR_TEST_SECRETS"
	OutputVariable  = "CINNABAR_TEST_OUTPUT"
)

// Add tells the checker of secrets. Values shorter than 12 characters are not looked for.
func Add(tb testing.TB, secrets ...string) {
	tb.Helper()
	path := os.Getenv(SecretsVariable)
	if path == "" {
		return
	}
	var lines bytes.Buffer
	for _, s := range secrets {
		line, err := json.Marshal(s)
		if err != nil {
			tb.Fatalf("record secret: %v", err)
		}
		lines.Write(append(line, '\n'))
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatalf("record secret: %v", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(lines.Bytes()); err != nil {
		tb.Fatalf("record secret: %v", err)
	}
}

// Output gives a writer for the output of a program that the test starts, kept for the checker; it also writes to also.
func Output(tb testing.TB, name string, also io.Writer) io.Writer {
	tb.Helper()
	dir := os.Getenv(OutputVariable)
	if dir == "" {
		return also
	}
	f, err := os.CreateTemp(dir, filepath.Base(name)+"-*.log")
	if err != nil {
		tb.Fatalf("keep output: %v", err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return io.MultiWriter(f, also)
}

// Transport records the secrets of the requests and responses that pass through it.
type Transport struct {
	TB   testing.TB
	Base http.RoundTripper
}

// secretFields are form fields, query parameters and JSON members whose values are secret.
func secretFields() []string {
	return []string{"code", "code_verifier", "password", "client_assertion", "client_secret", "access_token", "refresh_token", "state"}
}

// RoundTrip passes the request on.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		_, token, _ := strings.Cut(h, " ")
		Add(t.TB, token)
	}
	for _, c := range r.Cookies() {
		Add(t.TB, c.Value)
	}
	t.fields(r.URL.Query())
	if mt, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mt == "application/x-www-form-urlencoded" && r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		if form, err := url.ParseQuery(string(body)); err == nil {
			t.fields(form)
		}
	}
	resp, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	for _, c := range resp.Cookies() {
		Add(t.TB, c.Value)
	}
	if u, err := url.Parse(resp.Header.Get("Location")); err == nil {
		t.fields(u.Query())
	}
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt == "application/json" {
		err = t.json(resp)
	}
	return resp, err
}

func (t *Transport) fields(v url.Values) {
	for _, name := range secretFields() {
		for _, s := range v[name] {
			Add(t.TB, s)
		}
	}
}

func (t *Transport) json(resp *http.Response) error {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return nil //nolint:nilerr // not an object, so it has no members
	}
	for _, name := range secretFields() {
		if s, ok := members[name].(string); ok {
			Add(t.TB, s)
		}
	}
	return nil
}
