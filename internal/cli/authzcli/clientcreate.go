package authzcli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
)

// clientIDPrefix starts the ids that are drawn here.
const clientIDPrefix = "c_"

// maxKeySetBytes bounds what is read as a client's public keys.
const maxKeySetBytes = 1 << 20

type clientCreateOptions struct {
	place        place
	id           string
	name         string
	authMethod   string
	grantTypes   []string
	redirectURIs []string
	origins      []string
	skipConsent  bool
	jwksFile     string
	keyFile      string
	broker       string
	sessionKeys  string
	json         bool
}

// createdClient is what is shown of a new client.
type createdClient struct {
	clientView

	Issuer          string `json:"issuer"`
	Secret          string `json:"client_secret,omitempty"`
	KeyFile         string `json:"key_file,omitempty"`
	SessionKeysFile string `json:"session_keys_file,omitempty"`
}

func clientCreateCommand(env cli.Env) *cobra.Command {
	o := &clientCreateOptions{}
	c := &cobra.Command{
		Use: "create", Short: "Register a client", Args: cobra.NoArgs,
		Long: "Register a client. Standard output gets one thing: the secret of the client, which is shown this once and kept as a hash; without\n" +
			"a secret its id; with --broker the lines for hub.yaml. What else there is to say goes to standard error. What a client may be\n" +
			"granted is decided by the policies of the configuration.\n\n" +
			"A client with a key pair (private_key_jwt) brings its public keys (--jwks-file), or has a pair made: the private key goes to\n" +
			"--key-file, a new file that only its owner can read, and nowhere else.\n\n" +
			"--broker makes the client that a hub logs people in with, and follows revocations with; it needs --key-file.",
		Example: "  authz client create --data .cinnabar --id spa --redirect-uri http://localhost:5173/callback\n" +
			"  authz client create --config authz.yaml --id worker --grant-type client_credentials > worker.secret\n" +
			"  authz client create --config authz.yaml --id hub --broker https://hub.example.com/.well-known/mercure \\\n" +
			"    --key-file broker.jwk --session-keys-file session.keys >> hub.yaml",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return o.run(c.Context(), env) },
	}
	o.place.flags(c)
	f := c.Flags()
	f.StringVar(&o.id, "id", "", "client identifier `ID` (default: a random one)")
	f.StringVar(&o.name, "name", "", "`NAME` for people, shown at login and consent (default: the id)")
	f.StringVar(&o.authMethod, "auth-method", "", "how it proves who it is, `METHOD`: none, client_secret_basic, client_secret_post or private_key_jwt\n"+
		"(default: private_key_jwt with keys, client_secret_basic with client_credentials, else none)")
	f.StringSliceVar(&o.grantTypes, "grant-type", nil, "`TYPE` of grant it may use: authorization_code, refresh_token, client_credentials; may repeat\n"+
		"(default: authorization_code and refresh_token)")
	f.StringArrayVar(&o.redirectURIs, "redirect-uri", nil, "`URI` that codes may be sent to; may repeat")
	f.StringArrayVar(&o.origins, "origin", nil, "`ORIGIN` of pages that may call the endpoints for clients (token, par, revoke) besides those of its redirect URIs; may repeat")
	f.BoolVar(&o.skipConsent, "skip-consent", false, "a first-party client: consent is recorded, not asked")
	f.StringVar(&o.jwksFile, "jwks-file", "", "`FILE` with its public keys, a JSON Web Key Set")
	f.StringVar(&o.keyFile, "key-file", "", "make its key pair, and write the private key (JWK) to the new `FILE`")
	f.StringVar(&o.broker, "broker", "", "it is the session broker of the hub with this `URL`")
	f.StringVar(&o.sessionKeys, "session-keys-file", "", "with --broker: make a key for the hub's cookies in `FILE`, unless it is there (session.keys_file)")
	c.MarkFlagsMutuallyExclusive("jwks-file", "key-file")
	cli.JSONFlag(c, &o.json, "an object with", createdClient{})
	fixed(c, "auth-method", as.AuthNone, as.AuthSecretBasic, as.AuthSecretPost, as.AuthPrivateKeyJWT)
	fixed(c, "grant-type", as.GrantAuthorizationCode, as.GrantRefreshToken, as.GrantClientCredentials)
	must(c.MarkFlagFilename("jwks-file", "json", "jwks"))
	return c
}

