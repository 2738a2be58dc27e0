package authzcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
)

// The states of a grant.
const (
	stateActive  = "active"
	stateExpired = "expired"
	stateRevoked = "revoked"
)

func grantState(g store.Grant, now time.Time) string {
	switch {
	case !g.RevokedAt.IsZero():
		return stateRevoked
	case !g.ExpiresAt.IsZero() && !now.Before(g.ExpiresAt):
		return stateExpired
	}
	return stateActive
}

func grantCommand(env cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "grant", Short: "See and revoke what people have granted to clients", Args: cobra.NoArgs}
	c.AddCommand(grantListCommand(env), grantRevokeCommand(env))
	return c
}

type grantListOptions struct {
	place  place
	user   string
	client string
	all    bool
	json   bool
}

func grantListCommand(env cli.Env) *cobra.Command {
	o := &grantListOptions{}
	c := &cobra.Command{
		Use: "list", Short: "List the grants in force, newest first", Args: cobra.NoArgs,
		Long: "List the grants in force, newest first: what a person allowed a client at a hub. A grant lasts as long as its tokens can be\n" +
			"renewed. Tokens of clients that act for themselves (client_credentials), and those minted by command, have no grant.",
		Example: "  authz grant list --data .cinnabar\n" +
			"  authz grant list --config authz.yaml --user alice --client spa --all --json",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.place.with(c.Context(), env, func(d *desk) error { return o.run(c.Context(), env, d) })
		},
	}
	o.place.flags(c)
	c.Flags().StringVar(&o.user, "user", "", "only those of this person: `USERNAME` or subject identifier")
	c.Flags().StringVar(&o.client, "client", "", "only those of the client `ID`")
	c.Flags().BoolVar(&o.all, "all", false, "those too that have expired or were revoked, while they are kept")
	cli.JSONFlag(c, &o.json, "an array of objects with", grantView{})
	must(
		c.RegisterFlagCompletionFunc("user", o.place.completeFrom(env, usernames)),
		c.RegisterFlagCompletionFunc("client", o.place.completeFrom(env, clientIDs(func(store.Client) bool { return true }))),
	)
	return c
}

// grantView is what is shown of a grant.
type grantView struct {
	ID        string          `json:"id"`
	State     string          `json:"state"`
	Issuer    string          `json:"issuer"`
	ClientID  string          `json:"client_id"`
	Subject   string          `json:"sub"`
	Username  string          `json:"username,omitempty"`
	SessionID string          `json:"sid,omitempty"`
	Resource  string          `json:"resource"`
	Details   json.RawMessage `json:"authorization_details"`
	CreatedAt time.Time       `json:"created_at"`
	ExpiresAt time.Time       `json:"expires_at,omitzero"`
	RevokedAt time.Time       `json:"revoked_at,omitzero"`
}

func (o *grantListOptions) run(ctx context.Context, env cli.Env, d *desk) error {
	filter := store.GrantFilter{ClientID: o.client}
	if o.user != "" {
		a, err := d.person(ctx, o.user)
		if err != nil {
			return err
		}
		filter.AccountID = a.ID
	}
	grants, err := d.core.Store.ListGrants(ctx, filter)
	if err != nil {
		return err
	}
	names, err := d.usernames(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	views := make([]grantView, 0, len(grants))
	for _, g := range grants {
		state := grantState(g, now)
		if state != stateActive && !o.all {
			continue
		}
		views = append(views, grantView{
			ID: g.ID, State: state, Issuer: g.Issuer, ClientID: g.ClientID, Subject: g.AccountID, Username: names[g.AccountID],
			SessionID: g.SessionID, Resource: g.Resource, Details: g.Details,
			CreatedAt: g.CreatedAt.UTC(), ExpiresAt: g.ExpiresAt.UTC(), RevokedAt: g.RevokedAt.UTC(),
		})
	}
	if o.json {
		return cli.PrintJSON(env.Stdout, views)
	}
	rows := make([][]string, 0, len(views))
	for _, v := range views {
		who := v.Username
		if who == "" {
			who = v.Subject
		}
		rows = append(rows, []string{v.ID, v.State, who, v.ClientID, moment(v.CreatedAt), moment(v.ExpiresAt), v.Resource})
	}
	return printTable(env.Stdout, []string{"ID", "STATE", "USER", "CLIENT", "CREATED", "EXPIRES", "RESOURCE"}, rows)
}

// person finds an account by its user name or its subject identifier.
func (d *desk) person(ctx context.Context, name string) (store.Account, error) {
	var a store.Account
	var err error
	if strings.HasPrefix(name, store.AccountIDPrefix) {
		a, err = d.core.Store.Account(ctx, name)
	} else {
		canonical, nerr := account.NormalizeUsername(name)
		if nerr != nil {
			return a, cli.Usage(nerr)
		}
		a, err = d.core.Store.AccountByUsername(ctx, canonical)
	}
	if errors.Is(err, store.ErrNotFound) {
		return a, fmt.Errorf("there is no user %q", name)
	}
	return a, err
}

// usernames gives the names of all people by their identifiers.
func (d *desk) usernames(ctx context.Context) (map[string]string, error) {
	accounts, err := d.core.Store.ListAccounts(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(accounts))
	for _, a := range accounts {
		names[a.ID] = a.Username
	}
	return names, nil
}

func grantRevokeCommand(env cli.Env) *cobra.Command {
	p := &place{}
	var asJSON bool
	c := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a grant with all its tokens", Args: cobra.ExactArgs(1),
		Long: "Revoke a grant: its refresh token works no more, its access tokens are refused, and streams that were opened with them end\n" +
			"within a second at a hub that follows this server's revocations. The person can grant it anew. Revoking twice is harmless.",
		Example:           "  authz grant revoke --config authz.yaml g_4lmK0mCFRkyPcHLWnKFG7A",
		ValidArgsFunction: p.completeFrom(env, grantIDs),
		RunE: func(c *cobra.Command, args []string) error {
			return p.with(c.Context(), env, func(d *desk) error {
				err := d.admin.RevokeGrant(c.Context(), args[0])
				if errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("there is no grant %q", args[0])
				}
				if err != nil {
					return err
				}
				return outcome{"grant", args[0]}.print(env, "revoked", asJSON)
			})
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an object with", outcome{})
	return c
}
