package authzcli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
)

// completionTime bounds what a shell waits for when the tab key is pressed.
const completionTime = 2 * time.Second

// maxCompletions bounds what a shell is offered.
const maxCompletions = 200

// completeFrom offers words from the store of the place that the command line names so far. A store that cannot be read offers none: a
// shell has nowhere to show why.
func (p *place) completeFrom(env cli.Env, words func(context.Context, *desk) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionTime)
		defer cancel()
		var found []string
		err := p.with(ctx, env, func(d *desk) (err error) {
			found, err = words(ctx, d)
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found[:min(len(found), maxCompletions)], cobra.ShellCompDirectiveNoFileComp
	}
}

// clientIDs are the clients, described by their names.
func clientIDs(keep func(store.Client) bool) func(context.Context, *desk) ([]string, error) {
	return func(ctx context.Context, d *desk) ([]string, error) {
		clients, err := d.core.Store.ListClients(ctx)
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, c := range clients {
			if keep(c) {
				ids = append(ids, cobra.CompletionWithDesc(c.ID, c.Name))
			}
		}
		return ids, nil
	}
}

// usernames are the people.
func usernames(ctx context.Context, d *desk) ([]string, error) {
	accounts, err := d.core.Store.ListAccounts(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range accounts {
		names = append(names, cobra.CompletionWithDesc(a.Username, a.ID))
	}
	return names, nil
}

// grantIDs are the grants in force, described by their clients.
func grantIDs(ctx context.Context, d *desk) ([]string, error) {
	grants, err := d.core.Store.ListGrants(ctx, store.GrantFilter{})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var ids []string
	for _, g := range grants {
		if grantState(g, now) == stateActive {
			ids = append(ids, cobra.CompletionWithDesc(g.ID, g.ClientID+" "+g.AccountID))
		}
	}
	return ids, nil
}

// fixed completes a flag from a list.
func fixed(c *cobra.Command, flag string, words ...string) {
	must(c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}
