package hubcli

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/devapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/datadir"
	"github.com/cinnabar-hub/cinnabar/internal/devcert"
)

const defaultData = ".cinnabar"

type devOptions struct {
	app      devapp.Options
	logLevel string
	trust    bool
	untrust  bool
}

func devCommand(env cli.Env) *cobra.Command {
	o := &devOptions{}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: hub, login, start page",
		Long: "Run hub, authorization server, browser login and a start page in one process, for development on this machine.\n" +
			"It listens on loopback only, on HTTPS and on plain HTTP, which are two sites. Data is kept in --data.",
		Example: "  hub dev\n  hub dev --ephemeral\n  hub dev --trust",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context(), env, c.Flags().Changed("data")) },
	}
	f := c.Flags()
	f.StringVar(&o.app.Listen, "listen", "localhost:8443", "`ADDR` of the HTTPS face")
	f.StringVar(&o.app.HTTP, "http", "localhost:8080", "`ADDR` of the plain HTTP face")
	f.StringVar(&o.app.Ops, "ops", "", "`ADDR` for /livez, /readyz and /metrics (default: none)")
	f.StringVar(&o.app.DataDir, "data", defaultData, "`DIR` where everything is kept")
	f.BoolVar(&o.app.Ephemeral, "ephemeral", false, "start with nothing and keep nothing; without --data in a temporary folder")
	f.BoolVar(&o.app.InsecureCookie, "insecure-cookie", false, "give the plain face a cookie without Secure, for Safari")
	f.StringArrayVar(&o.app.CORSOrigins, "cors-origin", nil, "allow pages of this `ORIGIN` besides the usual ports on localhost, may repeat")
	f.StringVar(&o.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn or error")
	f.BoolVar(&o.trust, "trust", false, "make this machine trust the development certificate, and end")
	f.BoolVar(&o.untrust, "untrust", false, "undo --trust, and end")
	c.MarkFlagsMutuallyExclusive("trust", "untrust", "ephemeral")
	return c
}

func (o *devOptions) run(ctx context.Context, env cli.Env, dataGiven bool) error {
	if o.trust || o.untrust {
		return o.changeTrust(env)
	}
	if o.app.Ephemeral && !dataGiven {
		o.app.DataDir = ""
	}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal is closed, and nobody can press Ctrl-C any more
		defer stop()
	}
	logger, err := app.NewLogger(env.Stderr, config.Log{Level: o.logLevel, Format: "text"})
	if err != nil {
		return cli.Usage(err)
	}
	o.app.Executable, o.app.Version, o.app.Logger = env.Executable, env.Version, logger
	dev, err := devapp.New(ctx, o.app)
	if errors.Is(err, devapp.ErrOptions) {
		return cli.Usage(err)
	}
	if errors.Is(err, datadir.ErrLocked) {
		return &cli.Error{Code: cli.ExitFailure, Err: err, Hint: "another 'hub dev' keeps its data there: stop it, or give --data another folder"}
	}
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- dev.Run(ctx) }()
	select {
	case err := <-done: // it could not listen
		return err
	case <-dev.Ready():
	}
	if err := banner(env, dev.Info()); err != nil {
		logger.WarnContext(ctx, "banner not printed")
	}
	return <-done
}

func (o *devOptions) changeTrust(env cli.Env) error {
	d, err := datadir.Open(o.app.DataDir)
	if err != nil {
		return &cli.Error{Code: cli.ExitUsage, Err: err, Hint: "run 'hub dev' once first: it makes the certificate"}
	}
	if o.untrust {
		if err := devcert.Untrust(d.TLSDir()); err != nil {
			return err
		}
		return lines(env.Stdout, "The development certificate is no longer trusted.")
	}
	if err := devcert.Trust(d.TLSDir()); err != nil {
		return err
	}
	return lines(env.Stdout, "The development certificate is trusted, for localhost alone. Restart the browser. Undo with: hub dev --untrust")
}

// banner says what a first user needs, and no secret.
func banner(env cli.Env, i devapp.Info) error {
	kept := "kept in " + i.DataDir
	if i.Ephemeral {
		kept = "ephemeral, in " + i.DataDir
	}
	text := []string{
		"",
		"  Cinnabar " + env.Version + "  development server, for this machine only",
		"",
		"  Start page   " + i.StartPage + "   (plain: " + i.PlainStartPage + ")",
		"  Hub          " + i.HubURL,
		"  Issuer       " + i.Issuer,
		"  Demo user    " + i.DemoUser + "   (one click signs in)",
		"  Data         " + kept,
		"",
	}
	if !i.Ephemeral {
		text = append(text, "  If the browser warns of the certificate: "+i.Trust, "")
	}
	text = append(text, "  Try it in another terminal, in any folder:", "")
	for _, c := range i.Commands {
		text = append(text, "  # "+c.Title, "  "+c.Line, "")
	}
	return lines(env.Stdout, append(text, "  Stop with Ctrl-C. Why a request was refused is logged below.", "")...)
}
