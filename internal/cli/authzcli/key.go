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
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// eventKeysRotated is the audit event of signing keys replaced by command.
const eventKeysRotated = "keys_rotated"

// minOverlap is the shortest time between publication and use of a key: less than verifiers need to notice is a mistake, not a wish.
const minOverlap = time.Minute

func keyCommand(env cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "key", Short: "See and rotate the signing keys", Args: cobra.NoArgs}
	c.AddCommand(keyListCommand(env), keyRotateCommand(env))
	return c
}

// keyView is what is shown of a signing key.
type keyView struct {
	KeyID       string        `json:"kid"`
	Issuer      string        `json:"issuer"`
	Algorithm   string        `json:"alg"`
	Actions     []rar.Action  `json:"actions"`
	State       keyring.State `json:"state"`
	CreatedAt   time.Time     `json:"created_at"`
	ActivatesAt time.Time     `json:"activates_at"`
	RetiresAt   time.Time     `json:"retires_at,omitzero"`
	ExpiresAt   time.Time     `json:"expires_at,omitzero"`
}

func keyViews(entries []keyring.Entry, now time.Time) []keyView {
	views := make([]keyView, 0, len(entries))
	for _, e := range entries {
		views = append(views, keyView{
			KeyID: e.KeyID, Issuer: e.Issuer, Algorithm: e.Algorithm, Actions: e.Actions.Slice(), State: e.State(now),
			CreatedAt: e.CreatedAt.UTC(), ActivatesAt: e.ActivatesAt.UTC(), RetiresAt: e.RetiresAt.UTC(), ExpiresAt: e.ExpiresAt.UTC(),
		})
	}
	slices.SortStableFunc(views, func(a, b keyView) int { return strings.Compare(family(a), family(b)) })
	return views
}

// family names the kind of tokens that a key signs.
func family(v keyView) string {
	names := make([]string, len(v.Actions))
	for i, a := range v.Actions {
		names[i] = string(a)
	}
	return strings.Join(names, "+")
}

func printKeys(env cli.Env, views []keyView) error {
	rows := make([][]string, 0, len(views))
	for _, v := range views {
		rows = append(rows, []string{
			family(v), v.KeyID, v.Algorithm, string(v.State), moment(v.CreatedAt), moment(v.ActivatesAt), moment(v.RetiresAt), moment(v.ExpiresAt),
		})
	}
	return printTable(env.Stdout, []string{"FAMILY", "KID", "ALG", "STATE", "CREATED", "SIGNS FROM", "RETIRES", "EXPIRES"}, rows)
}

func keyListCommand(env cli.Env) *cobra.Command {
	p := &place{}
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the signing keys, with their states", Args: cobra.NoArgs,
		Long: "List the signing keys. A key belongs to the family of what its tokens may do: subscribe, publish, or both. Its state is\n" +
			"next (published, signs later), active (signs), retiring (its tokens are still accepted) or gone (they are refused).",
		Example:           "  authz key list --data .cinnabar",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.with(c.Context(), env, func(d *desk) error {
				ring, err := d.core.OpenRing(c.Context(), d.conf.Issuer, d.conf.Keys.Algorithm)
				if err != nil {
					return err
				}
				views := keyViews(ring.Entries(), time.Now())
				if asJSON {
					return cli.PrintJSON(env.Stdout, views)
				}
				return printKeys(env, views)
			})
		},
	}
	p.flags(c)
	cli.JSONFlag(c, &asJSON, "an array of objects with", keyView{})
	return c
}

type keyRotateOptions struct {
	place     place
	overlap   time.Duration
	algorithm string
	now       bool
	revoke    bool
	json      bool
}

// rotation is what a rotation did.
type rotation struct {
	Made []keyView `json:"made"`
	Keys []keyView `json:"keys"`
}

