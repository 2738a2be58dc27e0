package obs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

func TestNewLogger(t *testing.T) {
	for _, tc := range []struct {
		format obs.LogFormat
		want   string
	}{
		{obs.LogText, `level=INFO msg=hello request_id=r1 token=[redacted] g.client_secret=[redacted]`},
		{"", `level=INFO msg=hello request_id=r1 token=[redacted] g.client_secret=[redacted]`},
		{obs.LogJSON, `"level":"INFO","msg":"hello","request_id":"r1","token":"[redacted]","g":{"client_secret":"[redacted]"}`},
	} {
		t.Run(string(tc.format), func(t *testing.T) {
			var b bytes.Buffer
			log, err := obs.NewLogger(obs.LogOptions{Writer: &b, Format: tc.format})
			if err != nil {
				t.Fatal(err)
			}
			log.Debug("hidden")
			log.Info("hello", slog.String("request_id", "r1"), slog.String("token", "eyJ"),
				slog.Group("g", slog.String("client_secret", "s3cret")))
			if got := b.String(); !strings.Contains(got, tc.want) || strings.Contains(got, "hidden") || strings.Count(got, "\n") != 1 {
				t.Errorf("log = %q, want one line with %q", got, tc.want)
			}
		})
	}
	if _, err := obs.NewLogger(obs.LogOptions{Writer: &bytes.Buffer{}, Format: "xml"}); !errors.Is(err, obs.ErrLogFormat) {
		t.Errorf("NewLogger(xml) = %v, want %v", err, obs.ErrLogFormat)
	}
}

func TestParseLevel(t *testing.T) {
	for s, want := range map[string]slog.Level{
		"debug": slog.LevelDebug, "Info": slog.LevelInfo, "WARN": slog.LevelWarn, "error": slog.LevelError,
	} {
		if got, err := obs.ParseLevel(s); err != nil || got != want {
			t.Errorf("ParseLevel(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "trace", "info+1"} {
		if _, err := obs.ParseLevel(s); !errors.Is(err, obs.ErrLogLevel) {
			t.Errorf("ParseLevel(%q) = %v, want %v", s, err, obs.ErrLogLevel)
		}
	}
}

func TestIsSecretKey(t *testing.T) {
	for _, key := range []string{
		"token", "access_token", "Refresh_Token", "client_secret", "cookie", "password", "code", "code_verifier",
		"authorization", "client_assertion", "private_key", "store_dsn",
	} {
		if !obs.IsSecretKey(key) {
			t.Errorf("IsSecretKey(%q) = false, want true", key)
		}
	}
	for _, key := range []string{
		"request_id", "token_id", "secret_file", "cookie_name", "status_code", "error_code", "endpoint", "encode", "issuer", "",
	} {
		if obs.IsSecretKey(key) {
			t.Errorf("IsSecretKey(%q) = true, want false", key)
		}
	}
}
