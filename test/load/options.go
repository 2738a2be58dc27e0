package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
)

// options is the command line.
type options struct {
	hub, start, versus, db, dir   string
	scenarios                     string
	n, c, size, window            int
	stalled                       int
	events, history               int
	rate                          float64
	duration, stall, rest         time.Duration
	key, alg, kid                 string
	issuer, audience              string
	tokenFile, subTokenFile       string
	tokens                        bool
	ca                            string
	insecure, http2               bool
	https, plain                  bool // of what -start and -versus start: https for both; plain for -versus
	streams, sources, connections int
	times                         int
	pid                           int
	topics                        string
	json                          bool

	args []string // the scenarios, in order
}

func (o *options) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.hub, "hub", "http://127.0.0.1:8080/.well-known/mercure", "the hub's `URL`")
	fs.StringVar(&o.scenarios, "scenario", "fan-out", "what to do, or several of them with commas between, or all: "+strings.Join(scenarioNames(), ", "))
	fs.IntVar(&o.n, "n", 1000, "subscribers")
	fs.IntVar(&o.stalled, "stalled", 0, "fan-out, private: do it a second time beside so many further subscribers that do not read, and tell what that does to the others; "+
		"then those come back for what they missed")
	fs.IntVar(&o.c, "c", 16, "publishers, each with one connection and one update at a time")
	fs.IntVar(&o.size, "size", 200, fmt.Sprintf("bytes of data of an update, at least %d", markBytes))
	fs.DurationVar(&o.duration, "duration", 5*time.Second, "how long to publish at most; idle: how long to wait")
	fs.IntVar(&o.events, "events", 1_000_000, "how many updates to publish at most")
	fs.Float64Var(&o.rate, "rate", 0, "updates a second, for measuring latency; 0: as many as the hub takes")
	fs.IntVar(&o.window, "window", 64, fmt.Sprintf("how many updates may be published and not delivered yet; %d times as many where each is for one subscriber", windowOfOne))
	fs.DurationVar(&o.stall, "stall", 5*time.Second, "how long to wait for the next delivery before the rest is called lost")
	fs.DurationVar(&o.rest, "rest", 3*time.Second, "idle: how long the hub has to come to rest before its memory is looked at")
	fs.IntVar(&o.history, "history", 20_000, "replay: how many updates to store first")
	fs.StringVar(&o.key, "key", "", "`file` with the key that tokens are signed with: a shared secret (HS algorithms), or a private key as PEM or JWK")
	fs.StringVar(&o.alg, "alg", "HS256", "the key's algorithm")
	fs.StringVar(&o.kid, "kid", "", "the key's id, when tokens are to name it")
	fs.StringVar(&o.issuer, "issuer", "", "iss of the tokens")
	fs.StringVar(&o.audience, "audience", "", "aud of the tokens (default: the hub's URL)")
	fs.StringVar(&o.tokenFile, "token-file", "", "`file` with the publishers' token, instead of -key")
	fs.StringVar(&o.subTokenFile, "subscriber-token-file", "", "`file` with the subscribers' token; without it, and without -tokens, they are anonymous")
	fs.BoolVar(&o.tokens, "tokens", false, "every subscriber has a token of its own (needs -key)")
	fs.StringVar(&o.ca, "ca", "", "`file` with the certificates to trust, PEM")
	fs.BoolVar(&o.insecure, "insecure", false, "accept any certificate")
	fs.BoolVar(&o.http2, "http2", false, "subscribers speak HTTP/2 (https only, so -start needs -https); publishers speak HTTP/1.1 always")
	fs.IntVar(&o.streams, "streams", 100, "with -http2: subscribers of one connection")
	fs.IntVar(&o.sources, "sources", 0, "connect from so many addresses, 127.0.1.1 and following, to a hub on this machine; 0: from one (at most some 28,000 subscribers)")
	fs.IntVar(&o.connections, "handshakes", 128, "how many subscribers connect at the same time")
	fs.IntVar(&o.pid, "pid", 0, "the hub's process `id`, when it runs on this machine: CPU time and memory are told (Linux)")
	fs.StringVar(&o.topics, "topics", "https://load.example/", "absolute `URL` below which the topics are")
	fs.StringVar(&o.start, "start", "", "`command` that starts a hub for each scenario, instead of -hub. {port} {dir} {key} {alg} {issuer} {audience} {db} are replaced; "+
		"it must stay in the foreground. 'floor' is a built-in server that only delivers, 'floor sync' one that also stores and syncs")
	fs.BoolVar(&o.https, "https", false, fmt.Sprintf("with -start: the hub speaks https, with a certificate made for it: {dir}/%s, {dir}/%s; a floor speaks plain HTTP/1.1 always", certFile, certKeyFile))
	fs.StringVar(&o.versus, "versus", "", "with -start: `command` that starts another hub, to compare with: both get each scenario in turn, and what is told is the ratio")
	fs.BoolVar(&o.plain, "versus-plain", false, "with -versus and -https: that hub speaks plain HTTP/1.1")
	fs.IntVar(&o.times, "times", 3, "with -versus: how many times")
	fs.StringVar(&o.db, "db", "", "with -start: what {db} becomes (default: history in a new folder)")
	fs.StringVar(&o.dir, "dir", "", "with -start: `folder` for the new folders (default: the system's for temporary files)")
	fs.BoolVar(&o.json, "json", false, "one JSON object a line instead of a table")
}

