package cli_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
)

// result is what a shell sees of a command.
type result struct {
	code           int
	stdout, stderr string
}

func execute(t *testing.T, env cli.Env, commands ...*cobra.Command) result {
	t.Helper()
	return executeIn(t.Context(), env, commands...)
}

func executeIn(ctx context.Context, env cli.Env, commands ...*cobra.Command) result {
	var stdout, stderr bytes.Buffer
	if env.Stdin == nil {
		env.Stdin = strings.NewReader("")
	}
	env.Stdout, env.Stderr = &stdout, &stderr
	root := &cobra.Command{Use: "hub", Short: "A hub"}
	root.AddCommand(cli.PublishCommand(env), cli.SubscribeCommand(env), cli.VersionCommand(env))
	root.AddCommand(commands...)
	code := cli.Execute(ctx, env, root)
	return result{code, stdout.String(), stderr.String()}
}

func TestExecute_exitCodes(t *testing.T) {
	group := func() *cobra.Command {
		fail := func(name string, err error) *cobra.Command {
			return &cobra.Command{Use: name, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return err }}
		}
		c := &cobra.Command{Use: "do", Short: "Do something"}
		c.AddCommand(
			fail("nothing", nil), fail("fail", errors.New("no luck")), fail("err", cli.Usagef("wrong")),
			fail("refuse", fmt.Errorf("ask: %w", &cli.Error{Code: cli.ExitRefused, Hint: "ask nicely", Err: errors.New("no")})),
		)
		return c
	}
	for line, want := range map[string]struct {
		code   int
		stderr string
	}{
		"do nothing":        {cli.ExitOK, ""},
		"do fail":           {cli.ExitFailure, "hub: no luck\n"},
		"do err":            {cli.ExitUsage, "hub: wrong\n"},
		"do refuse":         {cli.ExitRefused, "hub: ask: no\n  hint: ask nicely\n"},
		"do":                {cli.ExitOK, ""},
		"do --help":         {cli.ExitOK, ""},
		"do noting":         {cli.ExitUsage, "hub: unknown command \"noting\" for \"hub do\"\n  hint: see 'hub do --help'\n"},
		"do nothing at-all": {cli.ExitUsage, "hub: unknown command \"at-all\" for \"hub do nothing\"\n  hint: see 'hub do nothing --help'\n"},
		"do nothing --at":   {cli.ExitUsage, "hub: unknown flag: --at\n  hint: see 'hub do nothing --help'\n"},
		"publish":           {cli.ExitUsage, "hub: accepts between 1 and 2 arg(s), received 0\n  hint: see 'hub publish --help'\n"},
		"completion bsh":    {cli.ExitUsage, "hub: unknown command \"bsh\" for \"hub completion\"\n  hint: see 'hub completion --help'\n"},
		"completion zsh":    {cli.ExitOK, ""},
		"fly":               {cli.ExitUsage, "hub: unknown command \"fly\" for \"hub\"\n  hint: see 'hub --help'\n"},
		"subscribe":         {cli.ExitUsage, "hub: nothing to subscribe to: give a TOPIC or --pattern\n"},
		"subscribe x":       {cli.ExitUsage, "hub: no hub: give --hub URL or --data DIR\n"},
		"subscribe --hub h x": {
			cli.ExitUsage, "hub: the hub \"h\" is not a URL such as https://hub.example.com/.well-known/mercure\n",
		},
		"publish --hub http://127.0.0.1:1/ --retry 0 x":           {cli.ExitUsage, "hub: --retry must be a number of milliseconds, from 1 to 31536000000\n"},
		"publish --hub http://127.0.0.1:1/ --retry 31536000001 x": {cli.ExitUsage, "hub: --retry must be a number of milliseconds, from 1 to 31536000000\n"},
		"subscribe --count -1 x":                                  {cli.ExitUsage, "hub: --count must not be negative\n"},
	} {
		got := execute(t, cli.Env{Args: strings.Fields(line)}, group())
		if got.code != want.code || got.stderr != want.stderr {
			t.Errorf("hub %s: code %d, %q; want %d, %q", line, got.code, got.stderr, want.code, want.stderr)
		}
		if got.code != cli.ExitOK && got.stdout != "" {
			t.Errorf("hub %s fails and prints %q on standard output", line, got.stdout)
		}
	}
}

