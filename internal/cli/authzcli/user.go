package authzcli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, env, args[0]) },
	}
	o.place.flags(c)
	c.Flags().BoolVar(&o.stdin, "password-stdin", false, "read the password from standard input")
	c.Flags().StringArrayVar(&o.roles, "role", nil, "`ROLE` that policies can name; may repeat")
	c.Flags().StringToStringVar(&o.attributes, "attribute", nil, "`NAME=VALUE` that policies can use as {{user.NAME}}; may repeat")
	c.Flags().Lookup("attribute").DefValue = "" // help would show a default of []
	return c
}

func (o *userAddOptions) run(c *cobra.Command, env cli.Env, username string) (err error) {
	if !o.stdin {
		return cli.Usagef("give the password on standard input, with --password-stdin")
	}
	password, err := readPassword(env.Stdin)
	if err != nil {
		return err
	}
	conf, err := o.place.load(env)
	if err != nil {
		return err
	}
	core, err := o.place.core(c.Context(), conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, core.Close()) }()
	a, err := core.Accounts.Add(c.Context(), account.Draft{Username: username, Password: password, Roles: o.roles, Attributes: o.attributes})
	switch {
	case errors.Is(err, store.ErrExists):
		return &cli.Error{Code: cli.ExitFailure, Err: fmt.Errorf("there is a user %q already", username)}
	case errors.Is(err, account.ErrUsername) || errors.Is(err, account.ErrPassword):
		return cli.Usage(err)
	case err != nil:
		return err
	}
	err = core.Store.Audit(c.Context(), store.AuditRecord{
		At: time.Now(), Event: eventUserAdded, Actor: operator(), Subject: a.ID, Issuer: conf.Issuer,
	})
	if err != nil {
		return fmt.Errorf("write audit record: %w", err)
	}
	_, err = fmt.Fprintln(env.Stdout, a.ID)
	return err
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
		RunE: func(c *cobra.Command, _ []string) (err error) {
			conf, err := p.load(env)
			if err != nil {
				return err
			}
			core, err := p.core(c.Context(), conf)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, core.Close()) }()
			accounts, err := core.Store.ListAccounts(c.Context())
			if err != nil {
				return err
			}
			return printAccounts(env.Stdout, accounts, asJSON)
		},
	}
	p.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// listed is what is shown of an account.
type listed struct {
	Subject   string            `json:"sub"`
	Username  string            `json:"username"`
	Roles     []string          `json:"roles"`
	Attribute map[string]string `json:"attributes,omitempty"`
	Demo      bool              `json:"demo,omitempty"`
	Disabled  bool              `json:"disabled,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
}

func printAccounts(out io.Writer, accounts []store.Account, asJSON bool) error {
	list := make([]listed, 0, len(accounts))
	for _, a := range accounts {
		list = append(list, listed{
			Subject: a.ID, Username: a.Username, Roles: append([]string{}, a.Roles...), Attribute: a.Attributes,
			Demo: a.Demo, Disabled: a.Disabled, CreatedAt: a.CreatedAt.UTC(),
		})
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "USERNAME\tSUB\tROLES\tSTATE"); err != nil {
		return err
	}
	for _, a := range list {
		state := "active"
		switch {
		case a.Disabled:
			state = "disabled"
		case a.Demo:
			state = "demo"
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Username, a.Subject, strings.Join(a.Roles, ","), state); err != nil {
			return err
		}
	}
	return w.Flush()
}
