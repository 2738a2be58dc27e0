package authzcli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
)

func clientCommand(env cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "client", Short: "Manage the applications that get tokens", Args: cobra.NoArgs}
	c.AddCommand(clientCreateCommand(env), clientListCommand(env), clientDeleteCommand(env))
	return c
}

// clientView is what is shown of a client. Secrets and keys never are.
type clientView struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	AuthMethod   string    `json:"auth_method"`
	GrantTypes   []string  `json:"grant_types"`
	RedirectURIs []string  `json:"redirect_uris"`
	Origins      []string  `json:"origins"`
	SkipConsent  bool      `json:"skip_consent"`
	Broker       bool      `json:"broker"`
	Static       bool      `json:"static"`
	Disabled     bool      `json:"disabled"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
}

func viewClient(c store.Client) clientView {
	v := clientView{
		ID: c.ID, Name: c.Name, AuthMethod: c.AuthMethod, GrantTypes: nonNil(c.GrantTypes), RedirectURIs: nonNil(c.RedirectURIs),
		Origins: nonNil(c.Origins), SkipConsent: c.SkipConsent, Broker: c.Broker, Static: c.Static, Disabled: c.Disabled,
	}
	if !c.Static { // one of the configuration has no birth
		v.CreatedAt = c.CreatedAt.UTC()
	}
	return v
}

func clientListCommand(env cli.Env) *cobra.Command {
	p := &place{}
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the clients", Args: cobra.NoArgs,
		Long: "List the clients: those of the configuration, as the server took them over at its last start or reload, and those made by command.\n" +
			"Secrets are not kept and cannot be shown.",
		Example:           "  authz client list --data .cinnabar",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.with(c.Context(), env, func(d *desk) error {
				clients, err := d.core.Store.ListClients(c.Context())
				if err != nil {
					return err
				}
				return printClients(env, clients, asJSON)
			})
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an array of objects with", clientView{})
	return c
}

func printClients(env cli.Env, clients []store.Client, asJSON bool) error {
	views := make([]clientView, 0, len(clients))
	for _, c := range clients {
		views = append(views, viewClient(c))
	}
	if asJSON {
		return cli.PrintJSON(env.Stdout, views)
	}
	rows := make([][]string, 0, len(views))
	for _, v := range views {
		from := "command"
		if v.Static {
			from = "configuration"
		}
		if v.Disabled {
			from += ", disabled"
		}
		rows = append(rows, []string{v.ID, v.AuthMethod, strings.Join(v.GrantTypes, ","), from, v.Name})
	}
	return printTable(env.Stdout, []string{"ID", "AUTHENTICATION", "GRANT TYPES", "FROM", "NAME"}, rows)
}

func clientDeleteCommand(env cli.Env) *cobra.Command {
	p := &place{}
	var asJSON bool
	c := &cobra.Command{
		Use: "delete ID", Short: "Delete a client and revoke all it got", Args: cobra.ExactArgs(1),
		Long: "Delete a client. All its grants and tokens are revoked, and streams that were opened with them end within a second at a hub that\n" +
			"follows this server's revocations. A client of the configuration is refused (exit code 3): it would come back.",
		Example: "  authz client delete --config authz.yaml c_2zqvzc5m3kx7w4ta",
		ValidArgsFunction: p.completeFrom(env, clientIDs(func(c store.Client) bool {
			return !c.Static
		})),
		RunE: func(c *cobra.Command, args []string) error {
			return p.with(c.Context(), env, func(d *desk) error { return d.deleteClient(c.Context(), env, args[0], asJSON) })
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an object with", outcome{})
	return c
}

func (d *desk) deleteClient(ctx context.Context, env cli.Env, id string, asJSON bool) error {
	err := d.admin.DeleteClient(ctx, id)
	switch {
	case errors.Is(err, as.ErrStatic), errors.Is(err, store.ErrNotFound) && d.configured(id):
		return staticClient(id)
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("there is no client %q", id)
	case err != nil:
		return err
	}
	return outcome{"client", id}.print(env, "deleted", asJSON)
}

// configured says whether the configuration has a client with this id, whether or not a server has read it yet.
func (d *desk) configured(id string) bool {
	for _, c := range d.conf.Clients {
		if c.ID == id {
			return true
		}
	}
	return false
}

// staticClient refuses to change a client of the configuration.
func staticClient(id string) error {
	return &cli.Error{
		Code: cli.ExitRefused,
		Err:  fmt.Errorf("the client %q belongs to the configuration, and a command does not change it", id),
		Hint: "change clients in the configuration file and reload the server (SIGHUP)",
	}
}

// policyHint says that a new client may get nothing yet, when that is so.
func (d *desk) policyHint(c store.Client) string {
	alone := !slices.Contains(c.GrantTypes, "authorization_code")
	for _, p := range d.conf.Policies {
		if len(p.When.Clients) > 0 && !slices.Contains(p.When.Clients, c.ID) {
			continue
		}
		if alone && len(p.When.Roles)+len(p.When.Users) > 0 {
			continue
		}
		return ""
	}
	return "no policy of the configuration applies to it, so it is granted nothing yet"
}
