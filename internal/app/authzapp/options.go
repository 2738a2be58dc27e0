package authzapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// maxKeySetBytes bounds a client's key set file.
const maxKeySetBytes = 1 << 20

// ServerOptions turns a configuration into the options of an authorization server. It reads the key sets that clients name.
func ServerOptions(c config.Authz) (as.Options, error) {
	o := as.Options{Issuer: c.Issuer, AccessTokenTTL: c.Tokens.Lifetime, Scopes: map[string][]rar.Detail{}}
	for _, r := range c.Resources {
		o.Resources = append(o.Resources, as.Resource{ID: r.ID, Name: r.Name, HubURL: r.HubURL})
	}
	for _, cl := range c.Clients {
		client, err := staticClient(cl)
		if err != nil {
			return as.Options{}, err
		}
		o.Clients = append(o.Clients, client)
	}
	for _, p := range c.Policies {
		grant, err := details(p.Grant)
		if err != nil {
			return as.Options{}, fmt.Errorf("policy %s: %w", p.ID, err)
		}
		o.Policies = append(o.Policies, as.Policy{
			ID:               p.ID,
			When:             as.When{Clients: p.When.Clients, Roles: p.When.Roles, Users: p.When.Users, Resources: p.When.Resources},
			Grant:            grant,
			OnMissingRequest: as.Missing(p.OnMissingRequest),
			OnExcess:         as.Excess(p.OnExcess),
		})
	}
	for name, ds := range c.Scopes {
		scope, err := details(ds)
		if err != nil {
			return as.Options{}, fmt.Errorf("scope %s: %w", name, err)
		}
		o.Scopes[name] = scope
	}
	return o, nil
}

func staticClient(c config.Client) (store.Client, error) {
	out := store.Client{
		ID: c.ID, Name: c.Name, AuthMethod: c.AuthMethod,
		RedirectURIs: c.RedirectURIs, Origins: c.Origins, GrantTypes: []string{"authorization_code"},
		SkipConsent: c.SkipConsent, Static: true,
		// A fixed instant: a client of the configuration has no other birth, and the record must not change at each start.
		CreatedAt: time.Unix(0, 0).UTC(),
	}
	if out.Name == "" {
		out.Name = c.ID
	}
	if c.JWKSFile == "" {
		return out, nil
	}
	info, err := os.Stat(string(c.JWKSFile))
	if err == nil && info.Size() > maxKeySetBytes {
		return store.Client{}, fmt.Errorf("client %s: %s is larger than %d bytes", c.ID, c.JWKSFile, maxKeySetBytes)
	}
	raw, err := os.ReadFile(string(c.JWKSFile))
	if err != nil {
		return store.Client{}, fmt.Errorf("client %s: read key set: %w", c.ID, err)
	}
	out.JWKS = raw
	return out, nil
}

func details(in []config.Detail) ([]rar.Detail, error) {
	out := make([]rar.Detail, 0, len(in))
	for _, d := range in {
		r, err := detail(d)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func detail(d config.Detail) (rar.Detail, error) {
	r := rar.Detail{}
	for _, a := range d.Actions {
		action := rar.Action(a)
		if action != rar.Publish && action != rar.Subscribe {
			return r, fmt.Errorf("action %q is not publish or subscribe", a)
		}
		r.Actions = append(r.Actions, action)
	}
	for _, t := range d.Topics {
		typ := topic.Exact
		if t.MatchType != "" {
			var err error
			if typ, err = topic.ParseType(t.MatchType); err != nil {
				return r, err
			}
		}
		r.Topics = append(r.Topics, rar.TopicMatcher{Match: t.Match, MatchType: typ})
	}
	if len(r.Actions) == 0 || len(r.Topics) == 0 {
		return r, errors.New("a detail needs actions and topics")
	}
	if d.Payload == nil {
		return r, nil
	}
	var err error
	if r.Payload, err = json.Marshal(d.Payload); err != nil {
		return r, fmt.Errorf("payload: %w", err)
	}
	return r, nil
}