// parse reads the command line.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("load", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.flags(fs)
	fs.Usage = func() {
		fmt.Fprint(stderr, help)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%q is not understood; every argument is a flag", fs.Arg(0))
	}
	return o, o.check()
}

const help = `Load puts a load on a hub that speaks Mercure 1.0, and says what it made of it.

  load -hub URL -key FILE -issuer ISS [-scenario NAME] [-n SUBSCRIBERS] [-c PUBLISHERS]
  load -start 'COMMAND {port} …' [-https [-http2]] [-scenario NAME]
  load -start 'COMMAND {port} …' -versus floor [-scenario NAME]
  load floor -listen ADDR [-log FILE]     the server behind -start floor

  fan-out      all subscribers have one topic
  topics       every subscriber has a topic of its own
  patterns     every subscriber has a URL pattern of its own; each update has a new topic
  private      updates that are private, for all; every subscriber has a token of its own
  private-one  updates that are private, each for one subscriber
  idle         what a subscriber costs that gets nothing
  connect      how fast subscribers are accepted (-tokens: with tokens of their own)
  durable      publications alone; then the history is read back and compared
  replay       a history is stored, and read from several places

Exit code: 0 everything was delivered, once and in order; 1 something was not; 2 it could not be tried.

`

func (o *options) check() error {
	o.args = strings.Split(o.scenarios, ",")
	if o.scenarios == "all" {
		o.args = scenarioNames()
	}
	for _, s := range o.args {
		if !slices.Contains(scenarioNames(), s) {
			return fmt.Errorf("-scenario: there is no %q", s)
		}
	}
	for name, v := range map[string]int{
		"n": o.n, "c": o.c, "window": o.window, "events": o.events, "history": o.history - 99, "handshakes": o.connections,
		"streams": o.streams, "times": o.times, "size": o.size - markBytes + 1,
	} {
		if v < 1 {
			return fmt.Errorf("-%s: too small", name)
		}
	}
	if err := o.checkStalled(); err != nil {
		return err
	}
	u, err := url.Parse(o.topics)
	if err != nil || u.Scheme == "" || u.Host == "" || !strings.HasSuffix(o.topics, "/") {
		return errors.New("-topics: not an absolute URL that ends with a slash")
	}
	hub, err := url.Parse(o.hub)
	switch {
	case o.duration <= 0 || o.stall <= 0 || o.rest < 0 || o.rate < 0:
		return errors.New("-duration and -stall must be positive, -rest and -rate must not be negative")
	case o.sources < 0 || o.sources > 250:
		return errors.New("-sources: at most 250")
	case err != nil || hub.Host == "" || hub.Scheme != "http" && hub.Scheme != "https":
		return errors.New("-hub: not an absolute http or https URL")
	case o.versus != "" && (o.start == "" || o.db != ""):
		return errors.New("-versus needs -start, and no -db")
	case o.https && o.start == "":
		return errors.New("-https needs -start; with -hub, the URL says it")
	case o.plain && (o.versus == "" || !o.https):
		return errors.New("-versus-plain needs -versus and -https")
	case o.start == "" && (o.key == "") == (o.tokenFile == ""):
		return errors.New("publishers need a token: give -key (with -issuer) or -token-file, one of them")
	case o.key != "" && o.issuer == "":
		return errors.New("-key needs -issuer")
	case o.start != "" && (o.key != "" || o.tokenFile != "" || o.subTokenFile != "" || o.pid != 0):
		return errors.New("-start makes its own key: no -key, no token and no -pid with it")
	case o.http2 && o.start != "" && !o.https:
		return errors.New("-http2 with -start needs -https")
	case o.http2 && o.start == "" && hub.Scheme != "https":
		return errors.New("-http2 needs an https URL")
	case o.start == "" && o.key == "" && (o.tokens || slices.ContainsFunc(o.args, needsTokens)):
		return errors.New("tokens for each subscriber need -key")
	}
	return nil
}

// checkStalled says whether subscribers can stall in every scenario: elsewhere one is given too little to hold it back.
func (o *options) checkStalled() error {
	if o.stalled < 0 {
		return errors.New("-stalled: must not be negative")
	}
	for _, s := range o.args {
		if o.stalled > 0 && s != "fan-out" && s != "private" {
			return fmt.Errorf("-stalled: there is nobody to stall in %s, only in fan-out and private, where every update is for all", s)
		}
	}
	return nil
}

// needsTokens says whether the subscribers of a scenario have tokens of their own in any case.
func needsTokens(scenario string) bool { return strings.HasPrefix(scenario, "private") }

// tlsConfig gives what connections to the hub are secured with.
func (o *options) tlsConfig(hub *url.URL) (*tls.Config, error) {
	c := &tls.Config{ServerName: hub.Hostname(), MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.insecure}
	if o.ca != "" {
		raw, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("%s holds no certificate", o.ca)
		}
	}
	return c, nil
}

// newMinter gives what makes tokens.
func (o *options) newMinter(run string) (*minter, error) {
	raw, err := os.ReadFile(o.key)
	if err != nil {
		return nil, err
	}
	k, err := jose.Parse(o.alg, o.kid, raw)
	if err != nil {
		return nil, err
	}
	m := &minter{key: k, issuer: o.issuer, audience: o.audience, run: run}
	if m.audience == "" {
		m.audience = o.hub
	}
	return m, nil
}
