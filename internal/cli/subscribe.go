package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/client"
)

type subscribeOptions struct {
	target   Target
	patterns []string
	cursor   string
	count    int
	json     bool
}

// received is what subscribe prints of an update as JSON.
type received struct {
	ID   string `json:"id"`
	Type string `json:"type,omitempty"`
	Data string `json:"data"`
	Gap  bool   `json:"gap,omitempty"`
}

// SubscribeCommand is the verb subscribe.
func SubscribeCommand(env Env) *cobra.Command {
	o := &subscribeOptions{}
	c := &cobra.Command{
		Use:   "subscribe [flags] [TOPIC]...",
		Short: "Print updates as they come",
		Long: "Print the updates of each TOPIC (compared exactly, * for every topic) and of each --pattern, until interrupted.\n" +
			"A stream that is lost is resumed where it ended, with the token that --token-file then holds. Where updates may be missing,\n" +
			"since the hub does not have the one to resume after, standard error says so, and the next update in JSON (gap).\n\n" +
			"Exit codes: 0 interrupted or --count reached, 1 failed, 2 wrong usage, 3 refused (401, 403, 429).",
		Example: "  hub subscribe --data .cinnabar --pattern '/demo/books/:id'\n" +
			"  hub subscribe --hub https://hub.example.com/.well-known/mercure --last-event-id earliest --count 10 --json '*'",
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), env, args) },
	}
	o.target.Flags(c)
	f := c.Flags()
	f.StringArrayVar(&o.patterns, "pattern", nil, "URL `PATTERN`, may repeat; relative ones resolve against the hub URL")
	f.StringVar(&o.cursor, "last-event-id", "", "resume after this event `ID`; earliest for everything kept")
	f.IntVar(&o.count, "count", 0, "stop after this `NUMBER` of updates; 0 for no limit")
	JSONFlag(c, &o.json, "an object a line with", received{})
	return c
}

func (o *subscribeOptions) run(ctx context.Context, env Env, topics []string) error {
	if len(topics)+len(o.patterns) == 0 {
		return Usagef("nothing to subscribe to: give a TOPIC or --pattern")
	}
	if o.count < 0 {
		return Usagef("--count must not be negative")
	}
	if err := o.target.Resolve(env, false); err != nil {
		return err
	}
	hub, err := o.target.Client(env)
	if err != nil {
		return err
	}
	return o.follow(ctx, env, hub, topics)
}

// follow prints updates. Before the hub has accepted the subscription once, any failure is final: somebody waits for the first answer,
// and what is wrong then is most often the command line.
func (o *subscribeOptions) follow(ctx context.Context, env Env, hub *client.Client, topics []string) error {
	accepted, seen := false, 0
	updates := hub.Subscribe(ctx, client.Subscription{
		Topics: topics, Patterns: o.patterns, Cursor: o.cursor,
		Opened: func(c client.Connection) {
			accepted = true
			if c.Gap {
				_, _ = fmt.Fprintln(env.Stderr, gapMessage(c))
			}
		},
		Retry: func(err error, wait time.Duration) bool {
			if accepted {
				_, _ = fmt.Fprintf(env.Stderr, "%v, resuming in %v\n", err, wait.Round(100*time.Millisecond))
			}
			return accepted
		},
	})
	for e, err := range updates {
		if ctx.Err() != nil {
			return nil // interrupted: that is how it is meant to end
		}
		if err != nil {
			return explain(o.target.Hub, err)
		}
		if err := o.print(env, e); err != nil {
			return fmt.Errorf("print update: %w", err)
		}
		if seen++; seen == o.count {
			return nil
		}
	}
	return nil
}

// gapMessage says that the hub does not go on where the last stream ended, or where it was asked to.
func gapMessage(c client.Connection) string {
	switch {
	case c.Cursor == "":
		return "there was no update to resume after: updates may be missing"
	case c.From == "":
		return "the hub does not say whether it resumes: updates may be missing"
	case c.From == client.Earliest:
		return "the hub does not know the event " + c.Cursor + " and starts with the oldest update it has: updates may be missing or come again"
	default:
		return "the hub does not know the event " + c.Cursor + " and starts after " + c.From + ": updates may be missing or come again"
	}
}

func (o *subscribeOptions) print(env Env, e client.Event) error {
	if o.json {
		return printLine(env.Stdout, received(e))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\n", e.ID)
	if e.Type != "" {
		fmt.Fprintf(&b, "type: %s\n", e.Type)
	}
	fmt.Fprintf(&b, "%s\n\n", e.Data)
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}
