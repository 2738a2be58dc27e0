package as

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// ErrStatic says that a client comes from the configuration: what a command does to it, the next start or reload of the server
// undoes.
var ErrStatic = errors.New("as: the client is in the configuration")

// AdminOptions says on whose behalf an Admin acts.
type AdminOptions struct {
	// Issuer is whose audit trail the records belong to when they are about no grant or token.
	Issuer string
	// Actor is who gave the command, for the audit trail: the user of the operating system.
	Actor string
	// Logger gets what could not be audited. Nil: nothing is logged.
	Logger *slog.Logger
}

// Admin is what an operator may do to a store beside the servers that use it, which see it at their next request; a hub that
// follows the revocation log closes streams within a second. Each change is audited. Safe for concurrent use.
type Admin struct {
	store   store.Store
	options AdminOptions
}

// NewAdmin returns an Admin of a store, which the caller closes.
func NewAdmin(st store.Store, o AdminOptions) *Admin {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Admin{store: st, options: o}
}

// CreateClient registers a client, judged as those of the configuration are. It returns ErrOptions with every fault of the
// client, and store.ErrExists for an id that is taken.
func (a *Admin) CreateClient(ctx context.Context, c store.Client) error {
	if err := CheckClient(c); err != nil {
		return fmt.Errorf("%w: client %q: %w", ErrOptions, c.ID, err)
	}
	switch _, err := a.store.Client(ctx, c.ID); {
	case err == nil:
		return fmt.Errorf("client %q: %w", c.ID, store.ErrExists)
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("read client: %w", err)
	}
	c.Static = false
	if err := a.store.PutClient(ctx, c); err != nil {
		return fmt.Errorf("write client: %w", err)
	}
	a.audit(ctx, store.AuditRecord{Event: EventClientCreated, Client: c.ID})
	return nil
}

// DeleteClient removes a client; its grants and tokens are revoked. It returns store.ErrNotFound for an unknown client, and
// ErrStatic for one of the configuration.
func (a *Admin) DeleteClient(ctx context.Context, id string) error {
	c, err := a.store.Client(ctx, id)
	if err != nil {
		return fmt.Errorf("read client: %w", err)
	}
	if c.Static {
		return fmt.Errorf("client %q: %w", id, ErrStatic)
	}
	if err := a.store.DeleteClient(ctx, id, time.Now()); err != nil {
		return fmt.Errorf("delete client: %w", err)
	}
	a.audit(ctx, store.AuditRecord{Event: EventClientDeleted, Client: id})
	return nil
}

// RevokeGrant revokes a grant with all its tokens; to revoke one twice is harmless and recorded once. It returns store.ErrNotFound for an unknown
// grant.
func (a *Admin) RevokeGrant(ctx context.Context, id string) error {
	grant, err := a.store.Grant(ctx, id)
	if err != nil {
		return fmt.Errorf("read grant: %w", err)
	}
	if !grant.RevokedAt.IsZero() {
		return nil
	}
	if err := a.store.RevokeGrant(ctx, id, time.Now()); err != nil {
		return fmt.Errorf("revoke grant: %w", err)
	}
	a.audit(ctx, store.AuditRecord{
		Event: EventGrantRevoked, Issuer: grant.Issuer, Subject: grant.AccountID, Client: grant.ClientID,
		Details: map[string]string{"grant_id": id},
	})
	return nil
}

// RevokeToken revokes one access token by its jti; to revoke one twice is harmless and recorded once. It returns store.ErrNotFound for a token that
// was never issued, or has long expired.
func (a *Admin) RevokeToken(ctx context.Context, jti string) error {
	issued, err := a.store.IssuedToken(ctx, jti)
	if err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	if !issued.RevokedAt.IsZero() {
		return nil
	}
	if err := a.store.RevokeToken(ctx, jti, time.Now()); err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	a.audit(ctx, store.AuditRecord{
		Event: EventTokenRevoked, Issuer: issued.Issuer, Subject: issued.Subject, Client: issued.ClientID,
		Details: map[string]string{"jti": jti},
	})
	return nil
}

// audit writes a record. That it cannot be written is logged: what it tells about has happened.
func (a *Admin) audit(ctx context.Context, r store.AuditRecord) {
	r.At, r.Actor = time.Now(), a.options.Actor
	if r.Issuer == "" {
		r.Issuer = a.options.Issuer
	}
	if err := a.store.Audit(context.WithoutCancel(ctx), r); err != nil {
		a.options.Logger.LogAttrs(ctx, slog.LevelError, "audit record lost",
			slog.String("event", r.Event), slog.String("error", err.Error()))
	}
}
