package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/config"
)

// ConfigVerbs is what the commands about one binary's configuration need.
type ConfigVerbs struct {
	// Load loads and validates.
	Load func(config.Source) (LoadedConfig, error)
	// Reference gives the reference.
	Reference func() (string, error)
}

// LoadedConfig is a configuration that was loaded.
type LoadedConfig struct {
	// Check checks the files that it names.
	Check func() error
	// YAML and JSON print it.
	YAML, JSON func() (string, error)
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
			loaded, err := v.Load(config.Source{Path: path, Environ: env.Environ})
			if err != nil {
				return ConfigError(err, path)
			}
			if err := loaded.Check(); err != nil {
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
			loaded, err := v.Load(config.Source{Path: path, Environ: env.Environ})
			if err != nil {
				return ConfigError(err, path)
			}
			if asJSON {
				return printText(env, loaded.JSON)
			}
			return printText(env, loaded.YAML)
		},
	}
	doc := &cobra.Command{
		Use: "doc", Short: "Print the reference: every key with its meaning", Args: cobra.NoArgs,
		Long: "Print the reference: a complete configuration with every key and its meaning. It is a configuration file that loads; edit it.",
		RunE: func(*cobra.Command, []string) error { return printText(env, v.Reference) },
	}
	for _, sub := range []*cobra.Command{check, show} {
		ConfigFlag(sub, &path, ConfigUsage)
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	show.Long += "\n\nWith --json it prints an object: for each key, as its dotted path, an object with value and origin (default, file, environment)."
	for _, sub := range []*cobra.Command{check, show, doc} {
		sub.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.AddCommand(check, show, doc)
	return c
}

// ConfigUsage is the usage of --config for commands that can do without the file.
const ConfigUsage = "configuration `FILE`; without it the environment alone"

// ConfigFlag adds --config to a command, with the completion of its files.
func ConfigFlag(c *cobra.Command, to *string, usage string) {
	c.Flags().StringVar(to, "config", "", usage)
	if err := c.MarkFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err) // the flag is there: it was added above
	}
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
