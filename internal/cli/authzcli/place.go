package authzcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/datadir"
)

// place says which authorization server a command works on.
type place struct {
	config string
	data   string
}

func (p *place) flags(c *cobra.Command) {
	cli.ConfigFlag(c, &p.config, "configuration `FILE` of the authorization server")
	c.Flags().StringVar(&p.data, "data", "", "data folder `DIR` of 'hub dev'")
	c.MarkFlagsMutuallyExclusive("config", "data")
	must(c.MarkFlagDirname("data"))
}

// must stops the program for mistakes in how a command is built, which show at its first start.
func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
}

// load reads the configuration of the place.
func (p *place) load(env cli.Env) (config.Authz, error) {
	if p.data != "" {
		return p.loadData()
	}
	if p.config == "" {
		return config.Authz{}, cli.Usagef("give --config FILE or --data DIR")
	}
	l, err := config.LoadAuthzOffline(config.Source{Path: p.config, Environ: env.Environ})
	if err != nil {
		return config.Authz{}, cli.Usage(err)
	}
	return l.Value, nil
}

// loadData reads the configuration that 'hub dev' has written, which takes nothing from the environment.
func (p *place) loadData() (config.Authz, error) {
	d, err := datadir.Open(p.data)
	if err != nil {
		return config.Authz{}, cli.DataError(p.data, err)
	}
	l, err := config.LoadAuthzOffline(config.Source{Path: d.AuthzConfigFile()})
	if err != nil {
		return config.Authz{}, cli.DataError(p.data, err)
	}
	return l.Value, nil
}

// desk is an authorization server's store with what commands do to it.
type desk struct {
	conf  config.Authz
	core  *authzapp.Core
	admin *as.Admin
}

// with opens the store of the place, does something to it, and closes it.
func (p *place) with(ctx context.Context, env cli.Env, do func(*desk) error) error {
	conf, err := p.load(env)
	if err != nil {
		return err
	}
	return p.withStore(ctx, env, conf, do)
}

// withStore is with for a configuration that is loaded already. As all commands do, it makes and migrates nothing.
func (p *place) withStore(ctx context.Context, env cli.Env, conf config.Authz, do func(*desk) error) (err error) {
	defer func() { err = cli.Finish(ctx, err) }()
	logger, err := app.NewLogger(env.Stderr, config.Log{Level: "error", Format: "text"})
	if err != nil {
		return err
	}
	core, err := authzapp.OpenCore(ctx, authzapp.CoreOptions{
		StorePath: string(conf.Store.Path), SecretPath: string(conf.Store.SecretFile), Logger: cli.Quiet(),
	})
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, core.Close()) }()
	admin := as.NewAdmin(core.Store, as.AdminOptions{Issuer: conf.Issuer, Actor: operator(), Logger: logger})
	return do(&desk{conf: conf, core: core, admin: admin})
}

// storeError says what to do about a store that cannot be opened.
func storeError(err error) error {
	e := &cli.Error{Code: cli.ExitFailure, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Hint = "start the server once first: it makes the store"
	case errors.Is(err, store.ErrSchema):
		e.Hint = "use the authz program of the same version as the server; a command never changes the schema"
	case errors.Is(err, store.ErrSecret):
		e.Hint = "store.secret_file must be the one that belongs to store.path"
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "run this as the user that the server runs as"
	}
	return e
}

// audit records what a command did.
func (d *desk) audit(ctx context.Context, r store.AuditRecord) error {
	r.Actor, r.Issuer = operator(), d.conf.Issuer
	if err := d.core.Store.Audit(ctx, r); err != nil {
		return fmt.Errorf("write audit record: %w", err)
	}
	return nil
}

// operator names the user of the operating system, for the audit trail.
func operator() string {
	u, err := user.Current()
	if err != nil {
		return "os:unknown"
	}
	return "os:" + u.Username
}

// resourceOf picks the resource a token is for.
func resourceOf(c config.Authz, id string) (as.Resource, error) {
	if id == "" && len(c.Resources) > 1 {
		return as.Resource{}, cli.Usagef("there are %d resources: choose one with --resource", len(c.Resources))
	}
	for _, r := range c.Resources {
		if id == "" || r.ID == id {
			return as.Resource{ID: r.ID, Name: r.Name, HubURL: r.HubURL}, nil
		}
	}
	return as.Resource{}, cli.Usagef("there is no resource %q in the configuration", id)
}
