package hubapp

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// logServer is an authorization server elsewhere that revokes nothing, and notes which clients read its log.
type logServer struct {
	*httptest.Server

	mu    sync.Mutex
	asked map[string]int
}

func newLogServer(t *testing.T) *logServer {
	t.Helper()
	s := &logServer{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var claims struct {
			Issuer string `json:"iss"`
		}
		if parts := strings.Split(r.PostFormValue("client_assertion"), "."); len(parts) == 3 {
			raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
			_ = json.Unmarshal(raw, &claims)
		}
		s.mu.Lock()
		s.asked[claims.Issuer]++
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"revocations":[],"last":0}`))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *logServer) requests(client string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[client]
}

// follows adds an authorization server whose revocations a client reads.
func follows(t *testing.T, issuer, client string) func(*config.Hub) {
	t.Helper()
	key, err := token.Generate("EdDSA")
	if err != nil {
		t.Fatal(err)
	}
	jwk, err := key.PrivateJWK()
	if err != nil {
		t.Fatal(err)
	}
	return func(c *config.Hub) {
		c.Issuers = append(slices.Clip(c.Issuers), config.Issuer{
			ID: issuer, AuthorizationServer: true,
			Revocations: config.IssuerRevocations{ClientID: client, ClientKeyFile: write(t, "client.jwk", string(jwk))},
		})
	}
}

// sources gives a metric by the source it is about.
func (s *served) sources(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				out[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

const lastRead = "cinnabar_hub_revocation_log_read_timestamp_seconds"

func TestReload_refusedKeepsWhatIsFollowed(t *testing.T) {
	known, novel, down := newLogServer(t), newLogServer(t), newLogServer(t)
	s := serve(t, follows(t, known.URL, "hub"), follows(t, down.URL, "hub"))
	down.Close()
	next := s.config
	next.Issuers = next.Issuers[:1]
	for _, issuer := range []string{known.URL, novel.URL, down.URL} {
		follows(t, issuer, "another")(&next)
	}
	before := s.engine.revocations.lists[known.URL]
	if err := s.Reload(t.Context(), next, nil); err == nil || !strings.Contains(err.Error(), down.URL) {
		t.Fatalf("Reload = %v", err)
	}
	if known.requests("another") == 0 || novel.requests("another") == 0 {
		t.Error("the new credentials were not tried")
	}
	if now := s.engine.revocations.lists[known.URL]; len(now) != 1 || now[0] != before[0] {
		t.Errorf("after a refused reload %d lists judge the tokens of %s, want the one from before", len(now), known.URL)
	}
	if n := len(s.engine.revocations.lists[novel.URL]); n != 0 {
		t.Errorf("after a refused reload %d lists judge the tokens of an issuer that is not trusted", n)
	}
	next.Issuers = next.Issuers[:3]
	if err := s.Reload(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	if now := s.engine.revocations.lists[known.URL]; len(now) != 1 || now[0] == before[0] {
		t.Errorf("after a reload %d lists judge the tokens of %s, want the one with new credentials", len(now), known.URL)
	}
}

func TestReload_metricsOfWhatIsFollowedNoLonger(t *testing.T) {
	stays, goes := newLogServer(t), newLogServer(t)
	s := serve(t, follows(t, stays.URL, "hub"), follows(t, goes.URL, "hub"))
	if got := s.sources(t, lastRead); len(got) != 2 {
		t.Fatalf("%s has %v, want two sources", lastRead, got)
	}
	next := s.config
	next.Issuers = next.Issuers[:1]
	follows(t, stays.URL, "another")(&next)
	if err := s.Reload(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{lastRead, "cinnabar_hub_revocations", "cinnabar_hub_revocation_log_position"} {
		got := s.sources(t, name)
		delete(got, stays.URL)
		if diff := cmp.Diff(map[string]float64{}, got); diff != "" {
			t.Errorf("%s of what is followed no longer (-want +got):\n%s", name, diff)
		}
	}
	if _, ok := s.sources(t, lastRead)[stays.URL]; !ok {
		t.Error("a log that is read with other credentials has lost its metrics")
	}
}

// An alert on the age of what the hub knows must see a log that could not be read at all.
func TestFollow_metricsOfALogNeverRead(t *testing.T) {
	gone := newLogServer(t)
	gone.Close()
	s := serve(t, follows(t, gone.URL, "hub"))
	if diff := cmp.Diff(map[string]float64{gone.URL: 0}, s.sources(t, lastRead)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", lastRead, diff)
	}
	if text := s.log.String(); strings.Count(text, gone.URL+"/revocations") != 1 {
		t.Errorf("the log has not one line about an authorization server that is down:\n%s", text)
	}
}
