package hubapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// errEnded says that a hub has stopped, and what it is built from is closed.
var errEnded = errors.New("the hub has stopped")

const clearTextWarning = "tokens are refused: this hub speaks plain HTTP outside loopback; use TLS, or set tls.behind_tls_proxy when a proxy in front ends it"

// site is what a reload replaces: how requests are judged and answered.
type site struct {
	config  config.Hub
	authz   *config.Authz // of the bundled authorization server; nil: none
	options FaceOptions
	trusted *Trusted
	remotes []remote
	face    *Face

	generation int // one more than that of the site before
}

// verdicts remembers since when the readers of an issuer, and the anonymous ones, are judged anew. It is safe for concurrent use.
type verdicts struct {
	mu        sync.RWMutex
	issuers   map[string]int // generations of sites
	anonymous int
}

func (v *verdicts) change(generation int, issuers map[string]bool, anonymous bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.issuers == nil {
		v.issuers = map[string]int{}
	}
	for issuer := range issuers {
		v.issuers[issuer] = generation
	}
	if anonymous {
		v.anonymous = generation
	}
}

// outdated tells whether what a site of the generation thought of a reader may not hold any more.
func (v *verdicts) outdated(generation int, p *hub.Principal) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if p == nil {
		return v.anonymous > generation
	}
	return v.issuers[p.Issuer] > generation
}

// planSite reads what a configuration names, finds what is wrong with it, and makes nothing. authz is the configuration of the bundled
// authorization server, nil when there is none, and before is what is served now, nil at the start.
func planSite(c config.Hub, authz *config.Authz, before *site, logger *slog.Logger) (*site, error) {
	s := &site{config: c, authz: authz}
	var known *Trusted
	if before != nil {
		known, s.generation = before.trusted, before.generation+1
	}
	var err error
	if s.trusted, err = TrustedIssuers(c.Issuers, known, logger); err != nil {
		return nil, err
	}
	if s.remotes, err = remotes(c); err != nil {
		return nil, err
	}
	prefixes, err := app.Prefixes(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	sess, client, err := broker(c)
	if err != nil {
		return nil, err
	}
	s.options = FaceOptions{
		Hub:           hubOptions(c),
		Issuers:       s.trusted.Issuers,
		DetailLimits:  rar.DefaultLimits(),
		Session:       sess,
		SessionClient: client,
		RefuseTokens:  c.TLS.Mode == "off" && !c.TLS.BehindTLSProxy && !isLoopback(c.Listen),
		ClientIP:      httpserver.ClientIP(prefixes),
		Logger:        logger,
	}
	s.options.DetailLimits.Details, s.options.DetailLimits.TopicsPerDetail = c.Limits.Details, c.Limits.TopicsPerDetail
	s.options.DetailLimits.PatternBytes = int(c.Limits.Pattern)
	if c.TLS.Mode != "off" {
		s.options.HSTS = app.HSTSAge
	}
	return s, s.check()
}

// check finds what would keep the site from being built.
func (s *site) check() error {
	compiler, err := newCompiler(s.config)
	if err != nil {
		return err
	}
	if err := s.options.Hub.Validate(); err != nil {
		return err
	}
	tokens := s.options.tokens()
	tokens.Compiler = compiler
	if err := tokens.Validate(); err != nil {
		return fmt.Errorf("trusted issuers: %w", err)
	}
	sess := s.options.Session
	if s.authz != nil {
		server, err := authzapp.ServerOptions(*s.authz)
		if err == nil {
			err = server.Validate()
		}
		if err != nil {
			return fmt.Errorf("authorization server: %w", err)
		}
		broker, err := anyBroker()
		if err != nil {
			return err
		}
		sess = bundledSession(s.config, *s.authz, broker)
	}
	if sess == nil {
		return nil
	}
	return sess.Validate()
}

func hubOptions(c config.Hub) hubhttp.Options {
	o := hubhttp.Options{
		PublicURL: c.PublicURL, Resource: c.Resource, ResourceName: c.ResourceName,
		Anonymous: c.Anonymous, CookieName: c.Cookie.Name,
		CORSOrigins: c.CORSOrigins, PublishOrigins: c.PublishOrigins,
		Subscriptions: c.Subscriptions,
		Limits:        limits(c.Limits),
	}
	for _, is := range c.Issuers {
		if is.AuthorizationServer {
			o.AuthorizationServers = append(o.AuthorizationServers, is.ID)
		}
	}
	return o
}

// build makes a planned site on the engine. The clients of the bundled server are stored last, when nothing else can go wrong.
func (a *App) build(ctx context.Context, s *site) (*site, error) {
	s.options.Metrics = a.metrics
	s.options.Outdated = func(p *hub.Principal) bool { return a.verdicts.outdated(s.generation, p) }
	if s.authz == nil {
		var err error
		s.face, err = a.engine.Face(s.options)
		return s, err
	}
	transport, err := a.bundled.join(&s.options, s.config, *s.authz)
	if err != nil {
		return nil, err
	}
	if s.face, err = a.engine.Face(s.options); err != nil {
		return nil, err
	}
	transport.set(s.face.Echo)
	if err := a.bundled.register(ctx, s.face.Echo, s.config, *s.authz, s.options.ClientIP); err != nil {
		return nil, fmt.Errorf("authorization server: %w", err)
	}
	return s, nil
}

// Reload takes over what may change while the hub runs: issuers with their keys, origins, the session broker, anonymous, and of the
// bundled authorization server what authzapp.Reloadable says. Requests from now on are judged by it. The streams of an issuer whose
// keys have changed end, and the anonymous ones if there may be none any more: their readers come back and are judged anew. A
// configuration that does not work changes nothing, and its error is returned. What else differs is logged: it needs a restart. It is
// safe for concurrent use.
func (a *App) Reload(ctx context.Context, c config.Hub, authz *config.Authz) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if a.ended {
		return errEnded
	}
	old := a.site
	merged, mergedAuthz, left, err := merge(old, c, authz)
	if err != nil {
		return err
	}
	plan, err := planSite(merged, mergedAuthz, old, a.logger)
	if err != nil {
		return err
	}
	follows, err := a.followRemotes(ctx, plan.remotes)
	if err != nil {
		return err
	}
	next, err := a.build(ctx, plan)
	if err != nil {
		stopOthers(follows, a.followed)
		return err
	}
	stopOthers(a.followed, follows)
	a.followed, a.site = follows, next
	a.handler.Replace(next.face.Echo)
	if closed := a.judgeAnew(old, next); closed > 0 {
		a.logger.LogAttrs(ctx, slog.LevelInfo, "streams ended, whose readers are judged anew", slog.Int("count", closed))
	}
	authzapp.LogReload(ctx, a.logger, left)
	return nil
}

