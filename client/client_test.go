package client_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cinnabar-hub/cinnabar/client"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/authzcli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/hubcli"
)

// actAs names the variable that makes this program one of ours, for tests that run commands.
const actAs = "CLIENT_TEST_ACT_AS"

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	switch os.Getenv(actAs) {
	case "hub":
		os.Exit(hubcli.Main(ctx, cli.ProcessEnv("test")))
	case "authz":
		os.Exit(authzcli.Main(ctx, cli.ProcessEnv("test")))
	}
	stop()
	goleak.VerifyTestMain(m)
}

// mustNew makes a client whose kept connections are closed when the test ends.
func mustNew(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// always is a source of one token.
func always(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

func TestNew(t *testing.T) {
	token := always("t")
	for name, c := range map[string]struct {
		options client.Options
		err     string
	}{
		"https":                       {client.Options{HubURL: "https://hub.example.com/.well-known/mercure", Token: token}, ""},
		"any path, and a query":       {client.Options{HubURL: "https://example.com/live?tenant=1", Token: token}, ""},
		"http without a token":        {client.Options{HubURL: "http://hub.example.com/hub"}, ""},
		"http on localhost":           {client.Options{HubURL: "http://localhost:8080/hub", Token: token}, ""},
		"AUTH-14 below localhost":     {client.Options{HubURL: "http://app.localhost/hub", Token: token}, "plain HTTP"},
		"http on a loopback address":  {client.Options{HubURL: "http://127.8.0.1/hub", Token: token}, ""},
		"http on ::1":                 {client.Options{HubURL: "http://[::1]:80/hub", Token: token}, ""},
		"http where it is safe":       {client.Options{HubURL: "http://hub.internal/hub", Token: token, AllowPlainHTTP: true}, ""},
		"AUTH-14 a token over http":   {client.Options{HubURL: "http://hub.example.com/hub", Token: token}, "plain HTTP"},
		"AUTH-14 a misleading name":   {client.Options{HubURL: "http://localhost.example.com/hub", Token: token}, "plain HTTP"},
		"AUTH-14 a private address":   {client.Options{HubURL: "http://10.0.0.1/hub", Token: token}, "plain HTTP"},
		"nothing":                     {client.Options{}, "HubURL"},
		"a path":                      {client.Options{HubURL: "/.well-known/mercure"}, "HubURL"},
		"another scheme":              {client.Options{HubURL: "ftp://hub.example.com/hub"}, "HubURL"},
		"not a URL":                   {client.Options{HubURL: "https://hub.example.com:x"}, "HubURL"},
		"credentials in the URL":      {client.Options{HubURL: "https://me:secret@hub.example.com/hub"}, "credentials"},
		"a fragment":                  {client.Options{HubURL: "https://hub.example.com/hub#x"}, "fragment"},
		"TLS beside another's client": {client.Options{HubURL: "https://hub.example.com/hub", TLS: &tls.Config{}, HTTPClient: &http.Client{}}, "TLS"},
	} {
		got, err := client.New(c.options)
		switch {
		case c.err == "" && (err != nil || got == nil):
			t.Errorf("%s: New = %v", name, err)
		case c.err != "" && (err == nil || got != nil || !strings.HasPrefix(err.Error(), "client: ") || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: New = %v, want an error about %q", name, err, c.err)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error shows a secret: %v", name, err)
		}
	}
}
