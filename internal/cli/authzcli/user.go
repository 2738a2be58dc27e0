package authzcli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
)

// eventUserAdded is the audit event of a person added by command.
const eventUserAdded = "user_added"

// maxPasswordBytes bounds what is read as a password.
const maxPasswordBytes = 4096

func userCommand(env cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "user", Short: "Manage the people who can sign in", Args: cobra.NoArgs}
	c.AddCommand(userAddCommand(env), userListCommand(env))
	return c
}

type userAddOptions struct {
	place      place
	roles      []string
	attributes map[string]string
	stdin      bool
	json       bool
}

func userAddCommand(env cli.Env) *cobra.Command {
	o := &userAddOptions{}
	c := &cobra.Command{
		Use:   "add --password-stdin USERNAME",
		Short: "Add a person",
		Long: "Add a person who signs in with a user name and a password, and print the subject identifier. The password is the first line\n" +
			"of standard input; it is never an argument, since other users can see those.",
		Example: "  authz user add --data .cinnabar --password-stdin alice < password.txt",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c.Context(), env, args[0]) },

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.place.flags(c)
	c.Flags().BoolVar(&o.stdin, "password-stdin", false, "read the password from standard input")
	c.Flags().StringArrayVar(&o.roles, "role", nil, "`ROLE` that policies can name; may repeat")
	c.Flags().StringToStringVar(&o.attributes, "attribute", nil, "`NAME=VALUE` that policies can use as {{user.NAME}}; may repeat")
	c.Flags().Lookup("attribute").DefValue = "" // help would show a default of []
	cli.JSONFlag(c, &o.json, "an object with", userView{})
	return c
}

func (o *userAddOptions) run(ctx context.Context, env cli.Env, username string) error {
	if !o.stdin {
		return cli.Usagef("give the password on standard input, with --password-stdin")
	}
	password, err := readPassword(env.Stdin)
	if err != nil {
		return err
	}
	return o.place.with(ctx, env, func(d *desk) error {
		a, err := d.core.Accounts.Add(ctx, account.Draft{Username: username, Password: password, Roles: o.roles, Attributes: o.attributes})
		switch {
		case errors.Is(err, store.ErrExists):
			return fmt.Errorf("there is a user %q already", username)
		case errors.Is(err, account.ErrUsername) || errors.Is(err, account.ErrPassword):
			return cli.Usage(err)
		case err != nil:
			return err
		}
		if err := d.audit(ctx, store.AuditRecord{At: time.Now(), Event: eventUserAdded, Subject: a.ID}); err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(env.Stdout, viewUser(a))
		}
		_, err = fmt.Fprintln(env.Stdout, a.ID)
		return err
	})
}

func readPassword(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, maxPasswordBytes)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read password: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return "", cli.Usagef("the password is empty")
	}
	return password, nil
}

func userListCommand(env cli.Env) *cobra.Command {
	p := &place{}
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the people", Args: cobra.NoArgs,
		Long:              "List the people who can sign in, with their subject identifiers: the sub claim of their tokens.",
		Example:           "  authz user list --data .cinnabar",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.with(c.Context(), env, func(d *desk) error {
				accounts, err := d.core.Store.ListAccounts(c.Context())
				if err != nil {
					return err
				}
				return printUsers(env, accounts, asJSON)
			})
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an array of objects with", userView{})
	return c
}

// userView is what is shown of an account.
type userView struct {
	Subject    string            `json:"sub"`
	Username   string            `json:"username"`
	Roles      []string          `json:"roles"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Demo       bool              `json:"demo,omitempty"`
	Disabled   bool              `json:"disabled,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
}

func viewUser(a store.Account) userView {
	return userView{
		Subject: a.ID, Username: a.Username, Roles: nonNil(a.Roles), Attributes: a.Attributes,
		Demo: a.Demo, Disabled: a.Disabled, CreatedAt: a.CreatedAt.UTC(),
	}
}

func printUsers(env cli.Env, accounts []store.Account, asJSON bool) error {
	views := make([]userView, 0, len(accounts))
	for _, a := range accounts {
		views = append(views, viewUser(a))
	}
	if asJSON {
		return cli.PrintJSON(env.Stdout, views)
	}
	rows := make([][]string, 0, len(views))
	for _, v := range views {
		state := "active"
		switch {
		case v.Disabled:
			state = "disabled"
		case v.Demo:
			state = "demo"
		}
		rows = append(rows, []string{v.Username, v.Subject, strings.Join(v.Roles, ","), state})
	}
	return printTable(env.Stdout, []string{"USERNAME", "SUB", "ROLES", "STATE"}, rows)
}