// judgeAnew ends the streams that the next site may not allow, those that requests of an earlier one are opening included.
func (a *App) judgeAnew(old, next *site) (closed int) {
	gone := old.trusted.changed(next.trusted)
	anonymous := old.config.Anonymous && !next.config.Anonymous
	a.verdicts.change(next.generation, gone, anonymous) // before any stream is closed
	if len(gone) > 0 {
		closed = a.engine.Hub.CloseBy(func(p *hub.Principal) bool { return gone[p.Issuer] })
	}
	if anonymous {
		closed += a.engine.Hub.CloseAnonymous()
	}
	return closed
}

// merge gives the configurations that a running hub has after a reload, and names the keys that differ and need a restart. What
// changes beside one of those may not work without it.
func merge(old *site, c config.Hub, authz *config.Authz) (merged config.Hub, mergedAuthz *config.Authz, left []string, err error) {
	merged = reloadable(old.config, c)
	left = config.Changed(merged, c)
	err = merged.Validate()
	if mergedAuthz = old.authz; mergedAuthz != nil && authz != nil {
		m := authzapp.Reloadable(*old.authz, *authz)
		mergedAuthz = &m
		for _, key := range config.Changed(m, *authz) {
			left = append(left, "authorization_server.config_file: "+key)
		}
		if !slices.ContainsFunc(m.Resources, func(r config.Resource) bool { return r.ID == merged.Resource }) {
			err = errors.Join(err, fmt.Errorf("resources: %q, which this hub is until it restarts, is missing", merged.Resource))
		}
	}
	if err != nil {
		return merged, nil, nil, fmt.Errorf("without a restart for %s: %w", strings.Join(left, ", "), err)
	}
	return merged, mergedAuthz, left, nil
}

// reloadable gives the old configuration with what a running hub takes over from the next one.
func reloadable(old, next config.Hub) config.Hub {
	merged := old
	merged.Issuers, merged.Session, merged.Anonymous, merged.ResourceName = next.Issuers, next.Session, next.Anonymous, next.ResourceName
	merged.CORSOrigins, merged.PublishOrigins = next.CORSOrigins, next.PublishOrigins
	if old.AuthorizationServer.Bundled && next.AuthorizationServer.Bundled {
		merged.AuthorizationServer = next.AuthorizationServer
	}
	return merged
}
