package authzapp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// maxKeySetBytes and maxSecretBytes bound the files of a client.
	maxKeySetBytes = 1 << 20
	maxSecretBytes = 4 << 10
	// minSecretBytes is the shortest secret of a client: shorter ones are passwords, which can be guessed.
	minSecretBytes = 32
)

// ServerOptions turns a configuration into the options of an authorization server. It reads the key sets that clients name.
func ServerOptions(c config.Authz) (as.Options, error) {
	o := as.Options{
		Issuer: c.Issuer, AccessTokenTTL: c.Tokens.Lifetime, RefreshIdle: c.Tokens.RefreshIdle, RefreshAbsolute: c.Tokens.RefreshAbsolute,
		Scopes: map[string][]rar.Detail{},
	}
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
		RedirectURIs: c.RedirectURIs, Origins: c.Origins, GrantTypes: c.GrantTypes,
		SkipConsent: c.SkipConsent, Broker: c.Broker, Static: true,
		// A fixed instant: a client of the configuration has no other birth, and the record must not change at each start.
		CreatedAt: time.Unix(0, 0).UTC(),
	}
	if out.Name == "" {
		out.Name = c.ID
	}
	if c.JWKSFile != "" {
		raw, err := readFile(c.JWKSFile, maxKeySetBytes)
		if err != nil {
			return store.Client{}, fmt.Errorf("client %s: read key set: %w", c.ID, err)
		}
		out.JWKS = raw
	}
	if c.SecretFile != "" {
		secret, err := readFile(c.SecretFile, maxSecretBytes)
		if err != nil {
			return store.Client{}, fmt.Errorf("client %s: read secret: %w", c.ID, err)
		}
		secret = bytes.TrimRight(secret, "\r\n") // the line end is the editor's, not the secret's
		if len(secret) < minSecretBytes {
			return store.Client{}, fmt.Errorf("client %s: the secret in %s has %d bytes, and %d are needed at least; make one with: openssl rand -hex 32",
				c.ID, c.SecretFile, len(secret), minSecretBytes)
		}
		out.SecretHash = as.HashClientSecret(string(secret))
	}
	return out, nil
}

// readFile reads a file that may have limit bytes at most.
func readFile(name config.File, limit int64) ([]byte, error) {
	f, err := os.Open(string(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return raw, nil
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
