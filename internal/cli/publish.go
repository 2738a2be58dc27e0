package cli

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/client"
)

const (
	// maxDataBytes bounds what publish reads from standard input; the hub has a limit of its own.
	maxDataBytes = 64 << 20
	// maxRetryMillis is the longest reconnection time that can be asked for: more than anybody waits.
	maxRetryMillis = int64(365 * 24 * time.Hour / time.Millisecond)
)

type publishOptions struct {
	target     Target
	alternates []string
	private    bool
	id         string
	eventType  string
	retry      string
	json       bool
}

// published is what publish prints as JSON.
type published struct {
	ID string `json:"id"`
}

// PublishCommand is the verb publish.
func PublishCommand(env Env) *cobra.Command {
	o := &publishOptions{}
	c := &cobra.Command{
		Use:   "publish [flags] TOPIC [DATA]",
		Short: "Publish an update",
		Long: "Publish an update of TOPIC with DATA (- reads it from standard input, absent means empty) and print its event id.\n\n" +
			"Exit codes: 0 published, 1 failed, 2 wrong usage, 3 refused (401, 403, 429).",
		Example: "  hub publish --data .cinnabar --private https://localhost:8443/demo/books/1 '{\"status\":\"sold\"}'\n" +
			"  hub publish --hub https://hub.example.com/.well-known/mercure --token-file token https://example.com/books/1 - < book.json",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, env, args) },
	}
	o.target.Flags(c)
	f := c.Flags()
	f.StringArrayVar(&o.alternates, "alternate", nil, "alternate `TOPIC`, may repeat")
	f.BoolVar(&o.private, "private", false, "only for subscribers that may read one of the topics")
	f.StringVar(&o.id, "id", "", "event `ID` (default: the hub makes one)")
	f.StringVar(&o.eventType, "type", "", "event `TYPE`")
	f.StringVar(&o.retry, "retry", "", "reconnection time for subscribers, `MILLISECONDS`")
	JSONFlag(c, &o.json, "an object in one line with", published{})
	return c
}

func (o *publishOptions) run(c *cobra.Command, env Env, args []string) error {
	if o.target.Token == "-" && len(args) > 1 && args[1] == "-" {
		return Usagef("standard input cannot hold both the token and DATA: give the token with --token-file or CINNABAR_TOKEN")
	}
	if err := o.target.Resolve(env, true); err != nil {
		return err
	}
	update, err := o.update(env, args)
	if err != nil {
		return err
	}
	hub, err := o.target.Client(env)
	if err != nil {
		return err
	}
	id, err := hub.Publish(c.Context(), update)
	if err != nil {
		return Finish(c.Context(), explain(o.target.Hub, err))
	}
	if o.json {
		return printLine(env.Stdout, published{id})
	}
	_, err = fmt.Fprintln(env.Stdout, id)
	return err
}

func (o *publishOptions) update(env Env, args []string) (client.Update, error) {
	u := client.Update{Topics: append([]string{args[0]}, o.alternates...), Private: o.private, ID: o.id, Type: o.eventType}
	if o.retry != "" {
		ms, err := strconv.ParseInt(o.retry, 10, 64)
		if err != nil || ms < 1 || ms > maxRetryMillis {
			return u, Usagef("--retry must be a number of milliseconds, from 1 to %d", maxRetryMillis)
		}
		u.Retry = time.Duration(ms) * time.Millisecond
	}
	if len(args) > 1 {
		u.Data = args[1]
	}
	if u.Data == "-" {
		raw, err := io.ReadAll(io.LimitReader(env.Stdin, maxDataBytes+1))
		if err != nil {
			return u, fmt.Errorf("read standard input: %w", err)
		}
		if len(raw) > maxDataBytes {
			return u, Usagef("standard input is larger than %d bytes", maxDataBytes)
		}
		u.Data = string(raw)
	}
	return u, nil
}
