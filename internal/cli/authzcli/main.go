package authzcli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
)

// Main runs the authz binary and gives its exit code.
func Main(ctx context.Context, env cli.Env) int {
	root := &cobra.Command{
		Use:   "authz",
		Short: "The Cinnabar authorization server and the commands that manage it",
	}
	root.AddCommand(
		serveCommand(env), tokenCommand(env), clientCommand(env), grantCommand(env), userCommand(env), keyCommand(env), backupCommand(env),
		configCommand(env), cli.VersionCommand(env),
	)
	return cli.Execute(ctx, env, root)
}

func serveCommand(env cli.Env) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Run the authorization server",
		Long: "Run the authorization server with a configuration file, until SIGTERM or SIGINT. Every key can also be set in the\n" +
			"environment (" + config.AuthzEnvPrefix + "…). On SIGHUP it reads the configuration and the files it names again, and takes over clients,\n" +
			"policies, scopes, resources and token lifetimes; a configuration that is not right is refused as a whole.",
		Example: "  authz serve --config authz.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			hangups := cli.CatchHangups()
			defer hangups.Release()
			l, err := config.LoadAuthz(config.Source{Path: path, Environ: env.Environ})
			if err != nil {
				return cli.ConfigError(err, path)
			}
			logger, err := app.NewLogger(env.Stderr, l.Value.Log)
			if err != nil {
				return cli.Usage(err)
			}
			server, err := authzapp.New(c.Context(), l.Value, logger)
			if err != nil {
				return err
			}
			return hangups.Serve(c.Context(), server.Run, func(ctx context.Context) {
				l, err := config.LoadAuthz(config.Source{Path: path, Environ: env.Environ})
				if err == nil {
					err = server.Reload(ctx, l.Value)
				}
				cli.ReloadRefused(ctx, logger, err)
			})
		},
	}
	cli.ConfigFlag(c, &path, cli.ConfigUsage)
	return c
}

func configCommand(env cli.Env) *cobra.Command {
	return cli.ConfigCommand(env, cli.ConfigVerbs{
		Load: func(s config.Source) (cli.LoadedConfig, error) {
			l, err := config.LoadAuthz(s)
			if err != nil {
				return cli.LoadedConfig{}, err
			}
			return cli.LoadedConfig{
				Check: func() error { return authzapp.Check(l.Value, cli.Quiet()) },
				YAML:  func() (string, error) { return config.Print(l) },
				JSON:  func() (string, error) { return config.PrintJSON(l) },
			}, nil
		},
		Reference: config.ReferenceAuthz,
	})
}
