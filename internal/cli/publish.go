package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// maxDataBytes bounds what publish reads from standard input; the hub has a limit of its own.
const maxDataBytes = 64 << 20

type publishOptions struct {
	target     Target
	alternates []string
	private    bool
	id         string
	eventType  string
	retry      string
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
	return c
}

func (o *publishOptions) run(c *cobra.Command, env Env, args []string) error {
	if err := o.target.Resolve(env, true); err != nil {
		return err
	}
	form, err := o.form(env, args)
	if err != nil {
		return err
	}
	client, err := o.target.Client()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(c.Context(), http.MethodPost, o.target.Hub, strings.NewReader(form.Encode()))
	if err != nil {
		return Usage(err)
	}
	req.Header.Set("Content-Type", mercure.FormMediaType)
	if o.target.Token != "" {
		req.Header.Set("Authorization", "Bearer "+o.target.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return unreachable(o.target.Hub, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return Refusal(resp)
	}
	id, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	if err != nil {
		return fmt.Errorf("read the event id: %w", err)
	}
	_, err = fmt.Fprintln(env.Stdout, string(id))
	return err
}

func (o *publishOptions) form(env Env, args []string) (url.Values, error) {
	form := url.Values{mercure.FieldTopic: append([]string{args[0]}, o.alternates...)}
	data := ""
	if len(args) > 1 {
		data = args[1]
	}
	if data == "-" {
		raw, err := io.ReadAll(io.LimitReader(env.Stdin, maxDataBytes+1))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		if len(raw) > maxDataBytes {
			return nil, Usagef("standard input is larger than %d bytes", maxDataBytes)
		}
		data = string(raw)
	}
	form.Set(mercure.FieldData, data)
	if o.private {
		form.Set(mercure.FieldPrivate, "on")
	}
	for name, value := range map[string]string{mercure.FieldID: o.id, mercure.FieldType: o.eventType, mercure.FieldRetry: o.retry} {
		if value != "" {
			form.Set(name, value)
		}
	}
	return form, nil
}
