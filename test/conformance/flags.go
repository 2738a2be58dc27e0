package main

import (
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// options are what the command line says.
type options struct {
	target   suite.Target
	detect   bool
	demand   suite.Level
	selected func(suite.Check) bool
	parallel int
	limit    time.Duration
	json     string
	junit    string
	verbose  bool
	progress bool
	list     bool
}

const usage = `conformance checks whether a hub speaks Mercure 1.0.

Usage:
  conformance -hub URL -issuer 'id=ISS,alg=ALG,key=FILE[,kid=KID][,role=ROLE]' [flags]
  conformance -list [-run REGEXP] [-skip REGEXP]

The hub must trust the issuer. alg is one of HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256,
ES384, ES512, EdDSA. No value may contain a comma. key is a file with the private key (PEM or a JSON Web Key) or, for the HS algorithms,
with the shared secret (line breaks at its end do not count). role is publish, subscribe or both (the default); name the same issuer twice to
give each role its own key, and a second issuer to check that the keys of issuers are kept apart.

The exit code is 0 when nothing that counts failed, 1 when something did, and 2 when the hub could not be tested.

Flags:
`

func parse(args []string, stderr io.Writer) (*options, error) {
	c := &options{}
	var (
		issuers                         []string
		features, demand, ca, run, skip string
		server                          struct{ issuer, client, secretFile string }
	)
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, usage)
		f.PrintDefaults()
	}
	f.StringVar(&c.target.URL, "hub", "", "the hub `URL`")
	f.StringVar(&c.target.Resource, "resource", "", "the resource `identifier` that tokens carry in aud (default: the hub URL)")
	f.Func("issuer", "a trusted issuer and our key, as `SPEC` above; repeatable", func(s string) error {
		issuers = append(issuers, s)
		return nil
	})
	f.StringVar(&c.target.CookieName, "cookie", "", "the `name` of the cookie that carries the token (default: as the metadata says)")
	f.StringVar(&c.target.CORSOrigin, "cors-origin", "", "an `origin` that may use the hub, best one with two dots, as https://app.example.com; without it, what needs one is skipped")
	f.StringVar(&c.target.PublishOrigin, "publish-origin", "", "an `origin` that may publish with the cookie (default: that of the hub URL)")
	f.StringVar(&features, "features", "auto", "what the hub should have, a `list` of "+choices()+"; auto: ask the hub")
	f.DurationVar(&c.target.KeepAlive, "keep-alive", 0, "after how much idle `time` the hub sends a comment; up to 30s is waited for")
	f.DurationVar(&c.target.Lifetime, "lifetime", 0, "how long the hub lets a connection last (`time`); up to 30s is waited for")
	f.StringVar(&server.issuer, "as-issuer", "", "the issuer `URL` of an authorization server that the hub trusts")
	f.StringVar(&server.client, "as-client", "", "a `client` of it that may have any grant by client_credentials")
	f.StringVar(&server.secretFile, "as-secret-file", "", "the `file` with the client's secret (client_secret_basic)")
	f.StringVar(&ca, "ca", "", "a PEM `file` with the certificate authorities to trust (default: the system's)")
	f.BoolVar(&c.target.Insecure, "insecure", false, "trust any certificate")
	f.StringVar(&c.target.Address, "address", "", "connect to `host:port` instead of where the hub URL points")
	f.StringVar(&run, "run", "", "run only checks whose name matches this `regexp`")
	f.StringVar(&skip, "skip", "", "leave out checks whose name matches this `regexp`")
	f.IntVar(&c.parallel, "parallel", 4, "how `many` checks run at once")
	f.DurationVar(&c.limit, "limit", 15*time.Minute, "the `time` after which no further check is started")
	f.DurationVar(&c.target.Patience, "patience", 20*time.Second, "how long (`time`) an answer or an update may take")
	f.StringVar(&demand, "fail-on", "must", "the weakest `level` whose failures count: must, should, derived or none")
	f.StringVar(&c.json, "json", "", "write the results as JSON to this `file`; -: standard output, instead of the text")
	f.StringVar(&c.junit, "junit", "", "write the results as JUnit XML to this `file`; -: standard output, instead of the text")
	f.BoolVar(&c.verbose, "v", false, "print all results, not only the failures")
	f.BoolVar(&c.progress, "progress", false, "say on standard error how far the run is")
	f.BoolVar(&c.list, "list", false, "list the checks and end")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	err := errors.Join(c.choose(run, skip), c.level(demand))
	if c.parallel < 1 || c.limit <= 0 || c.target.Patience <= 0 {
		err = errors.Join(err, errors.New("-parallel, -limit and -patience must be more than 0"))
	}
	if err != nil || c.list {
		return c, err
	}
	err = errors.Join(c.trust(ca), c.issuers(issuers), c.features(features))
	if server.issuer != "" || server.client != "" || server.secretFile != "" {
		err = errors.Join(err, c.server(server.issuer, server.client, server.secretFile))
	}
	if err != nil {
		return nil, err
	}
	return c, c.target.Complete()
}

