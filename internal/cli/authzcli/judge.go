package authzcli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// judgement is what there is to say about a token: the verdicts of the verifier that a hub uses, and the answers of the token's
// grants. Nothing here judges by itself.
type judgement struct {
	token.Inspection

	// Failed names the first check that refuses the token.
	Failed token.Check `json:"failed,omitempty"`
	// RevokedBy is what revoked the token, where that is why it is refused.
	RevokedBy *revocationView `json:"revoked_by,omitempty"`
	// Answers has one entry for each action and topic asked about.
	Answers []answer `json:"answers,omitempty"`
}

// answer says whether the token grants an action on a topic.
type answer struct {
	Action  rar.Action `json:"action"`
	Topic   string     `json:"topic"`
	Allowed bool       `json:"allowed"`
	// Note says what is true of the topic whatever the token.
	Note string `json:"note,omitempty"`
	// Details has one entry for each authorization detail, in the order of the token.
	Details []detailAnswer `json:"details"`
}

// detailAnswer says whether one authorization detail grants it, and why or why not.
type detailAnswer struct {
	Index   int    `json:"index"`
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// revocationView is what is shown of a revocation.
type revocationView struct {
	Kind         string    `json:"kind"`
	Value        string    `json:"value"`
	IssuedBefore time.Time `json:"issued_before"`
}

// verifier is the one that a hub with this resource has: with the keys of this server, and its revocations.
func (d *desk) verifier(ctx context.Context, resource as.Resource) (*token.Verifier, *topic.Compiler, error) {
	ring, err := d.core.OpenRing(ctx, d.conf.Issuer, d.conf.Keys.Algorithm)
	if err != nil {
		return nil, nil, err
	}
	list, err := revocations(ctx, authzapp.RevocationLog(d.core.Store))
	if err != nil {
		return nil, nil, err
	}
	compiler, err := topic.NewCompiler(resource.HubURL, topic.Limits{})
	if err != nil {
		return nil, nil, err
	}
	verifier, err := token.NewVerifier(token.Options{
		Resource: resource.ID, Compiler: compiler, Revocations: revokedBy{list},
		Issuers: []token.Issuer{{ID: d.conf.Issuer, Keys: ring, AuthorizationServer: true}},
	})
	return verifier, compiler, err
}

// revocations is the list of what a log revokes at this moment, the one that hubs have.
func revocations(ctx context.Context, source revocation.Source) (*revocation.List, error) {
	list, err := revocation.New(revocation.Options{Source: source})
	if err != nil {
		return nil, err
	}
	if err := list.Load(ctx); err != nil {
		return nil, fmt.Errorf("read revocations: %w", err)
	}
	return list, nil
}

// revokedBy finds the entry of the log that revokes a token: the first that does so alone; nil when none does.
func (d *desk) revokedBy(ctx context.Context, claims *token.Claims) (*revocationView, error) {
	const page = 1000
	for seq := int64(0); ; {
		entries, err := authzapp.RevocationLog(d.core.Store).Since(ctx, seq, page)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			seq = e.Seq
			if !slices.Contains([]string{claims.ID, claims.GrantID, claims.SessionID, claims.Subject, claims.ClientID}, e.Value) {
				continue
			}
			list, err := revocations(ctx, oneEntry(e))
			if err != nil {
				return nil, err
			}
			if (revokedBy{list}).Revoked(claims) {
				return &revocationView{Kind: e.Kind, Value: e.Value, IssuedBefore: e.IssuedBefore.UTC()}, nil
			}
		}
		if len(entries) < page {
			return nil, nil
		}
	}
}

// oneEntry is a log with one entry.
type oneEntry revocation.Entry

// Since implements revocation.Source.
func (o oneEntry) Since(_ context.Context, seq int64, _ int) ([]revocation.Entry, error) {
	if seq >= o.Seq {
		return nil, nil
	}
	return []revocation.Entry{revocation.Entry(o)}, nil
}

// revokedBy lets the verifier ask the list.
type revokedBy struct{ list *revocation.List }

// Revoked implements token.Revocations.
func (r revokedBy) Revoked(c *token.Claims) bool { return r.list.Revoked(authzapp.TokenOf(c)) }

// judge asks the verifier about a token, and its grants about topics. An empty action at the verifier is no endpoint in particular; about
// topics it stands for both.
func (d *desk) judge(ctx context.Context, resource as.Resource, compact string, action rar.Action, topics []string) (judgement, error) {
	verifier, compiler, err := d.verifier(ctx, resource)
	if err != nil {
		return judgement{}, err
	}
	j := judgement{Inspection: verifier.Inspect(ctx, compact, action)}
	for _, v := range j.Verdicts {
		if v.Status == token.StatusFailed {
			j.Failed = v.Check
			break
		}
	}
	if j.Failed == token.CheckRevocation {
		if j.RevokedBy, err = d.revokedBy(ctx, j.Claims); err != nil {
			return judgement{}, err
		}
	}
	actions := []rar.Action{action}
	if action == "" {
		actions = []rar.Action{rar.Publish, rar.Subscribe}
	}
	for _, raw := range topics {
		for _, a := range actions {
			given, err := ask(j.Claims, compiler, a, raw)
			if err != nil {
				return judgement{}, err
			}
			j.Answers = append(j.Answers, given)
		}
	}
	return j, nil
}

