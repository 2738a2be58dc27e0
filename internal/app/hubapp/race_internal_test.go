package hubapp

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/config"
)

// Reloads, some of them refused, come from several sides while streams are opened and updates published, and while the hub stops. It is for
// the race detector, and for what a half-done reload would leave behind.
func TestReload_Race(t *testing.T) {
	remote := newLogServer(t)
	authz := bundledConfig(t)
	c := config.DefaultHub()
	c.Listen, c.TLS.Mode, c.Ops.Listen, c.Drain, c.History.Driver = freeAddress(t), "off", "", 0, "memory"
	c.PublicURL, c.Resource = testHub, testHub
	secret := write(t, "secret", sharedSecret)
	c.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: secret}}}}
	bundle(&c)
	variants := make([]config.Hub, 4)
	for i := range variants {
		variants[i] = c
		follows(t, remote.URL, "hub"+strconv.Itoa(i))(&variants[i])
	}
	variants[1].Anonymous = false
	variants[2].CORSOrigins = []string{"nonsense"}
	variants[3].Issuers = variants[3].Issuers[:1]

	a, err := New(t.Context(), c, authz, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var busy sync.WaitGroup
	for side := range 2 {
		busy.Go(func() {
			for i := range 8 {
				if side == 0 && os.WriteFile(string(secret), []byte(strconv.Itoa(i)+sharedSecret), 0o600) != nil {
					t.Error("the secret cannot be written")
				}
				_ = a.Reload(ctx, variants[(i+side)%len(variants)], authz)
			}
		})
	}
	quit := make(chan struct{})
	var clients sync.WaitGroup
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		clients.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				if resp, err := do(t, method, c.Listen, nil, ""); err == nil {
					_ = resp.Body.Close()
				}
			}
		})
	}
	busy.Wait()
	busy.Go(func() { _ = a.Reload(ctx, variants[0], authz) })
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
	busy.Wait()
	close(quit)
	clients.Wait()
	if n := len(a.engine.revocations.lists[remote.URL]); n > 1 {
		t.Errorf("%d lists judge the tokens of one issuer", n)
	}
}
