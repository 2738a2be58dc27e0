package authzcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func tokenCommand(env cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Mint and inspect access tokens", Args: cobra.NoArgs}
	c.AddCommand(mintCommand(env), inspectCommand(env))
	return c
}

type mintOptions struct {
	place             place
	publish           []string
	subscribe         []string
	publishPatterns   []string
	subscribePatterns []string
	payload           string
	subject           string
	resource          string
	ttl               time.Duration
}

func mintCommand(env cli.Env) *cobra.Command {
	o := &mintOptions{}
	c := &cobra.Command{
		Use:   "mint",
		Short: "Print a new access token",
		Long: "Mint an access token for the hub and print it alone. It bypasses the policies, since whoever can read the store's secret\n" +
			"could take the keys as well; it is audited.",
		Example: "  authz token mint --data .cinnabar --publish '*'\n" +
			"  authz token mint --config authz.yaml --subscribe-pattern 'https://example.com/books/:id' --sub u_1 --ttl 1h",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c, env) },
	}
	o.place.flags(c)
	f := c.Flags()
	f.StringArrayVar(&o.publish, "publish", nil, "topic `M` it may publish, compared exactly; * for every topic; may repeat")
	f.StringArrayVar(&o.subscribe, "subscribe", nil, "topic `M` whose private updates it may read; may repeat")
	f.StringArrayVar(&o.publishPatterns, "publish-pattern", nil, "URL pattern `P` of topics it may publish; may repeat")
	f.StringArrayVar(&o.subscribePatterns, "subscribe-pattern", nil, "URL pattern `P` of topics whose private updates it may read; may repeat")
	f.StringVar(&o.payload, "payload", "", "`JSON` object that others who watch its subscriptions are told")
	f.StringVar(&o.subject, "sub", as.CommandClientID, "`SUBJECT` of the token")
	f.StringVar(&o.resource, "resource", "", "resource `ID` it is for (default: the only one)")
	f.DurationVar(&o.ttl, "ttl", as.DefaultAccessTokenTTL, "`DURATION` it lives, at most "+as.MaxOfflineTTL.String())
	return c
}

func (o *mintOptions) run(c *cobra.Command, env cli.Env) (err error) {
	details, err := o.details()
	if err != nil {
		return err
	}
	conf, err := o.place.load(env)
	if err != nil {
		return err
	}
	resource, err := resourceOf(conf, o.resource)
	if err != nil {
		return err
	}
	core, err := o.place.core(c.Context(), conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, core.Close()) }()
	ring, err := core.OpenRing(c.Context(), conf.Issuer, conf.Keys.Algorithm)
	if err != nil {
		return err
	}
	compact, err := as.MintOffline(c.Context(), core.Store, ring, as.OfflineRequest{
		Issuer: conf.Issuer, Resource: resource, Subject: o.subject, Details: details, TTL: o.ttl, Actor: operator(),
	})
	if errors.Is(err, as.ErrMint) {
		return cli.Usage(err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.Stdout, compact)
	return err
}

func (o *mintOptions) details() ([]rar.Detail, error) {
	var details []rar.Detail
	for _, part := range []struct {
		action   rar.Action
		exact    []string
		patterns []string
	}{{rar.Publish, o.publish, o.publishPatterns}, {rar.Subscribe, o.subscribe, o.subscribePatterns}} {
		if slices.Contains(part.exact, "") || slices.Contains(part.patterns, "") {
			return nil, cli.Usagef("an empty topic for %s: is a variable unset?", part.action)
		}
		d := rar.Detail{Actions: []rar.Action{part.action}}
		for _, m := range part.exact {
			d.Topics = append(d.Topics, rar.TopicMatcher{Match: m, MatchType: topic.Exact})
		}
		for _, p := range part.patterns {
			d.Topics = append(d.Topics, rar.TopicMatcher{Match: p, MatchType: topic.URLPattern})
		}
		if len(d.Topics) == 0 {
			continue
		}
		if part.action == rar.Subscribe && o.payload != "" {
			var object map[string]json.RawMessage
			if err := json.Unmarshal([]byte(o.payload), &object); err != nil || object == nil {
				return nil, cli.Usagef("--payload is not a JSON object")
			}
			d.Payload = json.RawMessage(o.payload)
		}
		details = append(details, d)
	}
	if len(details) == 0 {
		return nil, cli.Usagef("nothing to allow: give --publish, --subscribe, --publish-pattern or --subscribe-pattern")
	}
	if o.payload != "" && len(o.subscribe)+len(o.subscribePatterns) == 0 {
		return nil, cli.Usagef("--payload belongs to subscriptions: give --subscribe or --subscribe-pattern")
	}
	return details, nil
}

