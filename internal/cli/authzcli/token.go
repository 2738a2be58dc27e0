package authzcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func tokenCommand(env cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Mint, judge and revoke access tokens", Args: cobra.NoArgs}
	c.AddCommand(mintCommand(env), inspectCommand(env), explainCommand(env), revokeCommand(env))
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
	json              bool
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
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return o.run(c.Context(), env) },
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
	cli.JSONFlag(c, &o.json, "an object with", minted{})
	return c
}

func (o *mintOptions) run(ctx context.Context, env cli.Env) error {
	if o.ttl < time.Second || o.ttl > as.MaxOfflineTTL { // to the server 0 is its default
		return cli.Usagef("--ttl must be between 1s and %v", as.MaxOfflineTTL)
	}
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
	return o.place.withStore(ctx, env, conf, func(d *desk) error {
		ring, err := d.core.OpenRing(ctx, conf.Issuer, conf.Keys.Algorithm)
		if err != nil {
			return err
		}
		compact, err := as.MintOffline(ctx, d.core.Store, ring, as.OfflineRequest{
			Issuer: conf.Issuer, Resource: resource, Subject: o.subject, Details: details, TTL: o.ttl, Actor: operator(),
		})
		if errors.Is(err, as.ErrMint) {
			return cli.Usage(err)
		}
		if err != nil {
			return err
		}
		return o.print(ctx, env, d, compact, resource)
	})
}

// minted is what is shown of a new token.
type minted struct {
	Token     string    `json:"access_token"`
	ID        string    `json:"jti"`
	Subject   string    `json:"sub"`
	Resource  string    `json:"resource"`
	ExpiresAt time.Time `json:"expires_at"`
}

// print prints the token alone, or as JSON with what else there is to know of it.
func (o *mintOptions) print(ctx context.Context, env cli.Env, d *desk, compact string, resource as.Resource) error {
	if !o.json {
		_, err := fmt.Fprintln(env.Stdout, compact)
		return err
	}
	verifier, _, err := d.verifier(ctx, resource)
	if err != nil {
		return err
	}
	claims := verifier.Inspect(ctx, compact, "").Claims
	return cli.PrintJSON(env.Stdout, minted{
		Token: compact, ID: claims.ID, Subject: claims.Subject, Resource: resource.ID, ExpiresAt: claims.ExpiresAt.UTC(),
	})
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
