package checks

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// tokTrap is a server that serves a forger's key under every path, and counts who comes. It stands where the hub can reach
// it: on the address from which we reach the hub.
type tokTrap struct {
	URL string // without a path

	key      jose.Key
	chain    []byte // PEM
	came     atomic.Int64
	server   *http.Server
	finished sync.WaitGroup
}

// tokTrapKid is the kid of the forger's key in the trap's key set.
const tokTrapKid = "conformance"

// tokListener counts connections before a byte of them is read: a handshake that fails counts.
type tokListener struct {
	net.Listener

	came *atomic.Int64
}

func (l tokListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.came.Add(1)
	}
	return c, err
}

// newTokTrap opens a trap, with TLS or without. It is asked once itself, so that a trap that nobody can reach proves
// nothing.
func newTokTrap(t *suite.T, f *tokForger, secure bool) *tokTrap {
	conn, err := t.Dialer().Dial(t.Context())
	if err != nil {
		t.Fail("the hub cannot be reached: %v", err)
	}
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	_ = conn.Close()
	if err != nil {
		t.Fail("the suite does not know its own address: %v", err)
	}
	var lc net.ListenConfig
	open, err := lc.Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fail("the suite cannot listen: %v", err)
	}
	p := &tokTrap{key: f.key(t, "ES256", tokTrapKid), URL: "http://" + open.Addr().String()}
	der, signer := tokCertificate(t, p.key, net.ParseIP(host))
	p.chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	counting := net.Listener(tokListener{open, &p.came})
	if secure {
		p.URL = "https://" + open.Addr().String()
		counting = tls.NewListener(counting, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: signer}}})
	}
	set := string(tokJSON(t, jose.Object{"keys": []jose.Object{tokPublished(tokJWK(t, p.key), p.key)}}))
	p.server = &http.Server{
		Handler:     p.handler(set),
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // failed handshakes are nobody's concern
	}
	p.finished.Go(func() { _ = p.server.Serve(counting) })
	p.test(t)
	return p
}

func tokPublished(public jose.Object, key jose.Key) jose.Object {
	public["kid"], public["alg"], public["use"] = key.Kid, key.Alg, "sig"
	return public
}

