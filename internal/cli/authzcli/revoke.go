package authzcli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

type revokeOptions struct {
	place     place
	tokenFile string
	id        string
	json      bool
}

func revokeCommand(env cli.Env) *cobra.Command {
	o := &revokeOptions{}
	c := &cobra.Command{
		Use:   "revoke [TOKEN]",
		Short: "Revoke one access token",
		Long: "Revoke one access token before it expires: it is refused, and streams that were opened with it end within a second at a hub that\n" +
			"follows this server's revocations. Its grant stays: see 'authz grant revoke'. Revoking twice is harmless.\n\n" +
			"A TOKEN must have been signed by this server; --jti names one that is not at hand ('token mint --json' prints it).\n" + howToGiveOne,
		Example: "  authz token revoke --data .cinnabar --token-file t.jwt\n" +
			"  authz token revoke --config authz.yaml --jti 9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("jti") && o.id == "" {
				return cli.Usagef("--jti is empty: is a variable unset?")
			}
			return o.run(c.Context(), env, args)
		},
	}
	o.place.flags(c)
	c.Flags().StringVar(&o.tokenFile, "token-file", "", "`FILE` that holds the token")
	c.Flags().StringVar(&o.id, "jti", "", "the token's `ID` instead of the token")
	c.MarkFlagsMutuallyExclusive("jti", "token-file")
	cli.JSONFlag(c, &o.json, "an object with", outcome{})
	return c
}

func (o *revokeOptions) run(ctx context.Context, env cli.Env, args []string) error {
	if o.id != "" && len(args) > 0 {
		return cli.Usagef("give TOKEN or --jti, not both")
	}
	compact := ""
	if o.id == "" {
		var err error
		if compact, err = tokenArgument(env, args, o.tokenFile); err != nil {
			return err
		}
	}
	return o.place.with(ctx, env, func(d *desk) error {
		id := o.id
		if id == "" {
			var err error
			if id, err = d.tokenID(ctx, compact); err != nil {
				return err
			}
		}
		err := d.admin.RevokeToken(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("this server knows no token %q: it never issued it, or it has expired and is forgotten", id)
		}
		if err != nil {
			return err
		}
		return outcome{"token", id}.print(env, "revoked", o.json)
	})
}

// tokenID reads the jti of a token, which counts only if this server signed it: anybody could write another token's into one.
func (d *desk) tokenID(ctx context.Context, compact string) (string, error) {
	verifier, _, err := d.verifier(ctx, as.Resource{ID: d.conf.Resources[0].ID, HubURL: d.conf.Resources[0].HubURL})
	if err != nil {
		return "", err
	}
	in := verifier.Inspect(ctx, compact, "")
	for _, v := range in.Verdicts {
		if v.Check == token.CheckSignature && v.Status != token.StatusOK {
			return "", &cli.Error{
				Code: cli.ExitUsage, Err: fmt.Errorf("this is no token that %s signed with a key it has: %s", d.conf.Issuer, v.Detail),
				Hint: "see what is wrong: authz token inspect; or name it: --jti ID",
			}
		}
	}
	if in.Claims.ID == "" {
		return "", cli.Usagef("the token has no jti, so it cannot be revoked by itself")
	}
	return in.Claims.ID, nil
}
