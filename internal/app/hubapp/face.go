package hubapp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// FaceOptions describes one site through which a hub is reached.
type FaceOptions struct {
	Hub     hubhttp.Options
	Issuers []token.Issuer
	// DetailLimits bounds the authorization details of tokens.
	DetailLimits rar.Limits
	// Session configures the browser session broker; nil leaves it out.
	Session *session.Options
	// SessionClient reaches the broker's issuer.
	SessionClient *http.Client
	// RefuseTokens refuses every token, because they would travel in clear (AUTH-14).
	RefuseTokens bool
	// Hosts are the only ones served; empty serves any.
	Hosts []string
	// HSTS is the max-age of Strict-Transport-Security; 0 sends none.
	HSTS time.Duration
	// ClientIP gives the address that limits count.
	ClientIP func(*http.Request) netip.Addr
	// Outdated tells whether a face that has taken this one's place may judge a reader otherwise; nil means never.
	Outdated func(*hub.Principal) bool
	Metrics  hubhttp.Metrics
	Logger   *slog.Logger
}

// tokens says which tokens are accepted.
func (o FaceOptions) tokens() token.Options {
	t := token.Options{Resource: o.Hub.Resource, Issuers: o.Issuers, Limits: o.DetailLimits}
	if t.Resource == "" {
		t.Resource = o.Hub.PublicURL
	}
	return t
}

// Face is a site of the hub: its HTTP handler and its verifier.
type Face struct {
	Echo     *echo.Echo
	Verifier *token.Verifier
}

// Face builds a site on the engine. More may be registered on its Echo before it serves.
func (e *Engine) Face(o FaceOptions) (*Face, error) {
	tokens := o.tokens()
	tokens.Compiler, tokens.Revocations = e.Compiler, e.revocations
	verifier, err := token.NewVerifier(tokens)
	if err != nil {
		return nil, fmt.Errorf("trusted issuers: %w", err)
	}
	web, err := httpserver.NewEcho(httpserver.EchoOptions{
		Logger: o.Logger, AccessLog: o.Logger.Enabled(context.Background(), slog.LevelDebug),
		ClientIP: o.ClientIP, HSTS: o.HSTS, Hosts: o.Hosts,
	})
	if err != nil {
		return nil, err
	}
	var judge hubhttp.Verifier = verifier
	if o.RefuseTokens {
		judge = clearText{}
	}
	err = hubhttp.Register(web, o.Hub, hubhttp.Dependencies{
		Hub: e.Hub, Sinks: e.Sinks, Verifier: judge, Compiler: e.Compiler, Logger: o.Logger, Metrics: o.Metrics, ClientIP: o.ClientIP,
		Connections: e.connections, Outdated: o.Outdated,
	})
	if err != nil {
		return nil, err
	}
	if o.Session != nil {
		err = session.Register(web, *o.Session, session.Dependencies{
			HTTPClient: o.SessionClient,
			Verify: func(ctx context.Context, compact string) (*token.Claims, error) {
				return verifier.Verify(ctx, compact, rar.Subscribe)
			},
			End:      e.end,
			ClientIP: o.ClientIP, Logger: o.Logger,
		})
		if err != nil {
			return nil, err
		}
	}
	return &Face{Echo: web, Verifier: verifier}, nil
}

// clearText is the verifier of a hub that tokens must not be sent to.
type clearText struct{}

// Verify refuses.
func (clearText) Verify(context.Context, string, rar.Action) (*token.Claims, error) {
	return nil, &token.InvalidError{Check: "transport", Reason: "the token came over plain HTTP from outside this machine"}
}

// end closes the live streams of a browser session that is over.
func (e *Engine) end(_ context.Context, over session.Ended) {
	e.Hub.CloseBy(func(p *hub.Principal) bool {
		if p.Issuer != over.Issuer {
			return false
		}
		if over.SessionID != "" && p.SessionID == over.SessionID {
			return true
		}
		for _, id := range over.TokenIDs {
			if id != "" && p.TokenID == id {
				return true
			}
		}
		return false
	})
}