// handler answers every path with what a hub that came there would look for.
func (p *tokTrap) handler(set string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/chain.pem", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(p.chain)
	})
	metadata := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"issuer":"`+p.URL+`","jwks_uri":"`+p.URL+`/jwks.json","token_endpoint":"`+p.URL+`/token"}`)
	}
	mux.HandleFunc("/.well-known/oauth-authorization-server", metadata)
	mux.HandleFunc("/.well-known/openid-configuration", metadata)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = io.WriteString(w, set)
	})
	return mux
}

// test asks the trap for its keys and forgets that it was asked.
func (p *tokTrap) test(t *suite.T) {
	u, err := url.Parse(p.URL)
	if err != nil {
		p.close()
		t.Fail("the suite's own URL is none: %v", err)
	}
	d, err := wire.New(u, wire.Options{Insecure: true, Timeout: t.Target().Patience})
	if err == nil {
		_, err = d.Do(t.Context(), wire.Request{Method: "GET", Target: "/jwks.json"})
	}
	if err != nil || p.came.Swap(0) != 1 {
		p.close()
		t.Fail("the suite cannot reach its own listener: %v", err)
	}
}

// close ends the trap and its connections.
func (p *tokTrap) close() {
	_ = p.server.Close()
	p.finished.Wait()
}

// tokRemoteChecks are those of keys that the token says where to get: it is refused, and nobody comes to get them.
func tokRemoteChecks(f *tokForger) []suite.Check {
	header := func(name, path string) func(*suite.T, *tokTrap, *jose.Token) {
		return func(_ *suite.T, p *tokTrap, token *jose.Token) { token.Header[name] = p.URL + path }
	}
	cases := []struct {
		id, name string
		secure   bool
		bait     func(t *suite.T, p *tokTrap, token *jose.Token)
	}{
		{"TOK-10", "jku", false, header("jku", "/jwks.json")},
		{"TOK-10", "jku-https", true, header("jku", "/jwks.json")},
		{"TOK-10", "x5u", false, header("x5u", "/chain.pem")},
		{"TOK-10", "x5u-https", true, header("x5u", "/chain.pem")},
		{"TOK-10", "jwks_uri", false, header("jwks_uri", "/jwks.json")},
		{"TOK-10", "jku-behind-the-issuer", true, func(t *suite.T, p *tokTrap, token *jose.Token) {
			token.Header["jku"] = tokBehindIssuer(t, p) + "/jwks.json"
		}},
		{"TOK-10", "x5u-behind-the-issuer", true, func(t *suite.T, p *tokTrap, token *jose.Token) {
			token.Header["x5u"] = tokBehindIssuer(t, p) + "/chain.pem"
		}},
		{"TOK-10", "jku-of-the-server", false, func(_ *suite.T, p *tokTrap, token *jose.Token) {
			token.Header["jku"], token.Claims["iss"] = p.URL+"/jwks.json", p.URL
		}},
		{"TOK-10", "claims", false, func(_ *suite.T, p *tokTrap, token *jose.Token) {
			token.Claims["jku"], token.Claims["x5u"], token.Claims["jwks_uri"] = p.URL+"/jwks.json", p.URL+"/chain.pem", p.URL+"/jwks.json"
		}},
		// An issuer that is not trusted is not asked for its keys, nor is anything a kid seems to point to.
		{"TOK-10", "iss", false, func(_ *suite.T, p *tokTrap, token *jose.Token) { token.Claims["iss"] = p.URL }},
		{"TOK-10", "iss-https", true, func(_ *suite.T, p *tokTrap, token *jose.Token) { token.Claims["iss"] = p.URL }},
		{"TOK-11", "kid-is-a-URL", false, header("kid", "/jwks.json")},
		{"TOK-10", "x5c", false, func(t *suite.T, p *tokTrap, token *jose.Token) {
			block, _ := pem.Decode(p.chain)
			token.Header["x5c"] = []string{base64.StdEncoding.EncodeToString(block.Bytes)}
		}},
	}
	checks := make([]suite.Check, len(cases))
	for i, c := range cases {
		checks[i] = one(c.id, c.name, func(t *suite.T) { tokBaited(t, f, c.secure, c.bait) })
	}
	return checks
}

// tokBaited publishes with tokens of the trap's key, in the name of every issuer, with the trap's kid, with that of a
// trusted key, and with none.
func tokBaited(t *suite.T, f *tokForger, secure bool, bait func(t *suite.T, p *tokTrap, token *jose.Token)) {
	p := newTokTrap(t, f, secure)
	defer p.close()
	for _, issuer := range t.Target().Issuers {
		right := tokRight(t, issuer)
		tokPublish(t, tokRightOf(issuer), t.SignWith(issuer.Publish, right), 200)
		for _, token := range append(tokKids(right, issuer.Publish), tokKids(right, p.key)...) {
			bait(t, p, &token)
			unnamed := p.key
			unnamed.Kid = ""
			tokPublish(t, "a token that brings its own key", t.SignWith(unnamed, token), 401)
		}
		// A right token with the bait may be accepted or refused; nobody follows it in either case.
		bait(t, p, &right)
		tokPublish(t, "a right token with the bait", t.SignWith(issuer.Publish, right), 200, 400, 401)
	}
	if came := p.came.Load(); came > 0 {
		t.Fail("the hub followed the token to a server of ours: %d connections", came)
	}
	t.Observed("nobody came to the listener at %s", p.URL)
}

// tokBehindIssuer is the URL of the trap in a spelling that begins like that of the first issuer.
func tokBehindIssuer(t *suite.T, p *tokTrap) string {
	issuer, err := url.Parse(t.Target().Issuers[0].ID)
	if err != nil || issuer.Host == "" {
		t.Skip("the identifier of the first issuer, %q, is no URL with a host: nothing can be spelled to begin like it", t.Target().Issuers[0].ID)
	}
	own, err := url.Parse(p.URL)
	if err != nil {
		t.Fail("the suite's own URL is none: %v", err)
	}
	return "https://" + issuer.Hostname() + "@" + own.Host
}