func (o *clientCreateOptions) run(ctx context.Context, env cli.Env) error {
	client, err := o.draft()
	if err != nil {
		return err
	}
	conf, err := o.place.load(env)
	if err != nil {
		return err
	}
	if err := o.checkBroker(conf); err != nil {
		return err
	}
	return o.place.withStore(ctx, env, conf, func(d *desk) error { return o.create(ctx, env, d, client) })
}

// draft is the client that the flags describe, without what is made for it.
func (o *clientCreateOptions) draft() (store.Client, error) {
	c := store.Client{
		ID: o.id, Name: o.name, AuthMethod: o.authMethod, GrantTypes: o.grantTypes, RedirectURIs: o.redirectURIs, Origins: o.origins,
		SkipConsent: o.skipConsent, Broker: o.broker != "",
	}
	if o.sessionKeys != "" && !c.Broker {
		return c, cli.Usagef("--session-keys-file goes with --broker")
	}
	if c.Broker {
		if err := o.draftBroker(&c); err != nil {
			return c, err
		}
	}
	if c.ID == "" {
		c.ID = clientIDPrefix + strings.ToLower(rand.Text()[:16])
	}
	if c.Name == "" {
		c.Name = c.ID
	}
	if len(c.GrantTypes) == 0 {
		c.GrantTypes = []string{as.GrantAuthorizationCode, as.GrantRefreshToken}
	}
	if c.AuthMethod == "" {
		switch {
		case o.jwksFile != "" || o.keyFile != "":
			c.AuthMethod = as.AuthPrivateKeyJWT
		case slices.Contains(c.GrantTypes, as.GrantClientCredentials):
			c.AuthMethod = as.AuthSecretBasic
		default:
			c.AuthMethod = as.AuthNone
		}
	}
	if (c.AuthMethod == as.AuthPrivateKeyJWT) != (o.jwksFile != "" || o.keyFile != "") {
		return c, cli.Usagef("--auth-method private_key_jwt goes with --key-file or --jwks-file")
	}
	return c, nil
}

// draftBroker fills in what makes a client the session broker of a hub.
func (o *clientCreateOptions) draftBroker(c *store.Client) error {
	if len(o.redirectURIs)+len(o.grantTypes)+len(o.origins) > 0 || o.authMethod != "" || o.jwksFile != "" {
		return cli.Usagef("--broker says itself what the client needs: leave out --redirect-uri, --grant-type, --origin, --auth-method and --jwks-file")
	}
	if o.keyFile == "" {
		return cli.Usagef("--broker needs --key-file FILE for the private key")
	}
	u, err := url.Parse(o.broker)
	if err != nil || u.Host == "" || u.Path == "" || u.Path == "/" || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return cli.Usagef("--broker %q is not a hub URL such as https://hub.example.com/.well-known/mercure", o.broker)
	}
	c.RedirectURIs = []string{o.broker + authzapp.CallbackPath}
	c.GrantTypes = authzapp.BrokerGrants()
	return nil
}

// checkBroker refuses a hub that the server issues no tokens for: a typing mistake would show at the first login only.
func (o *clientCreateOptions) checkBroker(conf config.Authz) error {
	if o.broker == "" {
		return nil
	}
	var known []string
	for _, r := range conf.Resources {
		if r.HubURL == o.broker {
			return nil
		}
		known = append(known, r.HubURL)
	}
	return cli.Usagef("--broker %q is no hub of the configuration (resources): it knows %s", o.broker, strings.Join(known, ", "))
}

