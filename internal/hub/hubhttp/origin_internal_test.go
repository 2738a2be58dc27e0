package hubhttp

import (
	"errors"
	"strings"
	"testing"
)

func TestNewOrigins(t *testing.T) {
	good := []string{
		"https://app.example.com", "http://localhost:5173", "https://xn--bcher-kva.example", "http://127.0.0.1:3000",
		"http://[::1]:8080", "https://a_b.example:8443", "capacitor://localhost", "chrome-extension://abcdef",
	}
	set, err := newOrigins(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range good {
		if !set.has(s) {
			t.Errorf("has(%q) = false, want true", s)
		}
	}
	for _, s := range []string{ // CORS-04
		"https://app.example.com/", "https://app.example.com:443", "https://app.example.com.", "HTTPS://app.example.com",
		"https://APP.example.com", "http://app.example.com", "https://app.example.com:8443", "https://evil.app.example.com",
		"https://app.example.com.evil.example", "https://app.example.co", "null", "", "*", "https://app.example.com/x",
		" https://app.example.com", "https://user@app.example.com",
	} {
		if set.has(s) {
			t.Errorf("CORS-04 has(%q) = true, want false", s)
		}
	}
	for s, meant := range map[string]string{
		"*":                          "",
		"null":                       "",
		"":                           "",
		"app.example.com":            "",
		"https://":                   "",
		"https://*.example.com":      "",
		"https://bücher.example":     "",
		"https://a.example:99999":    "",
		"https://a.example:080":      "",
		"http://127.1":               "",
		"http://[::1%25eth0]":        "",
		"http://[0:0::1]":            "",
		"data:text/html,x":           "",
		"https://a.example/":         "https://a.example",
		"https://a.example:443":      "https://a.example",
		"http://a.example:80":        "http://a.example",
		"https://a.example/path?x=1": "https://a.example",
		"https://A.example":          "https://a.example",
		"HTTPS://a.example":          "https://a.example",
		"https://u:p@a.example":      "https://a.example",
		"https://a.example:":         "https://a.example",
		"https://a.example#":         "https://a.example",
	} {
		_, err := newOrigins([]string{s})
		if !errors.Is(err, ErrOrigin) || !strings.Contains(err.Error(), meant) {
			t.Errorf("newOrigins(%q) = %v, want %v naming %q", s, err, ErrOrigin, meant)
		}
	}
}