func TestReadToken(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environ := []string{"CINNABAR_TOKEN=from-environment"}
	for name, c := range map[string]struct {
		arg, file, stdin string
		environ          []string
		want             string
		err              string
	}{
		"none":                          {},
		"argument":                      {arg: "a", environ: environ, want: "a"},
		"standard input":                {arg: "-", stdin: "a\n", environ: environ, want: "a"},
		"file":                          {file: file("a\r\n"), environ: environ, want: "a"},
		"file with a header":            {file: file("Authorization: Bearer a\n"), want: "a"},
		"environment":                   {environ: environ, want: "from-environment"},
		"argument before file":          {arg: "a", file: "missing", want: "a"},
		"two words":                     {arg: "two words", err: "one word"},
		"missing file":                  {file: "missing", err: "read token"},
		"empty file":                    {file: file("\n"), environ: environ, err: "holds no token"},
		"header without a token":        {file: file("Authorization: Bearer \n"), err: "holds no token"},
		"standard input without a word": {arg: "-", environ: environ, err: "standard input holds no token"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cli.ReadToken(cli.Env{Stdin: strings.NewReader(c.stdin), Environ: c.environ}, c.arg, c.file)
			if c.err == "" {
				if err != nil || got != c.want {
					t.Errorf("ReadToken = %q, %v; want %q", got, err, c.want)
				}
				return
			}
			e, ok := errors.AsType[*cli.Error](err)
			if !ok || e.Code != cli.ExitUsage || got != "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("ReadToken = %q, %v; want a usage error about %q", got, err, c.err)
			}
		})
	}
}

func TestPublish_explainsARefusal(t *testing.T) {
	const reach = "give the URL of the hub itself, such as https://hub.example.com/.well-known/mercure"
	for name, c := range map[string]struct {
		status    int
		challenge string
		body      string
		code      int
		text      string
		hint      string
	}{
		"problem": {
			status: 400, body: `{"title":"Bad Request","detail":"A topic is too long.","hint":"cut it","request_id":"r1"}`,
			code: cli.ExitFailure, text: "400 Bad Request: A topic is too long (request r1)", hint: "cut it",
		},
		"title alone says nothing new": {status: 404, body: `{"title":"Not Found"}`, code: cli.ExitFailure, text: "404 Not Found", hint: reach},
		"another title":                {status: 404, body: `{"title":"Lost"}`, code: cli.ExitFailure, text: "404 Not Found: Lost", hint: reach},
		"not a problem": {
			status: 502, body: "<html>", code: cli.ExitFailure, text: "502 Bad Gateway",
			hint: "the update may have been published all the same; with an --id of your own, readers recognise a repetition",
		},
		"no token": {
			status: 401, challenge: `Bearer resource_metadata="https://h/x"`, code: cli.ExitRefused, text: "401 Unauthorized",
			hint: "give a token: --token-file, --token or CINNABAR_TOKEN; for 'hub dev', --data DIR",
		},
		"bad token": {
			status: 401, challenge: `Bearer error="invalid_token", resource_metadata="https://h/x"`, code: cli.ExitRefused,
			text: "401 Unauthorized: invalid_token", hint: "see what is wrong with the token: authz token inspect",
		},
		"the hub's hint comes first": {
			status: 401, challenge: `Bearer error="invalid_token"`, body: `{"hint":"it has expired"}`, code: cli.ExitRefused,
			text: "401 Unauthorized: invalid_token", hint: "it has expired",
		},
		"forbidden": {status: 403, challenge: `Bearer error="insufficient_scope"`, code: cli.ExitRefused, text: "403 Forbidden: insufficient_scope"},
		"too many":  {status: 429, code: cli.ExitRefused, text: "429 Too Many Requests"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", c.challenge)
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			want := "hub: publish: " + c.text + "\n"
			if c.hint != "" {
				want += "  hint: " + c.hint + "\n"
			}
			if r := execute(t, cli.Env{Args: []string{"publish", "--hub", s.URL, "t"}}); r != (result{c.code, "", want}) {
				t.Errorf("a shell sees %+v, want %d and %q", r, c.code, want)
			}
		})
	}
}

func TestPublish_nobodyListens(t *testing.T) {
	r := execute(t, cli.Env{Args: []string{"publish", "--hub", "http://127.0.0.1:1/hub", "t"}})
	if r.code != cli.ExitFailure || !strings.HasPrefix(r.stderr, "hub: reach http://127.0.0.1:1/hub: ") || strings.Contains(r.stderr, "hint") {
		t.Errorf("a shell sees %+v", r)
	}
}

func TestTarget_trust(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "urn:uuid:1") }))
	defer s.Close()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := execute(t, cli.Env{Args: []string{"publish", "--hub", s.URL, "--ca-file", ca, "t"}}); r != (result{cli.ExitOK, "urn:uuid:1\n", ""}) {
		t.Errorf("with the certificate authority a shell sees %+v", r)
	}
	r := execute(t, cli.Env{Args: []string{"publish", "--hub", s.URL, "t"}})
	if r.code != cli.ExitFailure || !strings.Contains(r.stderr, "certificate") || !strings.Contains(r.stderr, "hint: for 'hub dev', give --data DIR") {
		t.Errorf("without it a shell sees %+v", r)
	}
}

func TestTarget_plainHTTP(t *testing.T) {
	const hub = "http://hub.invalid/hub"
	for line, want := range map[string]int{
		"publish --hub " + hub + " --token x t":                    cli.ExitUsage,
		"subscribe --hub " + hub + " --token x t":                  cli.ExitUsage,
		"publish --hub " + hub + " --token x --allow-plain-http t": cli.ExitFailure, // there is no such host
		"publish --hub " + hub + " t":                              cli.ExitFailure,
	} {
		r := execute(t, cli.Env{Args: strings.Fields(line)})
		if r.code != want || (want == cli.ExitUsage) != strings.Contains(r.stderr, "--allow-plain-http") {
			t.Errorf("AUTH-14 %s: a shell sees %+v, want code %d", line, r, want)
		}
	}
}

