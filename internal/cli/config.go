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
	// Reference gives the reference.
	Reference func() (string, error)
}

// ConfigCommand is the verb config with check, print and doc.
func ConfigCommand(env Env, v ConfigVerbs) *cobra.Command {
	var path string
	c := &cobra.Command{Use: "config", Short: "Check, print and explain the configuration", Args: cobra.NoArgs}
	check := &cobra.Command{
		Use: "check --config FILE", Short: "Say whether the configuration and the files it names are right", Args: cobra.NoArgs,
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
		Use: "print --config FILE", Short: "Print the effective configuration, with the origin of what is not default", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, show, err := v.Load(config.Source{Path: path, Environ: env.Environ})
			if err != nil {
				return ConfigError(err, path)
			}
			return printText(env, show)
		},
	}
	doc := &cobra.Command{
		Use: "doc", Short: "Print the reference: every key with its meaning", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return printText(env, v.Reference) },
	}
	for _, sub := range []*cobra.Command{check, show} {
		sub.Flags().StringVar(&path, "config", "", "configuration `FILE`; without it the environment alone")
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
