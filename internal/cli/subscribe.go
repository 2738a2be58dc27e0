package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// maxEventBytes bounds one received event.
	maxEventBytes = 64 << 20
	// defaultReconnect is waited before reconnecting when the hub has suggested no time; what it suggests is kept within bounds.
	defaultReconnect = 3 * time.Second
	minReconnect     = 100 * time.Millisecond
	maxReconnect     = time.Minute
)

type subscribeOptions struct {
	target   Target
	patterns []string
	cursor   string
	count    int
	json     bool
}

// SubscribeCommand is the verb subscribe.
func SubscribeCommand(env Env) *cobra.Command {
	o := &subscribeOptions{}
	c := &cobra.Command{
		Use:   "subscribe [flags] [TOPIC]...",
		Short: "Print updates as they come",
		Long: "Print the updates of each TOPIC (compared exactly, * for every topic) and of each --pattern, until interrupted.\n" +
			"A stream that ends is resumed where it ended.\n\n" +
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
	f.BoolVar(&o.json, "json", false, "print one JSON object a line: id, type, data")
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
	u, err := url.Parse(o.target.Hub)
	if err != nil {
		return Usage(err)
	}
	q := u.Query()
	for _, t := range topics {
		q.Add(mercure.ParamMatch, t)
	}
	for _, p := range o.patterns {
		q.Add(mercure.ParamMatchPrefix+string(topic.URLPattern), p)
	}
	u.RawQuery = q.Encode()
	client, err := o.target.Client()
	if err != nil {
		return err
	}
	s := &subscription{options: o, env: env, client: client, url: u.String(), cursor: o.cursor, wait: defaultReconnect}
	return s.follow(ctx)
}

// subscription is one run of the verb, over as many connections as it takes.
type subscription struct {
	options   *subscribeOptions
	env       Env
	client    *http.Client
	url       string
	cursor    string
	wait      time.Duration
	connected bool // the hub has accepted it once, so that what fails now may pass
	seen      int
}

var errEnough = errors.New("cli: enough updates")

func (s *subscription) follow(ctx context.Context) error {
	for {
		err := s.stream(ctx)
		if errors.Is(err, errEnough) || ctx.Err() != nil {
			return nil //nolint:nilerr // enough, or interrupted: that is how it is meant to end
		}
		if _, ok := errors.AsType[*Error](err); ok {
			return err
		}
		_, _ = fmt.Fprintf(s.env.Stderr, "stream ended, resuming in %v\n", s.wait)
		timer := time.NewTimer(s.wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// stream follows one connection. An *Error ends the verb; anything else is worth another connection.
func (s *subscription) stream(ctx context.Context) error {
	resp, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	s.connected = true
	s.warnOfGap(resp.Header.Get(mercure.HeaderMercureLastEventID))
	dec := sse.NewDecoder(resp.Body, maxEventBytes)
	for {
		e, err := dec.Next()
		if d, ok := dec.Retry(); ok {
			s.wait = max(minReconnect, min(d, maxReconnect))
		}
		if errors.Is(err, sse.ErrEventTooLarge) {
			return &Error{Code: ExitFailure, Err: err} // it would come again
		}
		if err != nil {
			return err
		}
		s.cursor = e.ID
		s.seen++
		if err := s.print(e); err != nil {
			return &Error{Code: ExitFailure, Err: err}
		}
		if s.options.count > 0 && s.seen >= s.options.count {
			return errEnough
		}
	}
}

// warnOfGap says when the hub does not go on where it was asked to: it does not know that event, or not any more.
func (s *subscription) warnOfGap(from string) {
	if from == "" || s.cursor == "" || from == s.cursor {
		return
	}
	start := "after " + from
	if from == mercure.Earliest {
		start = "with the oldest update it has"
	}
	_, _ = fmt.Fprintf(s.env.Stderr, "the hub does not know the event %s and starts %s: updates may be missing or come again\n", s.cursor, start)
}

// connect gives a response that is an event stream.
func (s *subscription) connect(ctx context.Context) (*http.Response, error) {
	target := &s.options.target
	if s.connected {
		target.refresh(s.env)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return nil, Usage(err)
	}
	req.Header.Set("Accept", mercure.EventStreamMediaType)
	if s.cursor != "" {
		req.Header.Set(mercure.HeaderLastEventID, s.cursor)
	}
	if target.Token != "" {
		req.Header.Set("Authorization", "Bearer "+target.Token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if s.connected {
			return nil, err
		}
		return nil, unreachable(target.Hub, err)
	}
	if err := s.judge(resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return resp, nil
}

// judge says why a response is not an event stream.
func (s *subscription) judge(resp *http.Response) error {
	switch {
	case resp.StatusCode >= http.StatusInternalServerError && s.connected:
		return errors.New(resp.Status)
	case resp.StatusCode != http.StatusOK:
		return Refusal(resp)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // what cannot be parsed is none
	if kind != mercure.EventStreamMediaType {
		return &Error{
			Code: ExitFailure, Err: fmt.Errorf("%s answered with %q, not with an event stream", s.options.target.Hub, kind),
			Hint: "give the URL of the hub itself, such as https://hub.example.com/.well-known/mercure",
		}
	}
	return nil
}

func (s *subscription) print(e sse.Event) error {
	if s.options.json {
		line, err := json.Marshal(struct {
			ID   string `json:"id"`
			Type string `json:"type,omitempty"`
			Data string `json:"data"`
		}{e.ID, e.Type, e.Data})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.env.Stdout, "%s\n", line)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\n", e.ID)
	if e.Type != "" {
		fmt.Fprintf(&b, "type: %s\n", e.Type)
	}
	fmt.Fprintf(&b, "%s\n\n", e.Data)
	_, err := fmt.Fprint(s.env.Stdout, b.String())
	return err
}
