package hubcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/control"
	"github.com/cinnabar-hub/cinnabar/internal/datadir"
	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// historyPlace says which hub's history a command works on.
type historyPlace struct {
	config string
	data   string
}

func (p *historyPlace) flags(c *cobra.Command) {
	cli.ConfigFlag(c, &p.config, "configuration `FILE` of the hub; without it, and without --data, the environment alone")
	c.Flags().StringVar(&p.data, "data", "", "data folder `DIR` of 'hub dev'")
	c.MarkFlagsMutuallyExclusive("config", "data")
	_ = c.MarkFlagDirname("data") // the flag is there
}

// load gives the history and the control socket of the place; no socket when there is none.
func (p *historyPlace) load(env cli.Env) (config.History, string, error) {
	if p.data == "" {
		l, err := config.LoadHub(config.Source{Path: p.config, Environ: env.Environ})
		if err != nil {
			return config.History{}, "", cli.ConfigError(err, p.config)
		}
		return l.Value.History, string(l.Value.ControlSocket), nil
	}
	d, err := datadir.Open(p.data)
	if err != nil {
		return config.History{}, "", cli.DataError(p.data, err)
	}
	return config.History{Driver: "segments", Path: config.File(d.HistoryDir())}, d.ControlSocket(), nil
}

// reach gives the history of the place, and the hub that has it open; nil when none answers.
func (p *historyPlace) reach(ctx context.Context, env cli.Env) (c config.History, hub *control.Client, socket string, err error) {
	if c, socket, err = p.load(env); err != nil || socket == "" {
		return c, nil, socket, err
	}
	hub, err = control.Dial(ctx, socket)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return c, nil, socket, nil
	case errors.Is(err, fs.ErrPermission):
		err = &cli.Error{Code: cli.ExitFailure, Err: err, Hint: "run this as the user that the hub runs as"}
	}
	return c, hub, socket, err
}

// openHistory is a history that a command looks at.
type openHistory struct {
	history.Inspector
	history.Backupper
	history.Verifier

	driver  string
	path    string // of its folder; empty when it has none
	running bool   // a hub has it open and answers for it
	close   func() error
}

// open reaches the history through the hub that has it open, or opens it when none has.
func (p *historyPlace) open(ctx context.Context, env cli.Env) (*openHistory, error) {
	c, hub, socket, err := p.reach(ctx, env)
	if err != nil {
		return nil, err
	}
	h := &openHistory{driver: c.Driver, path: folderOf(c)}
	if hub != nil {
		h.Inspector, h.Backupper, h.Verifier, h.running, h.close = hub, hub, hub, true, func() error { return nil }
		return h, nil
	}
	offline, err := historyapp.OpenOffline(ctx, c)
	if err != nil {
		return nil, explainOffline(err, h.path, socket)
	}
	h.Inspector, h.Backupper, h.Verifier, h.close = offline, offline, offline, offline.Close
	return h, nil
}

// folderOf gives the folder of a history; empty when it has none.
func folderOf(c config.History) string {
	if c.Durable() {
		return string(c.Path)
	}
	return ""
}

// explainOffline says what to do when a history that no hub answers for cannot be opened.
func explainOffline(err error, path, socket string) error {
	e := &cli.Error{Code: cli.ExitFailure, Err: err}
	switch {
	case errors.Is(err, historyapp.ErrVolatile):
		e.Hint = "start the hub, with control_socket set"
	case errors.Is(err, fs.ErrNotExist):
		e.Err = fmt.Errorf("there is no history in %s: %w", path, err)
		e.Hint = "start the hub once first: it makes the history"
	case errors.Is(err, history.ErrLocked):
		e.Hint = "a process has the history open, and none listens on " + socket + ": a hub that is starting or ending, or one with another control_socket"
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "run this as the user that the hub runs as"
	default:
		return err
	}
	return e
}

// HistoryCommand is the verb history, about the updates that a hub keeps.
func HistoryCommand(env cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "history", Short: "Look at the updates that the hub keeps, and tend them", Args: cobra.NoArgs}
	c.AddCommand(statsCommand(env), verifyCommand(env), compactCommand(env), importCommand(env))
	return c
}

func statsCommand(env cli.Env) *cobra.Command {
	p := &historyPlace{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats [--config FILE | --data DIR]",
		Short: "Say how much is kept, and since when",
		Long: "Say how many updates the history keeps, and how many events of active subscriptions beside them, how much room they take, and from when\n" +
			"they are. A running hub is asked through its control socket; without one the history is opened for reading, and nothing in it is changed.",
		Example: "  hub history stats --config hub.yaml\n  hub history stats --data .cinnabar --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			defer func() { err = cli.Finish(c.Context(), err) }()
			h, err := p.open(c.Context(), env)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.close()) }()
			s, err := h.Stats(c.Context())
			if err != nil {
				return err
			}
			v := statsView{Path: h.path, Running: h.running, Stats: s}
			if asJSON {
				return cli.PrintJSON(env.Stdout, v)
			}
			return v.print(env.Stdout, time.Now())
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an object with", statsView{})
	return c
}

// statsView is what is shown of a history. Its JSON is a contract.
type statsView struct {
	// Path is the folder of the history; empty when it has none.
	Path string `json:"path,omitempty"`
	// Running says that a running hub gave the numbers.
	Running bool `json:"running"`
	history.Stats
}

// print prints the view for people; now is what times are told from.
func (v *statsView) print(out io.Writer, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	place := v.Driver
	if v.Path != "" {
		place += " in " + v.Path
	}
	if v.Running {
		place += ", hub running"
	} else {
		place += ", no hub running"
	}
	size := humanBytes(v.Bytes)
	if v.Segments > 0 {
		size += " in " + count(int64(v.Segments), "file")
	}
	rows := [][2]string{{"history", place}, {"updates", grouped(v.Events)}}
	if v.SubscriptionEvents > 0 {
		rows = append(rows, [2]string{"subscription events", grouped(v.SubscriptionEvents)})
	}
	rows = append(rows, [2]string{"size", size})
	if v.Events+v.SubscriptionEvents > 0 {
		rows = append(rows, [2]string{"oldest", humanTime(v.FirstAt, now)}, [2]string{"newest", humanTime(v.LastAt, now)}, [2]string{"last id", v.LastID})
		rows = append(rows, [2]string{"positions", fmt.Sprintf("%d to %d", v.First, v.Last)})
	}
	rows = append(rows, [2]string{"epoch", v.Epoch})
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", r[0], r[1]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// grouped writes a number with commas: 1,234,567.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count writes a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

// humanBytes writes a size with three digits or so: 12.3 MiB.
func humanBytes(n int64) string {
	if n < 1<<10 {
		return count(n, "byte")
	}
	size, unit := float64(n)/(1<<10), 0
	for units := "KMGTPE"; size >= 1<<10 && unit < len(units)-1; unit++ {
		size /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTPE"[unit])
}

// humanTime writes a time and how long ago it was.
func humanTime(t, now time.Time) string {
	age := now.Sub(t)
	ago := "just now"
	switch {
	case age >= 48*time.Hour:
		ago = count(int64(age/(24*time.Hour)), "day") + " ago"
	case age >= 2*time.Hour:
		ago = count(int64(age/time.Hour), "hour") + " ago"
	case age >= 2*time.Minute:
		ago = count(int64(age/time.Minute), "minute") + " ago"
	case age >= time.Second:
		ago = count(int64(age/time.Second), "second") + " ago"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC") + " (" + ago + ")"
}
