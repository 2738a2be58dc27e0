package hubcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/backup"
)

// BackupCommand is the verb backup, which copies the history of a hub, running or not.
func BackupCommand(env cli.Env) *cobra.Command {
	p := &historyPlace{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "backup [--config FILE | --data DIR] TARGET",
		Short: "Copy the history, while the hub runs or not",
		Long: "Copy the history to the new folder TARGET. The hub goes on meanwhile; the copy holds all updates that it had acknowledged when the copy\n" +
			"began. TARGET must not exist, or be empty. It gets its name when the copy is complete, on the disk, and has been opened for a check.\n\n" +
			"To restore, stop the hub and put the folder where history.path points.",
		Example: "  hub backup --config hub.yaml /backup/history-monday\n  hub backup --data .cinnabar copy --json",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return cli.Usagef("TARGET is empty: is a variable unset?")
			}
			return explainBackup(c.Context(), runBackup(c.Context(), env, p, args[0], asJSON))
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an object with", backupView{})
	return c
}

// backupView is what is shown of a copy. Its JSON is a contract.
type backupView struct {
	// Running says that a running hub gave the copy.
	Running bool `json:"running"`
	backup.Result
}

func runBackup(ctx context.Context, env cli.Env, p *historyPlace, target string, asJSON bool) (err error) {
	h, err := p.open(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	r, err := backup.Write(ctx, backup.Options{Dir: target, Source: h, Check: h.check})
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(env.Stdout, backupView{Running: h.running, Result: r})
	}
	what := count(r.Stats.Events, "update")
	if n := r.Stats.SubscriptionEvents; n > 0 {
		what += " and " + count(n, "subscription event")
	}
	return lines(env.Stdout, fmt.Sprintf("Copied %s, %s in %s, to %s", what, humanBytes(r.Bytes), count(int64(r.Files), "file"), r.Dir))
}

// check opens a copy of the history and reads all of it.
func (h *openHistory) check(ctx context.Context, dir string) (history.Stats, error) {
	return historyapp.Check(ctx, h.driver, dir)
}

// explainBackup says what to do when a copy failed.
func explainBackup(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		// Not as the context's error, which would count as a wish that was fulfilled.
		return &cli.Error{Code: cli.ExitFailure, Err: errors.New("interrupted: there is no copy")}
	case errors.Is(err, backup.ErrNotEmpty):
		return &cli.Error{Code: cli.ExitUsage, Err: err, Hint: "name a folder that does not exist yet"}
	}
	if _, explained := errors.AsType[*cli.Error](err); explained {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &cli.Error{Code: cli.ExitFailure, Err: err, Hint: "the folder that TARGET goes into must be there"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EBUSY): // the latter of the root of a file system that is mounted there
		return &cli.Error{Code: cli.ExitFailure, Err: err, Hint: "the copy is made beside TARGET and renamed: name a new folder, in one that you may write to"}
	}
	return err
}
