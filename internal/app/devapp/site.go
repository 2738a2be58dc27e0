package devapp

import (
	"context"
	"log/slog"
	"slices"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/app/hubapp"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/ashttp"
	"github.com/cinnabar-hub/cinnabar/internal/demo"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/web"
)

const (
	demoUser    = "demo"
	brokerID    = "cinnabar-dev"
	brokerName  = "Cinnabar start page"
	hubName     = "Cinnabar development hub"
	scopeLive   = "live"
	plainSuffix = "-http" // cookies know no ports, so the two faces' cookies differ by name

	brokerKeySet = "broker.jwks"
)

// site is one face: an origin with its own identity.
type site struct {
	origin string
	hubURL string
	plain  bool

	issuer *authzapp.Issuer
	face   *hubapp.Face
}

func newSite(origin string, plain bool) *site {
	return &site{origin: origin, hubURL: origin + mercure.DefaultHubPath, plain: plain}
}

// topicBase is where the demo's topics live; both faces use the HTTPS one, so that an update reaches the pages of both.
func (a *App) topicBase() string { return a.sites[0].origin + "/demo" }

// serverOptions are the options of a face's authorization server: those of the configuration that commands read, and sign-in by one click.
// Clients are the same on both faces, since they share a store.
func (a *App) serverOptions(s *site) (as.Options, error) {
	o, err := authzapp.ServerOptions(a.authzConfig(s))
	o.Dev, o.DemoUser = true, demoUser
	return o, err
}

// buildSite builds a face on the engine and the core.
func (a *App) buildSite(ctx context.Context, s *site, broker authzapp.Broker) error {
	ring, err := a.core.OpenRing(ctx, s.origin, "")
	if err != nil {
		return err
	}
	options, err := a.serverOptions(s)
	if err != nil {
		return err
	}
	if s.issuer, err = a.core.Issuer(ctx, options, ring, a.revoked.Poke); err != nil {
		return err
	}
	origins := append(developmentOrigins(), a.options.CORSOrigins...)
	slices.Sort(origins)
	origins = slices.Compact(origins)
	httpClient, transport := authzapp.Transport(s.origin)
	sess := a.sessionOptions(s, broker, origins)
	s.face, err = a.engine.Face(hubapp.FaceOptions{
		Hub: hubhttp.Options{
			PublicURL: s.hubURL, ResourceName: hubName, Anonymous: true, CookieName: sess.CookieName,
			CORSOrigins: origins, AuthorizationServers: []string{s.origin},
			Subscriptions: a.hubConfig.Subscriptions, DevHints: true,
		},
		Issuers:       []token.Issuer{{ID: s.origin, Keys: s.issuer.Ring, AuthorizationServer: true}},
		Session:       sess,
		SessionClient: httpClient,
		Hosts:         []string{"localhost"},
		Metrics:       a.metrics,
		Logger:        a.options.Logger.With(slog.String("face", s.name())),
	})
	if err != nil {
		return err
	}
	transport.Handler = s.face.Echo
	edge := authzapp.EdgeOptions{Options: ashttp.Options{InsecureCookie: s.plain && a.options.InsecureCookie}}
	if s.plain {
		edge.CookieSuffix = plainSuffix
	}
	return a.core.Register(s.face.Echo, s.issuer, edge)
}

func (s *site) name() string {
	if s.plain {
		return "http"
	}
	return "https"
}

func (a *App) sessionOptions(s *site, broker authzapp.Broker, origins []string) *session.Options {
	o := &session.Options{
		HubURL: s.hubURL, Issuer: s.origin, ClientID: broker.ClientID, ClientKey: broker.ClientKey,
		CookieName: mercure.DefaultCookieName, CookieKeys: [][]byte{broker.CookieKey},
		Profiles:        map[string]session.Profile{session.DefaultProfile: {Scope: scopeLive}},
		ReturnToOrigins: origins,
	}
	if s.plain {
		o.CookieName += plainSuffix
		if a.options.InsecureCookie {
			o.InsecureCookie, o.CookieName = true, hubhttp.InsecureCookieName+plainSuffix
		}
	}
	return o
}

// registerDemo mounts the start page and the demo resource.
func (a *App) registerDemo(s *site) error {
	other := a.sites[0]
	if s == other {
		other = a.sites[1]
	}
	var commands []demo.Command
	for _, c := range a.commands() {
		commands = append(commands, demo.Command{Title: c.Title, Line: c.Line})
	}
	return demo.Register(s.face.Echo, demo.Options{
		HubURL: s.hubURL, Issuer: s.origin, TopicBase: a.topicBase(), User: demoUser,
		OtherFace: other.origin + "/", Version: a.options.Version, Commands: commands,
	}, demo.Dependencies{
		LastEventID: a.engine.LastEventID, Templates: web.Templates(), Static: web.Static(), Logger: a.options.Logger,
	})
}
