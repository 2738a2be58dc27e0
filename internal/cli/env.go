package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes, stable for scripts.
const (
	ExitOK      = 0
	ExitFailure = 1 // the command ran and failed
	ExitUsage   = 2 // the command line or the configuration is wrong
	ExitRefused = 3 // a server refused the request (401, 403 or 429), or the configuration does: a command does not change what it sets
)

// Env is what a command may touch of its process.
type Env struct {
	Args       []string // without the program's name
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Environ    []string
	Executable string // absolute path of the running program
	Version    string
}

// Getenv gives the value of a variable, or "".
func (e Env) Getenv(name string) string {
	for _, kv := range e.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Error is an error with its exit code and, when there is one, a line that says what to do.
type Error struct {
	Code int
	Hint string
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usage marks an error as one of the command line or the configuration.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: ExitUsage, Err: err}
}

// Usagef makes such an error.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Finish gives the error of a command that was to do one thing and end. Where the context ended first it failed, though to Execute, which
// knows servers too, that would look like a wish that was fulfilled.
func Finish(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	interrupted := &Error{Code: ExitFailure, Err: errors.New("interrupted")}
	if e, ok := errors.AsType[*Error](err); ok {
		interrupted.Hint = e.Hint
	}
	return interrupted
}

// Execute runs a command tree and gives the exit code. It prints the error, once, with its hint.
func Execute(ctx context.Context, env Env, root *cobra.Command) int {
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = env.Version
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &Error{Code: ExitUsage, Err: err, Hint: seeHelp(c)}
	})
	root.InitDefaultCompletionCmd(env.Args...)
	refuseUnknown(root)
	failed, err := root.ExecuteContextC(ctx)
	if err == nil || errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return ExitOK
	}
	code, hint := ExitFailure, ""
	if e, ok := errors.AsType[*Error](err); ok {
		code, hint = e.Code, e.Hint
	} else if isCobraUsage(err) {
		code, hint = ExitUsage, seeHelp(failed)
	}
	_, _ = fmt.Fprintf(env.Stderr, "%s: %v\n", root.Name(), err)
	if hint != "" {
		_, _ = fmt.Fprintf(env.Stderr, "  hint: %s\n", hint)
	}
	return code
}

// seeHelp is the hint of a command line that its command does not understand.
func seeHelp(c *cobra.Command) string { return fmt.Sprintf("see '%s --help'", c.CommandPath()) }

// refuseUnknown makes the commands that only hold others refuse a word that names none of them. Cobra by itself prints the help
// and ends with 0, so that a script would not notice a typing mistake.
func refuseUnknown(c *cobra.Command) {
	for _, sub := range c.Commands() {
		refuseUnknown(sub)
		if sub.HasSubCommands() && !sub.Runnable() {
			sub.Args, sub.DisableFlagsInUseLine = cobra.NoArgs, true
			sub.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// isCobraUsage recognises the errors that cobra makes itself, which have no type.
func isCobraUsage(err error) bool {
	for _, p := range []string{"unknown command", "accepts ", "requires ", "required flag", "if any flags in the group"} {
		if strings.HasPrefix(err.Error(), p) {
			return true
		}
	}
	return false
}

// VersionCommand prints the version.
func VersionCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(env.Stdout, env.Version)
			return err
		},
	}
}

// ProcessEnv gives the environment of the running process.
func ProcessEnv(version string) Env {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0] // it is printed, and that is what was typed
	}
	return Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Executable: executable, Version: version,
	}
}

// Quiet is the logger of a command that works once: what is wrong is returned, and printed once.
func Quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
