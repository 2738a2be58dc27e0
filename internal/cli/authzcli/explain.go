package authzcli

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// howToGiveOne says how a command gets the token it is about.
const howToGiveOne = "TOKEN may be - for standard input; --token-file and CINNABAR_TOKEN work too. The token itself is never printed."

func inspectCommand(env cli.Env) *cobra.Command {
	o := &judgeOptions{}
	c := &cobra.Command{
		Use:   "inspect [TOKEN]",
		Short: "Say what the hub makes of a token: the verdict of each check",
		Long: "Run each check that the hub makes of a token, in its order, with the keys, the revocations and the resource of the place, and\n" +
			"print the verdicts; > marks the first that refuses it.\n" + howToGiveOne + "\n\n" +
			"Exit codes: 0 the hub accepts the token, 1 it does not, 2 wrong usage.",
		Example: "  authz token mint --data .cinnabar --publish '*' | authz token inspect --data .cinnabar --action publish -",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, env, args) },
	}
	c.Flags().StringVar(&o.action, "action", string(rar.Subscribe), "`ENDPOINT` it is presented at: publish or subscribe")
	o.flags(c)
	fixed(c, "action", string(rar.Publish), string(rar.Subscribe))
	return c
}

func explainCommand(env cli.Env) *cobra.Command {
	o := &judgeOptions{}
	c := &cobra.Command{
		Use:   "explain [TOKEN]",
		Short: "Say why a token does or does not allow something",
		Long: "Judge a token as the hub does (see inspect), and ask its authorization details about topics: which of them allows the action, and\n" +
			"for each that does not, why. To subscribe means to get the private updates of a topic.\n" + howToGiveOne + "\n\n" +
			"Exit codes: 0 the hub accepts the token and it allows all that was asked, 1 not so, 2 wrong usage.",
		Example: "  authz token explain --data .cinnabar --topic https://example.com/books/1 --action publish --token-file t.jwt\n" +
			"  authz token explain --config authz.yaml --topic /books/1 --topic /books/2 --json - < t.jwt",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, env, args) },
	}
	c.Flags().StringVar(&o.action, "action", "", "ask for `ACTION` alone: publish or subscribe (default: both)")
	c.Flags().StringArrayVar(&o.topics, "topic", nil, "`TOPIC` to ask about, relative ones resolve against the hub URL; may repeat")
	o.flags(c)
	fixed(c, "action", string(rar.Publish), string(rar.Subscribe))
	return c
}

// verdict is the outcome as an error: nil, or why not.
func (j judgement) verdict() error {
	if !j.Valid {
		return &cli.Error{Code: cli.ExitFailure, Err: errors.New("the hub refuses this token")}
	}
	for _, a := range j.Answers {
		if !a.Allowed {
			return &cli.Error{Code: cli.ExitFailure, Err: fmt.Errorf("the token does not allow to %s %s", a.Action, a.Topic)}
		}
	}
	return nil
}

func (j judgement) print(env cli.Env, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(env.Stdout, j)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, v := range j.Verdicts {
		mark := " "
		if v.Check == j.Failed && v.Status == token.StatusFailed {
			mark = ">"
		}
		_, _ = fmt.Fprintf(w, "%s %s\t%s\t%s\n", mark, v.Check, v.Status, v.Detail) // a Builder does not fail
	}
	_ = w.Flush()
	if r := j.RevokedBy; r != nil {
		fmt.Fprintf(&b, "revoked by an entry for %s %s: its tokens issued up to %s\n", r.Kind, r.Value, moment(r.IssuedBefore))
	}
	for _, warning := range j.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	for _, a := range j.Answers {
		a.print(&b)
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

func (a answer) print(b *strings.Builder) {
	yes := "no"
	if a.Allowed {
		yes = "yes"
	}
	fmt.Fprintf(b, "\n%s %s: %s\n", a.Action, a.Topic, yes)
	if a.Note != "" {
		fmt.Fprintf(b, "  note: %s\n", a.Note)
	}
	for _, d := range a.Details {
		mark := "no "
		if d.Allowed {
			mark = "yes"
		}
		fmt.Fprintf(b, "  detail %d  %s  %s\n", d.Index, mark, d.Reason)
	}
	if len(a.Details) == 0 {
		fmt.Fprint(b, "  the token has no authorization details that could be read\n")
	}
}
