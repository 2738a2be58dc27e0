package proof_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/checks"
	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/refhub"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// site is one way to set the reference hub up. Together the sites have every feature, so that no check is left out.
type site struct {
	name    string
	tls     bool
	path    string
	publish string // algorithm of the publisher's key
	read    string // algorithm of the subscriber's key; empty: one key for both
	options refhub.Options
	rest    bool // only for what no site before it can check
}

const (
	pages   = "https://app.example.com"
	cookie  = "mercure_token"
	client  = "conformance"
	another = "https://second.example"
)

func sites() []site {
	return []site{
		{
			name: "open", path: suite.DefaultPath, publish: "ES256",
			options: refhub.Options{
				CookieName: cookie, CORSOrigins: []string{pages}, PublishOrigins: []string{pages}, Anonymous: true, Query: true,
				Subscriptions: true, KeepAlive: 500 * time.Millisecond,
				AuthorizationServer: &refhub.AuthorizationServer{ClientID: client},
			},
		},
		{
			name: "closed", tls: true, path: "/hubs/live", publish: "RS256", read: "EdDSA",
			options: refhub.Options{
				Resource: "https://live.example.com/", CookieName: cookie, CORSOrigins: []string{pages}, PublishOrigins: []string{pages}, Query: true,
			},
		},
		{
			name: "short", path: suite.DefaultPath, publish: "HS256", rest: true,
			options: refhub.Options{Lifetime: 8 * time.Second, Anonymous: true, Subscriptions: true},
		},
	}
}

// keys are made once: an RSA key costs more than a hub.
type keys struct {
	mu   sync.Mutex
	made map[string]jose.Key
}

func (k *keys) get(name, alg string) (jose.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key, ok := k.made[name]; ok {
		return key, nil
	}
	key, err := jose.Generate(alg)
	key.Kid = name
	k.made[name] = key
	return key, err
}

// verifies is what the hub knows of a key.
func verifies(k jose.Key) refhub.Key {
	if k.Symmetric() {
		return refhub.Key{Alg: k.Alg, Kid: k.Kid, Verify: k.Secret()}
	}
	return refhub.Key{Alg: k.Alg, Kid: k.Kid, Verify: k.Public()}
}

// start runs the reference hub with a fault (none when empty) and describes it for the suite. The caller stops it.
func (s site) start(k *keys, fault string) (target *suite.Target, stop func(), err error) {
	var handler http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	server.EnableHTTP2 = true
	base := "http://" + server.Listener.Addr().String()
	if s.tls {
		base = "https://" + server.Listener.Addr().String()
	}
	o := s.options
	o.URL, o.Fault = base+s.path, fault
	publish, err := k.get(s.name+"-publish", s.publish)
	read := publish
	if s.read != "" && err == nil {
		read, err = k.get(s.name+"-read", s.read)
	}
	second, err2 := k.get("second", "HS256")
	secret, err3 := k.get("client", "HS256")
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, nil, err
	}
	target = &suite.Target{
		URL: o.URL, Resource: o.Resource, CookieName: o.CookieName, KeepAlive: o.KeepAlive, Lifetime: o.Lifetime,
		Issuers: []suite.Issuer{
			{ID: "https://issuer.example", Publish: publish, Subscribe: read},
			{ID: another, Publish: second, Subscribe: second},
		},
		Features: map[suite.Feature]bool{
			suite.Anonymous: o.Anonymous, suite.Cookie: o.CookieName != "", suite.QueryMethod: o.Query, suite.History: true,
			suite.Subscriptions: o.Subscriptions, suite.Metadata: true,
		},
	}
	if len(o.CORSOrigins) > 0 {
		target.CORSOrigin, target.PublishOrigin = pages, pages
	}
	for _, i := range target.Issuers {
		o.Issuers = append(o.Issuers, refhub.Issuer{ID: i.ID, Publish: []refhub.Key{verifies(i.Publish)}, Subscribe: []refhub.Key{verifies(i.Subscribe)}})
	}
	if as := o.AuthorizationServer; as != nil {
		secret := jose.Encode(secret.Secret())
		o.AuthorizationServer = &refhub.AuthorizationServer{Issuer: base + "/as", ClientID: as.ClientID, ClientSecret: secret}
		target.AuthorizationServer = &suite.AuthorizationServer{Issuer: base + "/as", ClientID: as.ClientID, ClientSecret: secret}
	}
	hub, err := refhub.New(o)
	if err != nil {
		return nil, nil, err
	}
	handler = hub
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // faults break connections
	if s.tls {
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		server.StartTLS()
		target.Roots = x509.NewCertPool()
		target.Roots.AddCert(server.Certificate())
	} else {
		server.Start()
	}
	return target, func() {
		hub.Close()
		server.CloseClientConnections()
		server.Close()
	}, nil
}

// theSuite is the suite with the project's matrix.
func theSuite(tb testing.TB) (*suite.Suite, []suite.Requirement) {
	tb.Helper()
	raw, err := os.ReadFile("../testdata/requirements.md")
	if err != nil {
		tb.Fatal(err)
	}
	rows, err := suite.Requirements(string(raw))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := suite.New(rows, checks.All())
	if err != nil {
		tb.Fatal(err)
	}
	return s, rows
}

// ask runs some checks against a hub and gives their results by name.
func ask(ctx context.Context, s *suite.Suite, target *suite.Target, parallel int, selected func(suite.Check) bool) (map[string]suite.Result, error) {
	results, err := s.Run(ctx, target, suite.Options{Parallel: parallel, Select: selected})
	if err != nil {
		return nil, err
	}
	byName := make(map[string]suite.Result, len(results))
	for _, r := range results {
		byName[r.Check] = r
	}
	return byName, nil
}

// lines reads a list: a name and what follows it, without comments and empty lines.
func lines(tb testing.TB, file string) [][]string {
	tb.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			all = append(all, f)
		}
	}
	return all
}