// publication is what a hub got.
type publication struct {
	form   url.Values
	token  string
	kind   string
	cookie string
}

func publishHub(t *testing.T, status int, answer string) (hubURL string, got *publication) {
	t.Helper()
	got = &publication{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		*got = publication{r.PostForm, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header.Get("Cookie")}
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hub", got
}

func TestPublish(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  url.Values
		out   string
	}{
		"topic alone": {args: []string{"t"}, want: url.Values{"topic": {"t"}, "data": {""}}, out: "urn:uuid:1\n"},
		"JSON":        {args: []string{"--json", "t", "d"}, want: url.Values{"topic": {"t"}, "data": {"d"}}, out: `{"id":"urn:uuid:1"}` + "\n"},
		"everything": {
			args: []string{"--alternate", "u", "--alternate", "v", "--private", "--id", "i", "--type", "y", "--retry", "5", "t", "d"},
			want: url.Values{"topic": {"t", "u", "v"}, "data": {"d"}, "private": {"on"}, "id": {"i"}, "type": {"y"}, "retry": {"5"}}, out: "urn:uuid:1\n",
		},
		"standard input": {args: []string{"t", "-"}, stdin: "line\n", want: url.Values{"topic": {"t"}, "data": {"line\n"}}, out: "urn:uuid:1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			hub, got := publishHub(t, http.StatusOK, "urn:uuid:1")
			r := execute(t, cli.Env{
				Args:  append([]string{"publish", "--hub", hub}, c.args...),
				Stdin: strings.NewReader(c.stdin), Environ: []string{"CINNABAR_TOKEN=secret"},
			})
			if r != (result{cli.ExitOK, c.out, ""}) {
				t.Errorf("a shell sees %+v, want %q", r, c.out)
			}
			if diff := cmp.Diff(c.want, got.form); diff != "" {
				t.Errorf("form (-want +got):\n%s", diff)
			}
			if got.token != "Bearer secret" || got.kind != "application/x-www-form-urlencoded" || got.cookie != "" {
				t.Errorf("token %q, content type %q, cookie %q", got.token, got.kind, got.cookie)
			}
		})
	}
}

func TestPublish_failures(t *testing.T) {
	for status, want := range map[int]int{
		http.StatusBadRequest: cli.ExitFailure, http.StatusUnauthorized: cli.ExitRefused, http.StatusForbidden: cli.ExitRefused,
		http.StatusTooManyRequests: cli.ExitRefused, http.StatusServiceUnavailable: cli.ExitFailure, http.StatusFound: cli.ExitFailure,
	} {
		hub, _ := publishHub(t, status, "")
		r := execute(t, cli.Env{Args: []string{"publish", "--hub", hub, "--token", "very-secret", "t"}})
		if r.code != want || r.stdout != "" || strings.Contains(r.stderr, "very-secret") {
			t.Errorf("status %d: a shell sees %+v, want code %d", status, r, want)
		}
	}
}

// A publication that was interrupted has not been made, or nobody knows: a script must not take it for one that was.
func TestPublish_interrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	hub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // and notices from then on that the client has gone
		interrupt()
		<-r.Context().Done()
	}))
	defer hub.Close()
	const hint = "  hint: the update may have been published all the same; with an --id of your own, readers recognise a repetition\n"
	for _, want := range []string{"hub: interrupted\n" + hint, "hub: interrupted\n"} { // while it waits for the answer, and before
		r := executeIn(ctx, cli.Env{Args: []string{"publish", "--hub", hub.URL, "--token", "secret", "t"}})
		if r != (result{cli.ExitFailure, "", want}) {
			t.Errorf("a shell sees %+v, want %q", r, want)
		}
	}
}

// Standard input can be one of the two alone: the other would be empty, and published as that.
func TestPublish_standardInputOnce(t *testing.T) {
	hub, got := publishHub(t, http.StatusOK, "urn:uuid:1")
	r := execute(t, cli.Env{Args: []string{"publish", "--hub", hub, "--token", "-", "t", "-"}, Stdin: strings.NewReader("secret\n")})
	if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "standard input") || got.form != nil {
		t.Errorf("a shell sees %+v, and the hub got %v", r, got.form)
	}
}

func TestSubscribe_asksForTopicsAndPatterns(t *testing.T) {
	var query url.Values
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: a\ndata: 1\n\n")
	}))
	defer s.Close()
	r := execute(t, cli.Env{Args: []string{"subscribe", "--hub", s.URL, "--pattern", "/a/:b", "--count", "1", "--json", "x", "*"}})
	if r != (result{cli.ExitOK, `{"id":"a","data":"1"}` + "\n", ""}) {
		t.Errorf("a shell sees %+v", r)
	}
	if diff := cmp.Diff(url.Values{"match": {"x", "*"}, "match_urlpattern": {"/a/:b"}}, query); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
}
