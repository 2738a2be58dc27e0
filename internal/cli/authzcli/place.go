package authzcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/as"
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
	c.Flags().StringVar(&p.config, "config", "", "configuration `FILE` of the authorization server")
	c.Flags().StringVar(&p.data, "data", "", "data folder `DIR` of 'hub dev'")
	c.MarkFlagsMutuallyExclusive("config", "data")
}

// load reads the configuration of the place.
func (p *place) load(env cli.Env) (config.Authz, error) {
	path := p.config
	switch {
	case p.data != "":
		d, err := datadir.Open(p.data)
		if err != nil {
			return config.Authz{}, &cli.Error{Code: cli.ExitUsage, Err: err, Hint: "start 'hub dev --data " + p.data + "' first"}
		}
		path = d.AuthzConfigFile()
	case path == "":
		return config.Authz{}, cli.Usagef("give --config FILE or --data DIR")
	}
	l, err := config.LoadAuthzOffline(config.Source{Path: path, Environ: env.Environ})
	if err != nil {
		return config.Authz{}, cli.Usage(err)
	}
	return l.Value, nil
}

// core opens the store of the place, as a command does: it makes and migrates nothing.
func (p *place) core(ctx context.Context, c config.Authz) (*authzapp.Core, error) {
	core, err := authzapp.OpenCore(ctx, authzapp.CoreOptions{
		StorePath: string(c.Store.Path), SecretPath: string(c.Store.SecretFile), Logger: cli.Quiet(),
	})
	if err != nil {
		err = fmt.Errorf("open the authorization server's store: %w", err)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &cli.Error{Code: cli.ExitFailure, Err: err, Hint: "start the server once first: it makes the store"}
		}
		return nil, err
	}
	return core, nil
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
