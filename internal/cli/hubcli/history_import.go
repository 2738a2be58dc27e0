package hubcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func importCommand(env cli.Env) *cobra.Command {
	p := &historyPlace{}
	var from config.History
	var fromPath string
	var asJSON bool
	c := &cobra.Command{
		Use:   "import --from DRIVER --from-path PATH [--config FILE | --data DIR]",
		Short: "Copy the updates of another driver's history",
		Long: "Copy all updates of the history in the folder PATH, which the driver DRIVER keeps, to the history that the configuration names, and the events\n" +
			"of active subscriptions among them: with their ids, in their order and with the times at which they were published, so that readers go\n" +
			"on with the cursors they have. Who was subscribed when the old hub ended is copied too, and the next one reports the end. No hub may run\n" +
			"with either. The history that the configuration names is made where there is none; it must be one that never had an update. Its limits\n" +
			"hold for what it gets. The one in PATH is read alone, and not changed.",
		Example: "  hub history import --from segments --from-path data/history --config hub.yaml\n" +
			"  hub history import --from bolt --from-path /var/lib/cinnabar/bolt --config hub.yaml --json",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			defer func() { err = cli.Finish(c.Context(), err) }()
			from.Path = config.File(fromPath)
			v, err := p.importFrom(c.Context(), env, from)
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(env.Stdout, v)
			}
			return lines(env.Stdout, v.text())
		},
	}
	p.flags(c)
	c.Flags().StringVar(&from.Driver, "from", "", "`DRIVER` of the history to copy: "+strings.Join(durableDrivers(), " or "))
	c.Flags().StringVar(&fromPath, "from-path", "", "folder `PATH` of the history to copy")
	_ = c.MarkFlagRequired("from") // the flags are there
	_ = c.MarkFlagRequired("from-path")
	_ = c.MarkFlagDirname("from-path")
	_ = c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(durableDrivers(), cobra.ShellCompDirectiveNoFileComp))
	cli.JSONFlag(c, &asJSON, "an object with", importView{})
	return c
}

// durableDrivers are the drivers whose histories are in folders.
func durableDrivers() []string {
	return slices.DeleteFunc(config.HistoryDrivers(), func(d string) bool { return !config.History{Driver: d}.Durable() })
}

// importView is what is shown of events that were copied. Its JSON is a contract.
type importView struct {
	FromDriver string `json:"from_driver"`
	FromPath   string `json:"from_path"`
	Driver     string `json:"driver"`
	Path       string `json:"path"`
	historyapp.Imported
}

func (v *importView) text() string {
	text := fmt.Sprintf("Imported %s from %s in %s to %s in %s", count(v.Events, "event"), v.FromDriver, v.FromPath, v.Driver, v.Path)
	if v.Kept < v.Events {
		text += fmt.Sprintf("; its limits keep %s of them", grouped(v.Kept))
	}
	return text
}

func (p *historyPlace) importFrom(ctx context.Context, env cli.Env, from config.History) (importView, error) {
	if !from.Durable() {
		return importView{}, cli.Usagef("--from: %q is not %s", from.Driver, strings.Join(durableDrivers(), " or "))
	}
	if from.Path == "" {
		return importView{}, cli.Usagef("--from-path is empty: is a variable unset?")
	}
	to, hub, _, err := p.reach(ctx, env)
	if err != nil {
		return importView{}, err
	}
	v := importView{FromDriver: from.Driver, FromPath: string(from.Path), Driver: to.Driver, Path: folderOf(to)}
	if hub != nil {
		return v, &cli.Error{Code: cli.ExitFailure, Err: fmt.Errorf("a hub is running with the history in %s", v.Path), Hint: "stop it first"}
	}
	v.Imported, err = historyapp.Import(ctx, from, to, nil)
	return v, explainImport(&v, err)
}

// explainImport says what to do when an import failed.
func explainImport(v *importView, err error) error {
	if err == nil {
		return nil
	}
	e := &cli.Error{Code: cli.ExitFailure, Err: err}
	place := v.Path
	if _, ok := errors.AsType[*historyapp.SourceError](err); ok {
		place = v.FromPath
	}
	switch {
	case errors.Is(err, historyapp.ErrSamePlace):
		e.Code, e.Hint = cli.ExitUsage, "give history.path of the configuration a folder of its own, and --from-path the old one"
	case errors.Is(err, historyapp.ErrVolatile):
		e.Code, e.Hint = cli.ExitUsage, "set history.driver of the configuration to "+strings.Join(durableDrivers(), " or ")
	case errors.Is(err, history.ErrNotEmpty):
		e.Code, e.Hint = cli.ExitUsage, "the history in "+v.Path+" has, or had, updates: name a folder that does not exist yet as history.path"
	case errors.Is(err, history.ErrLocked):
		e.Hint = "a process has the history in " + place + " open: stop the hub first"
	case errors.Is(err, fs.ErrNotExist) && place == v.FromPath:
		e.Err = fmt.Errorf("there is no history in %s: %w", place, err)
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "run this as the user that the hub runs as"
	case errors.Is(err, history.ErrCorrupt):
		e.Hint = "look at the disk, and import a copy that hub backup has made"
	}
	if v.Events > 0 {
		e.Hint = strings.TrimPrefix(e.Hint+"; ", "; ") + v.Path + " holds a part of the updates: remove it before you try again"
	}
	return e
}
