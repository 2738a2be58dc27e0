package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/client"
	"github.com/cinnabar-hub/cinnabar/internal/datadir"
	"github.com/cinnabar-hub/cinnabar/internal/shell"
)

const (
	// maxTokenBytes bounds what is read as a token.
	maxTokenBytes = 64 << 10
	// maxEventBytes bounds one received event.
	maxEventBytes = 64 << 20
)

// Target says which hub a command talks to, and with which token.
type Target struct {
	Hub       string
	Token     string
	TokenFile string
	Data      string
	CAFile    string
	PlainHTTP bool
}

// Flags adds the flags of a target.
func (t *Target) Flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.Hub, "hub", "", "hub `URL` (default: that of --data)")
	f.StringVar(&t.Token, "token", "", "access `TOKEN`, - for standard input (also CINNABAR_TOKEN; a token on the command line can be seen by other users)")
	f.StringVar(&t.TokenFile, "token-file", "", "`FILE` that holds the access token")
	f.StringVar(&t.Data, "data", "", "data folder `DIR` of a running 'hub dev': gives the hub URL, its certificate and a token")
	f.StringVar(&t.CAFile, "ca-file", "", "`FILE` with the certificate authority to trust besides the system's, PEM")
	f.BoolVar(&t.PlainHTTP, "allow-plain-http", false, "send the token over plain HTTP to another machine, on a network that is encrypted by other means")
	c.MarkFlagsMutuallyExclusive("token", "token-file")
}

// Resolve completes the target from the data folder and the environment. forPublish chooses the token of the data folder.
func (t *Target) Resolve(env Env, forPublish bool) error {
	if t.Data != "" {
		if err := t.fromData(env, forPublish); err != nil {
			return DataError(t.Data, err)
		}
	}
	if t.Hub == "" {
		return Usagef("no hub: give --hub URL or --data DIR")
	}
	if u, err := url.Parse(t.Hub); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return Usagef("the hub %q is not a URL such as https://hub.example.com/.well-known/mercure", t.Hub)
	}
	token, err := ReadToken(env, t.Token, t.TokenFile)
	if err != nil {
		return err
	}
	t.Token = token
	return nil
}

// DataError says what to do about a data folder that a command cannot use.
func DataError(dir string, err error) error {
	e := &Error{Code: ExitUsage, Err: err}
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "run this as the user that 'hub dev' runs as"
	case errors.Is(err, datadir.ErrNoData), errors.Is(err, fs.ErrNotExist):
		e.Hint = "start 'hub dev --data " + shell.Quote(dir) + "' first"
	}
	return e
}

// fromData fills what is not given from the data folder.
func (t *Target) fromData(env Env, forPublish bool) error {
	d, err := datadir.Open(t.Data)
	if err != nil {
		return err
	}
	if t.Hub == "" {
		if t.Hub, err = d.HubURL(); err != nil {
			return err
		}
	}
	if t.CAFile == "" {
		t.CAFile = d.CAFile()
	}
	if t.Token == "" && t.TokenFile == "" && env.Getenv("CINNABAR_TOKEN") == "" {
		t.TokenFile = d.SubscribeHeaderFile()
		if forPublish {
			t.TokenFile = d.PublishHeaderFile()
		}
	}
	return nil
}

// ReadToken gives the token of an argument (- for standard input), a file or CINNABAR_TOKEN, in this order; "" when none of them
// is given. Standard input or a file without a token is an error: a request without one could be answered all the same. A file may
// also hold the whole Authorization header line.
func ReadToken(env Env, arg, file string) (string, error) {
	var raw []byte
	var err error
	switch {
	case arg == "-":
		raw, err = io.ReadAll(io.LimitReader(env.Stdin, maxTokenBytes))
	case arg != "":
		raw = []byte(arg)
	case file != "":
		raw, err = readFile(file, maxTokenBytes)
	default:
		raw = []byte(env.Getenv("CINNABAR_TOKEN"))
	}
	if err != nil {
		return "", Usage(fmt.Errorf("read token: %w", err))
	}
	token := strings.TrimSpace(string(raw))
	if rest, ok := strings.CutPrefix(token, "Authorization:"); ok {
		token = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), "Bearer"))
	}
	switch {
	case strings.ContainsAny(token, " \t\r\n"):
		return "", Usagef("the token must be one word")
	case token == "" && arg == "-":
		return "", Usagef("standard input holds no token")
	case token == "" && arg == "" && file != "":
		return "", Usagef("%s holds no token", file)
	}
	return token, nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, limit))
}

// Client gives a client of the target's hub.
func (t *Target) Client(env Env) (*client.Client, error) {
	config, err := t.tls()
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Options{
		HubURL: t.Hub, Token: t.source(env), AllowPlainHTTP: t.PlainHTTP, TLS: config, MaxEventBytes: maxEventBytes,
	})
	if err != nil {
		e := &Error{Code: ExitUsage, Err: errors.New(strings.TrimPrefix(err.Error(), "client: "))}
		if strings.HasPrefix(t.Hub, "http:") {
			e.Hint = "give an https URL, or --allow-plain-http on a network that is encrypted by other means"
		}
		return nil, e
	}
	return c, nil
}

// source gives the token of each request. One that stands in a file is read anew each time: the file may hold a newer one by now, as that of
// a data folder does before the old one expires. While the file cannot be read, the last token serves on.
func (t *Target) source(env Env) func(context.Context) (string, error) {
	if t.Token == "" {
		return nil
	}
	last := t.Token
	return func(context.Context) (string, error) {
		if t.TokenFile != "" {
			if token, err := ReadToken(env, "", t.TokenFile); err == nil {
				last = token
			}
		}
		return last, nil
	}
}

// tls gives the TLS configuration that trusts the target's certificate authority besides the system's; nil when it names none.
func (t *Target) tls() (*tls.Config, error) {
	if t.CAFile == "" {
		return nil, nil
	}
	pem, err := readFile(t.CAFile, 1<<20)
	if err != nil {
		return nil, Usage(fmt.Errorf("read certificate authority: %w", err))
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, Usagef("%s holds no PEM certificate", t.CAFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