// ask has the grants answer: all together, as a hub asks them, and each detail alone, which tells why.
func ask(claims *token.Claims, compiler *topic.Compiler, action rar.Action, raw string) (answer, error) {
	t := compiler.Topic(raw)
	a := answer{Action: action, Topic: raw, Allowed: claims.Grants.Allows(action, t), Details: []detailAnswer{}}
	if action == rar.Publish && t.Reserved() {
		a.Note = "the hub keeps this topic for itself: publishing to it is refused whatever the token"
	}
	for i, d := range claims.Details {
		reason, allowed, err := askDetail(d, compiler, action, t)
		if err != nil {
			return answer{}, err
		}
		a.Details = append(a.Details, detailAnswer{Index: i, Allowed: allowed, Reason: reason})
	}
	return a, nil
}

// askDetail asks the grants of one detail, then those of each of its topics, for the one that decides.
func askDetail(d rar.Detail, compiler *topic.Compiler, action rar.Action, t *topic.Topic) (reason string, allowed bool, err error) {
	grants, err := rar.Compile([]rar.Detail{d}, compiler)
	if err != nil {
		return "", false, fmt.Errorf("compile authorization detail: %w", err)
	}
	if !grants.Actions().Has(action) {
		return fmt.Sprintf("it is not for %s, but for %s", action, actionNames(d)), false, nil
	}
	if !grants.Allows(action, t) {
		return "none of its topics matches: " + matcherNames(d.Topics), false, nil
	}
	for _, tm := range d.Topics {
		one, err := rar.Compile([]rar.Detail{{Actions: []rar.Action{action}, Topics: []rar.TopicMatcher{tm}}}, compiler)
		if err != nil {
			return "", false, fmt.Errorf("compile topic matcher: %w", err)
		}
		if one.Allows(action, t) {
			return "matches " + matcherName(tm), true, nil
		}
	}
	return "", false, errors.New("a detail allows what none of its topics does")
}

func actionNames(d rar.Detail) string {
	names := make([]string, 0, len(d.Actions))
	for _, a := range d.Actions {
		names = append(names, string(a))
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// maxNamed bounds how many matchers a reason names.
const maxNamed = 8

func matcherNames(list []rar.TopicMatcher) string {
	names := make([]string, 0, maxNamed+1)
	for i, tm := range list {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(list)-maxNamed))
			break
		}
		names = append(names, matcherName(tm))
	}
	return strings.Join(names, ", ")
}

func matcherName(tm rar.TopicMatcher) string {
	switch {
	case tm.Match == topic.Wildcard && tm.MatchType == topic.Exact:
		return "every topic (*)"
	case tm.MatchType == topic.Exact:
		return fmt.Sprintf("%q", tm.Match)
	}
	return fmt.Sprintf("pattern %q", tm.Match)
}

// judgeOptions are what inspect and explain have in common.
type judgeOptions struct {
	place     place
	tokenFile string
	action    string
	resource  string
	topics    []string
	json      bool
}

func (o *judgeOptions) flags(c *cobra.Command) {
	o.place.flags(c)
	c.Flags().StringVar(&o.tokenFile, "token-file", "", "`FILE` that holds the token")
	c.Flags().StringVar(&o.resource, "resource", "", "resource `ID` of the hub (default: the only one)")
	cli.JSONFlag(c, &o.json, "an object with", judgement{})
	c.ValidArgsFunction = cobra.NoFileCompletions
}

func (o *judgeOptions) run(c *cobra.Command, env cli.Env, args []string) error {
	action := rar.Action(o.action)
	if action != rar.Publish && action != rar.Subscribe && action != "" {
		return cli.Usagef("--action %q is not publish or subscribe", o.action)
	}
	compact, err := tokenArgument(env, args, o.tokenFile)
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
	var j judgement
	err = o.place.withStore(c.Context(), env, conf, func(d *desk) (err error) {
		j, err = d.judge(c.Context(), resource, compact, action, o.topics)
		return err
	})
	if err != nil {
		return err
	}
	if err := j.print(env, o.json); err != nil {
		return err
	}
	return j.verdict()
}

// tokenArgument reads the token that a command is about.
func tokenArgument(env cli.Env, args []string, file string) (string, error) {
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	compact, err := cli.ReadToken(env, arg, file)
	if err == nil && compact == "" {
		err = cli.Usagef("no token: give TOKEN, -, --token-file or CINNABAR_TOKEN")
	}
	return compact, err
}