// create makes keys and secret and registers the client. Files that were made for a client that could not be registered are removed.
func (o *clientCreateOptions) create(ctx context.Context, env cli.Env, d *desk, c store.Client) (err error) {
	if d.configured(c.ID) {
		return staticClient(c.ID)
	}
	made := createdClient{Issuer: d.conf.Issuer}
	var files newFiles
	defer func() {
		if err != nil {
			files.remove()
		}
	}()
	switch c.AuthMethod {
	case as.AuthSecretBasic, as.AuthSecretPost:
		made.Secret, c.SecretHash = as.NewClientSecret()
	case as.AuthPrivateKeyJWT:
		if c.JWKS, made.KeyFile, err = o.keys(&files); err != nil {
			return err
		}
	}
	if err := as.CheckClient(c); err != nil {
		return cli.Usage(err)
	}
	if o.sessionKeys != "" {
		if made.SessionKeysFile, err = files.sessionKeys(o.sessionKeys); err != nil {
			return err
		}
	}
	err = d.admin.CreateClient(ctx, c)
	switch {
	case errors.Is(err, store.ErrExists):
		return fmt.Errorf("there is a client %q already", c.ID)
	case errors.Is(err, as.ErrOptions):
		return cli.Usage(err)
	case err != nil:
		return err
	}
	files.keep()
	if stored, err := d.core.Store.Client(ctx, c.ID); err == nil {
		c = stored
	}
	made.clientView = viewClient(c)
	if err := o.print(env, made, d.policyHint(c)); err != nil { // a full disk, for one: what is shown once has not been shown
		hint := "the client is registered nevertheless: authz client delete " + c.ID + ", and create it anew"
		return &cli.Error{Code: cli.ExitFailure, Err: err, Hint: hint}
	}
	return nil
}

// keys gives the public keys of the client, and where its private key was written if the pair was made here.
func (o *clientCreateOptions) keys(files *newFiles) (set json.RawMessage, keyFile string, err error) {
	if o.keyFile != "" {
		return files.keyPair(o.keyFile)
	}
	f, err := os.Open(o.jwksFile)
	if err != nil {
		return nil, "", cli.Usage(fmt.Errorf("read key set: %w", err))
	}
	defer func() { _ = f.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(f, maxKeySetBytes+1))
	if err != nil {
		return nil, "", cli.Usage(fmt.Errorf("read key set: %w", err))
	}
	if len(raw) > maxKeySetBytes {
		return nil, "", cli.Usagef("%s is larger than %d bytes", o.jwksFile, maxKeySetBytes)
	}
	return raw, "", nil
}

func (o *clientCreateOptions) print(env cli.Env, made createdClient, hint string) error {
	if hint != "" {
		if _, err := fmt.Fprintf(env.Stderr, "note: %s\n", hint); err != nil {
			return err
		}
	}
	if o.json {
		return cli.PrintJSON(env.Stdout, made)
	}
	about, result := "registered client "+made.ID, made.ID
	switch {
	case o.broker != "":
		about += "; its private key is in " + made.KeyFile + ". For hub.yaml:"
		result = strings.TrimRight(hubLines(made), "\n")
	case made.Secret != "":
		about, result = about+"; its secret, shown this once:", made.Secret
	case made.KeyFile != "":
		about += "; its private key is in " + made.KeyFile
	}
	if _, err := fmt.Fprintln(env.Stderr, about); err != nil {
		return err
	}
	_, err := fmt.Fprintln(env.Stdout, result)
	return err
}

// hubLines are the lines of hub.yaml that a session broker needs. What Go quotes, YAML reads.
func hubLines(made createdClient) string {
	keys := "  # keys_file: FILE   needed; made by: authz client create --broker … --session-keys-file FILE"
	if made.SessionKeysFile != "" {
		keys = "  keys_file: " + strconv.Quote(made.SessionKeysFile)
	}
	return strings.Join([]string{
		"# under issuers:  { id: " + strconv.Quote(made.Issuer) + ", authorization_server: true }",
		"session:",
		"  issuer: " + strconv.Quote(made.Issuer),
		"  client_id: " + strconv.Quote(made.ID),
		"  client_key_file: " + strconv.Quote(made.KeyFile),
		keys,
	}, "\n") + "\n"
}
