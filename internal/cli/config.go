package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/config"
)

// ConfigVerbs is what the commands about one binary's configuration need.
type ConfigVerbs struct {
	// Load loads and validates, and gives what checks the files that the configuration names and what prints it.
	Load func(config.Source) (check func() error, show func() (string, error), err error)
	// JSON loads and validates, and prints as JSON; nil: print has no --json.
	JSON func(config.Source) (string, error)
	// Reference gives the reference.
	Reference func() (string, error)
}

// ConfigCommand is the verb config with check, print and doc.
func ConfigCommand(env Env, v ConfigVerbs) *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{Use: "config", Short: "Check, print and explain the configuration", Args: cobra.NoArgs}
	check := &cobra.Command{
		Use: "check --config FILE", Short: "Say whether the configuration and the files it names are right", Args: cobra.NoArgs,
		Long: "Say whether the configuration and the files it names are right: certificates, keys, policies. It opens no store and no port, so it\n" +
			"can be run beside the server, before it is reloaded.",
		RunE: func(*cobra.Command, []string) error {
			check, _, err := v.Load(config.Source{Path: path, Environ: env.Environ})
			if err != nil {
				return ConfigError(err, path)
			}
			if err := check(); err != nil {
				return Usage(err)
			}
			_, err = fmt.Fprintln(env.Stdout, "the configuration is right")
			return err
		},
	}
	show := &cobra.Command{
		Use: "print --config FILE", Short: "Print the effective configuration, with the origin of each value", Args: cobra.NoArgs,
		Long: "Print the effective configuration: what the file, the environment and the defaults come to, each value with the one it came from.\n" +
			"Configuration names files with secrets and holds none, so the output holds none either.",
		RunE: func(*cobra.Command, []string) error {
			source := config.Source{Path: path, Environ: env.Environ}
			if asJSON {
				text, err := v.JSON(source)
				if err != nil {
					return ConfigError(err, path)
				}
				_, err = fmt.Fprint(env.Stdout, text)
				return err
			}
			_, show, err := v.Load(source)
			if err != nil {
				return ConfigError(err, path)
			}
			return printText(env, show)
		},
	}
	doc := &cobra.Command{
		Use: "doc", Short: "Print the reference: every key with its meaning", Args: cobra.NoArgs,
		Long: "Print the reference: a complete configuration with every key and its meaning. It is a configuration file that loads; edit it.",
		RunE: func(*cobra.Command, []string) error { return printText(env, v.Reference) },
	}
	for _, sub := range []*cobra.Command{check, show} {
		sub.Flags().StringVar(&path, "config", "", "configuration `FILE`; without it the environment alone")
		if err := sub.MarkFlagFilename("config", "yaml", "yml"); err != nil {
			panic(err) // the flag is there: it was added above
		}
	}
	if v.JSON != nil {
		show.Flags().BoolVar(&asJSON, "json", false, "print JSON")
		show.Long += "\n\nWith --json it prints an object: for each key, as its dotted path, an object with value and origin (default, file, environment)."
	}
	for _, sub := range []*cobra.Command{check, show, doc} {
		sub.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.AddCommand(check, show, doc)
	return c
}

// ConfigError marks an error of loading the configuration at path, which may be empty.
func ConfigError(err error, path string) error {
	e := &Error{Code: ExitUsage, Err: err}
	if path == "" {
		e.Hint = "without --config FILE the configuration is what the environment says"
	}
	return e
}

func printText(env Env, f func() (string, error)) error {
	text, err := f()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(env.Stdout, text)
	return err
}
