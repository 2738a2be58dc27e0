package hubcli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/hubapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
)

// Main runs the hub binary and gives its exit code.
func Main(ctx context.Context, env cli.Env) int {
	root := &cobra.Command{
		Use:   "hub",
		Short: "The Cinnabar Mercure hub",
		Long:  "A Mercure hub that brings its own authorization server. 'hub dev' starts everything on this machine.",
	}
	root.AddCommand(devCommand(env), serveCommand(env), cli.PublishCommand(env), cli.SubscribeCommand(env), HistoryCommand(env),
		BackupCommand(env), configCommand(env), cli.VersionCommand(env))
	return cli.Execute(ctx, env, root)
}

func serveCommand(env cli.Env) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Run the hub",
		Long: "Run the hub with a configuration file, until SIGTERM or SIGINT: then it refuses new requests and ends its streams over\n" +
			"the drain time. With authorization_server.bundled it runs the authorization server too. Every key can also be set in the\n" +
			"environment (" + config.HubEnvPrefix + "…). On SIGHUP it reads the configuration and the files it names again, and takes over issuers and\n" +
			"their keys, origins, the session broker, and the bundled server's clients, policies, scopes, resources and token lifetimes; a\n" +
			"configuration that is not right is refused as a whole.",
		Example: "  hub serve --config hub.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			hangups := cli.CatchHangups()
			defer hangups.Release()
			l, authz, err := load(config.Source{Path: path, Environ: env.Environ})
			if err != nil {
				return cli.ConfigError(err, path)
			}
			logger, err := app.NewLogger(env.Stderr, l.Value.Log)
			if err != nil {
				return cli.Usage(err)
			}
			hub, err := hubapp.New(c.Context(), l.Value, authz, logger)
			if err != nil {
				return err
			}
			return hangups.Serve(c.Context(), hub.Run, func(ctx context.Context) {
				l, authz, err := load(config.Source{Path: path, Environ: env.Environ})
				if err == nil {
					err = hub.Reload(ctx, l.Value, authz)
				}
				cli.ReloadRefused(ctx, logger, err)
			})
		},
	}
	cli.ConfigFlag(c, &path, cli.ConfigUsage)
	return c
}

// load loads the hub's configuration, and that of the bundled authorization server when there is one.
func load(s config.Source) (*config.Loaded[config.Hub], *config.Authz, error) {
	l, err := config.LoadHub(s)
	if err != nil || !l.Value.AuthorizationServer.Bundled {
		return l, nil, err
	}
	s.Path = string(l.Value.AuthorizationServer.ConfigFile)
	authz, err := config.LoadBundled(s, l.Value)
	if err != nil {
		return nil, nil, err
	}
	return l, &authz.Value, nil
}

func configCommand(env cli.Env) *cobra.Command {
	return cli.ConfigCommand(env, cli.ConfigVerbs{
		Load: func(s config.Source) (cli.LoadedConfig, error) {
			l, authz, err := load(s)
			if err != nil {
				return cli.LoadedConfig{}, err
			}
			return cli.LoadedConfig{
				Check: func() error {
					warnings, err := app.NewLogger(env.Stderr, config.Log{Level: "warn", Format: "text"})
					if err != nil {
						return err
					}
					return hubapp.Check(l.Value, authz, warnings)
				},
				YAML: func() (string, error) { return config.Print(l) },
				JSON: func() (string, error) { return config.PrintJSON(l) },
			}, nil
		},
		Reference: config.ReferenceHub,
	})
}

// lines prints lines.
func lines(w io.Writer, text ...string) error {
	for _, l := range text {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return nil
}