type inspectOptions struct {
	place     place
	tokenFile string
	action    string
	resource  string
	json      bool
}

func inspectCommand(env cli.Env) *cobra.Command {
	o := &inspectOptions{}
	c := &cobra.Command{
		Use:   "inspect [TOKEN]",
		Short: "Say what the hub makes of a token: the verdict of each check",
		Long: "Run each check that the hub makes of a token, in its order, with the keys and the resource of the place, and print the\n" +
			"verdicts. TOKEN may be - for standard input; --token-file and CINNABAR_TOKEN work too. The token is never printed.\n\n" +
			"Exit codes: 0 the hub accepts the token, 1 it does not, 2 wrong usage.",
		Example: "  authz token mint --data .cinnabar --publish '*' | authz token inspect --data .cinnabar --action publish -",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, env, args) },
	}
	o.place.flags(c)
	c.Flags().StringVar(&o.tokenFile, "token-file", "", "`FILE` that holds the token")
	c.Flags().StringVar(&o.action, "action", string(rar.Subscribe), "`ENDPOINT` it is presented at: publish or subscribe")
	c.Flags().StringVar(&o.resource, "resource", "", "resource `ID` of the hub (default: the only one)")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (o *inspectOptions) run(c *cobra.Command, env cli.Env, args []string) (err error) {
	action := rar.Action(o.action)
	if action != rar.Publish && action != rar.Subscribe {
		return cli.Usagef("--action %q is not publish or subscribe", o.action)
	}
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	compact, err := cli.ReadToken(env, arg, o.tokenFile)
	if err != nil {
		return err
	}
	if compact == "" {
		return cli.Usagef("no token: give TOKEN, -, --token-file or CINNABAR_TOKEN")
	}
	inspection, err := o.inspect(c, env, compact, action)
	if err != nil {
		return err
	}
	if err := o.print(env, inspection); err != nil {
		return err
	}
	if !inspection.Valid {
		return &cli.Error{Code: cli.ExitFailure, Err: errors.New("the hub refuses this token")}
	}
	return nil
}

func (o *inspectOptions) inspect(c *cobra.Command, env cli.Env, compact string, action rar.Action) (_ token.Inspection, err error) {
	conf, err := o.place.load(env)
	if err != nil {
		return token.Inspection{}, err
	}
	resource, err := resourceOf(conf, o.resource)
	if err != nil {
		return token.Inspection{}, err
	}
	core, err := o.place.core(c.Context(), conf)
	if err != nil {
		return token.Inspection{}, err
	}
	defer func() { err = errors.Join(err, core.Close()) }()
	ring, err := core.OpenRing(c.Context(), conf.Issuer, conf.Keys.Algorithm)
	if err != nil {
		return token.Inspection{}, err
	}
	compiler, err := topic.NewCompiler(resource.HubURL, topic.Limits{})
	if err != nil {
		return token.Inspection{}, err
	}
	verifier, err := token.NewVerifier(token.Options{
		Resource: resource.ID, Compiler: compiler,
		Issuers: []token.Issuer{{ID: conf.Issuer, Keys: ring, AuthorizationServer: true}},
	})
	if err != nil {
		return token.Inspection{}, err
	}
	return verifier.Inspect(c.Context(), compact, action), nil
}

func (o *inspectOptions) print(env cli.Env, i token.Inspection) error {
	if o.json {
		enc := json.NewEncoder(env.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(i)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, v := range i.Verdicts {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", v.Check, v.Status, v.Detail) // a Builder does not fail
	}
	_ = w.Flush()
	for _, warning := range i.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}