// choose makes the selection of checks.
func (c *options) choose(run, skip string) error {
	wanted, err := regexp.Compile(run)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	unwanted, err := regexp.Compile(skip)
	if err != nil {
		return fmt.Errorf("-skip: %w", err)
	}
	c.selected = func(check suite.Check) bool {
		name := check.Name()
		return wanted.MatchString(name) && (skip == "" || !unwanted.MatchString(name))
	}
	return nil
}

func (c *options) level(name string) error {
	switch name {
	case "must":
		c.demand = suite.Must
	case "should":
		c.demand = suite.Should
	case "derived":
		c.demand = suite.Derived
	case "none":
	default:
		return fmt.Errorf("-fail-on: %q is none of must, should, derived, none", name)
	}
	return nil
}

func (c *options) trust(file string) error {
	if file == "" {
		return nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("-ca: %w", err)
	}
	c.target.Roots = x509.NewCertPool()
	if !c.target.Roots.AppendCertsFromPEM(raw) {
		return fmt.Errorf("-ca: %s holds no certificate", file)
	}
	return nil
}

// issuers reads the keys. An issuer that is named again gets further keys.
func (c *options) issuers(specs []string) error {
	for _, spec := range specs {
		if err := c.issuer(spec); err != nil {
			return fmt.Errorf("-issuer: %w", err)
		}
	}
	return nil
}

func (c *options) issuer(spec string) error {
	v := map[string]string{"role": "both"}
	for item := range strings.SplitSeq(spec, ",") {
		name, value, ok := strings.Cut(item, "=")
		if !ok || !slices.Contains([]string{"id", "alg", "key", "kid", "role"}, name) {
			return fmt.Errorf("%q is none of id, alg, key, kid, role", name)
		}
		v[name] = value
	}
	for _, name := range []string{"id", "alg", "key"} {
		if v[name] == "" {
			return fmt.Errorf("%s= is missing", name)
		}
	}
	raw, err := os.ReadFile(v["key"])
	if err != nil {
		return err
	}
	key, err := jose.Parse(v["alg"], v["kid"], raw)
	if err != nil {
		return fmt.Errorf("%s: %w", v["key"], err)
	}
	i := slices.IndexFunc(c.target.Issuers, func(i suite.Issuer) bool { return i.ID == v["id"] })
	if i < 0 {
		i = len(c.target.Issuers)
		c.target.Issuers = append(c.target.Issuers, suite.Issuer{ID: v["id"]})
	}
	issuer := &c.target.Issuers[i]
	switch v["role"] {
	case "both":
		issuer.Publish, issuer.Subscribe = key, key
	case "publish":
		issuer.Publish = key
	case "subscribe":
		issuer.Subscribe = key
	default:
		return fmt.Errorf("role %q is none of publish, subscribe, both", v["role"])
	}
	return nil
}

func (c *options) features(list string) error {
	if list == "auto" {
		c.detect = true
		return nil
	}
	c.target.Features = map[suite.Feature]bool{}
	for item := range strings.SplitSeq(list, ",") {
		f := suite.Feature(strings.TrimSpace(item))
		if f == "" {
			continue
		}
		if !slices.Contains(suite.Choices(), f) {
			return fmt.Errorf("-features: %q is none of %s", f, choices())
		}
		c.target.Features[f] = true
	}
	return nil
}

func choices() string {
	var all []string
	for _, f := range suite.Choices() {
		all = append(all, string(f))
	}
	return strings.Join(all, ", ")
}

func (c *options) server(issuer, client, secretFile string) error {
	if issuer == "" || client == "" || secretFile == "" {
		return errors.New("-as-issuer, -as-client and -as-secret-file go together")
	}
	raw, err := os.ReadFile(secretFile)
	if err != nil {
		return fmt.Errorf("-as-secret-file: %w", err)
	}
	c.target.AuthorizationServer = &suite.AuthorizationServer{Issuer: issuer, ClientID: client, ClientSecret: strings.TrimSpace(string(raw))}
	return nil
}