func keyRotateCommand(env cli.Env) *cobra.Command {
	o := &keyRotateOptions{}
	c := &cobra.Command{
		Use: "rotate", Short: "Replace the signing keys", Args: cobra.NoArgs,
		Long: "Give every family of signing keys a new key. It is published at once and signs after --overlap, when all verifiers know it;\n" +
			"the key that signs today retires then, and is accepted until its last token has expired. Running servers follow within a second.\n" +
			"While new keys wait for their turn another rotation changes nothing.\n\n" +
			"--now is for an emergency: the new keys sign at once and all others retire. Tokens signed with those are still accepted; with\n" +
			"--revoke they are refused, and clients get new ones with their refresh tokens or a new login. Hubs elsewhere know it when they read\n" +
			"the keys again, within five minutes. Streams that are open go on until their token expires: restart the hub to end them at once.",
		Example: "  authz key rotate --config authz.yaml\n" +
			"  authz key rotate --config authz.yaml --now --revoke",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.validate(c); err != nil {
				return err
			}
			return o.place.with(c.Context(), env, func(d *desk) error { return o.run(c.Context(), env, d) })
		},
	}
	o.place.flags(c)
	c.Flags().DurationVar(&o.overlap, "overlap", keyring.DefaultOverlap, "`DURATION` that the new keys are published before they sign, at least "+minOverlap.String())
	c.Flags().StringVar(&o.algorithm, "alg", "", "`ALGORITHM` of the new keys: ES256, EdDSA or RS256 (default: keys.algorithm)")
	c.Flags().BoolVar(&o.now, "now", false, "let the new keys sign at once")
	c.Flags().BoolVar(&o.revoke, "revoke", false, "with --now: refuse every token signed with another key")
	cli.JSONFlag(c, &o.json, "an object, the keys made now and all there are, with", rotation{})
	fixed(c, "alg", "ES256", "EdDSA", "RS256")
	return c
}

func (o *keyRotateOptions) validate(c *cobra.Command) error {
	switch {
	case o.revoke && !o.now:
		return cli.Usagef("--revoke goes with --now")
	case o.now && c.Flags().Changed("overlap"):
		return cli.Usagef("--now and --overlap exclude each other")
	case o.overlap < minOverlap:
		return cli.Usagef("--overlap must be at least %v", minOverlap)
	}
	switch o.algorithm {
	case "", "ES256", "EdDSA", "RS256":
		return nil
	}
	return cli.Usagef("--alg %q is not ES256, EdDSA or RS256", o.algorithm)
}

func (o *keyRotateOptions) run(ctx context.Context, env cli.Env, d *desk) error {
	ring, err := d.core.OpenRing(ctx, d.conf.Issuer, d.conf.Keys.Algorithm)
	if err != nil {
		return err
	}
	made, err := ring.Rotate(ctx, keyring.RotateOptions{
		Overlap: o.overlap, MaxTokenLife: max(d.conf.Tokens.Lifetime, as.MaxOfflineTTL), Immediately: o.now, Revoke: o.revoke, Algorithm: o.algorithm,
	})
	if errors.Is(err, keyring.ErrCrowded) {
		return &cli.Error{Code: cli.ExitFailure, Err: err, Hint: "wait until earlier keys have expired (authz key list), or withdraw them with --now --revoke"}
	}
	if err != nil {
		return err
	}
	if len(made) > 0 {
		if err := d.audit(ctx, o.record(made)); err != nil {
			return err
		}
	}
	now := time.Now()
	r := rotation{Made: keyViews(made, now), Keys: keyViews(ring.Entries(), now)}
	if o.json {
		return cli.PrintJSON(env.Stdout, r)
	}
	if len(made) == 0 {
		if _, err := fmt.Fprintln(env.Stderr, "nothing changed: new keys wait for their turn already"); err != nil {
			return err
		}
	}
	return printKeys(env, r.Keys)
}

// record is the entry of the audit trail.
func (o *keyRotateOptions) record(made []keyring.Entry) store.AuditRecord {
	kids := make([]string, 0, len(made))
	for _, e := range made {
		kids = append(kids, e.KeyID)
	}
	mode := "planned"
	switch {
	case o.revoke:
		mode = "revoke"
	case o.now:
		mode = "now"
	}
	return store.AuditRecord{At: time.Now(), Event: eventKeysRotated, Details: map[string]string{"mode": mode, "kids": strings.Join(kids, " ")}}
}
