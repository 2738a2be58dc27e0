package hubcli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func verifyCommand(env cli.Env) *cobra.Command {
	p := &historyPlace{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify [--config FILE | --data DIR]",
		Short: "Read all that is kept and check it",
		Long: "Read every event that the history keeps, and every index, and compare them. A running hub is asked through its control socket and goes on\n" +
			"meanwhile; without one the history is opened for reading. Nothing is changed. The exit code is 1 when something is wrong, and the message\n" +
			"says where.",
		Example: "  hub history verify --config hub.yaml\n  hub history verify --data .cinnabar --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			defer func() { err = cli.Finish(c.Context(), err) }()
			h, err := p.open(c.Context(), env)
			if err != nil {
				return explainDamage(err)
			}
			defer func() { err = errors.Join(err, h.close()) }()
			done, err := h.Verify(c.Context())
			if err != nil {
				return explainDamage(err)
			}
			v := verifyView{Path: h.path, Running: h.running, Verification: done}
			if asJSON {
				return cli.PrintJSON(env.Stdout, v)
			}
			return lines(env.Stdout, v.text())
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an object with", verifyView{})
	return c
}

// verifyView is what is shown of a history in which nothing is wrong. Its JSON is a contract.
type verifyView struct {
	// Path is the folder of the history; empty when it has none.
	Path string `json:"path,omitempty"`
	// Running says that a running hub checked it.
	Running bool `json:"running"`
	history.Verification
}

func (v *verifyView) text() string {
	text := fmt.Sprintf("Verified %s, %s", count(v.Events, "event"), humanBytes(v.Bytes))
	if v.Segments > 0 {
		text += " in " + count(int64(v.Segments), "file")
	}
	switch v.Indexes {
	case 0:
	case 1:
		text += ", and 1 index"
	default:
		text += ", and " + grouped(int64(v.Indexes)) + " indexes"
	}
	return text + ": nothing is wrong"
}

// explainDamage says what to do about a damaged history.
func explainDamage(err error) error {
	if errors.Is(err, history.ErrCorrupt) {
		return &cli.Error{Code: cli.ExitFailure, Err: err, Hint: "look at the disk, and restore a copy that hub backup has made"}
	}
	return err
}

func compactCommand(env cli.Env) *cobra.Command {
	p := &historyPlace{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "compact [--config FILE | --data DIR]",
		Short: "Apply the limits now, and give back what is not needed",
		Long: "Remove what the limits of the configuration leave no room for, and give space back to the file system. The segments driver also writes\n" +
			"anew what is missing or wrong of the indexes. A running hub is asked through its control socket, and uses the limits that it was started\n" +
			"with; publishes may wait meanwhile, with the bolt driver for all of it. Without a hub the history is opened. The bolt driver needs as\n" +
			"much space again while it works.",
		Example: "  hub history compact --config hub.yaml\n  hub history compact --data .cinnabar --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			defer func() { err = cli.Finish(c.Context(), err) }()
			v, err := p.compact(c.Context(), env)
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(env.Stdout, v)
			}
			return lines(env.Stdout, fmt.Sprintf("Compacted the history: %s, before %s", humanBytes(v.After), humanBytes(v.Before)))
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an object with", compactView{})
	return c
}

// compactView is what is shown of a history that was compacted. Its JSON is a contract.
type compactView struct {
	// Path is the folder of the history; empty when it has none.
	Path string `json:"path,omitempty"`
	// Running says that a running hub did it.
	Running bool `json:"running"`
	history.Compaction
}

func (p *historyPlace) compact(ctx context.Context, env cli.Env) (compactView, error) {
	c, hub, socket, err := p.reach(ctx, env)
	v := compactView{Path: folderOf(c), Running: hub != nil}
	switch {
	case err != nil:
	case hub != nil:
		v.Compaction, err = hub.Compact(ctx)
	default:
		if v.Compaction, err = historyapp.Compact(ctx, c, nil); err != nil {
			err = explainDamage(explainOffline(err, v.Path, socket))
		}
	}
	return v, err
}
