package as

import (
	"context"
	"log/slog"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// The events of the audit trail.
const (
	EventLogin          = "login"
	EventLoginFailed    = "login_failed"
	EventConsent        = "consent"
	EventConsentDenied  = "consent_denied"
	EventConsentSkipped = "consent_skipped" // a first-party client
	EventGrant          = "grant"
	EventToken          = "token"
	EventTokenMinted    = "token_minted" // by command
	EventClientRefused  = "client_refused"
	EventPushed         = "request_pushed"
	EventCodeReused     = "code_reused"          // the grant was revoked
	EventRefreshReused  = "refresh_token_reused" // the grant was revoked
	EventGrantRevoked   = "grant_revoked"
	EventTokenRevoked   = "token_revoked"
	EventSessionEnded   = "session_ended" // with all its grants
	EventClientCreated  = "client_created"
	EventClientDeleted  = "client_deleted" // with all its grants
)

// Anybody can cause refusals. Beyond noiseBurst, and noiseEvery for each one more, they go to the log alone, so that nobody can
// fill the database with them.
const (
	noiseBurst = 200
	noiseEvery = time.Second
)

// isNoise says whether an event can be caused by somebody who has proven nothing.
func isNoise(event string) bool {
	return event == EventClientRefused || event == EventLoginFailed || event == EventPushed
}

// audit writes a record to the trail and the log. That the trail cannot be written is logged and stops nothing: what it
// tells about has happened.
func (s *Server) audit(ctx context.Context, r store.AuditRecord) {
	r.At = time.Now()
	r.Issuer = s.options.Issuer
	attrs := []slog.Attr{slog.String("event", r.Event), slog.String("client_id", r.Client)}
	for name, value := range r.Details {
		attrs = append(attrs, slog.String(name, value))
	}
	kept := !isNoise(r.Event) || s.noise.Allow()
	if !kept {
		attrs = append(attrs, slog.Bool("audited", false))
	}
	s.logger.LogAttrs(ctx, slog.LevelInfo, "security event", attrs...)
	if !kept {
		return
	}
	if err := s.store.Audit(context.WithoutCancel(ctx), r); err != nil {
		s.logger.LogAttrs(ctx, slog.LevelError, "audit record lost",
			slog.String("event", r.Event), slog.String("error", err.Error()))
	}
}
