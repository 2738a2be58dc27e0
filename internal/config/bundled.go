package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// LoadBundled loads the configuration of an authorization server that runs in the hub's process: it has no listeners of its own,
// its issuer is on the hub's site, and the hub is among its resources. Errors are as for LoadHub.
func LoadBundled(s Source, h Hub) (*Loaded[Authz], error) {
	l, err := LoadAuthzOffline(s)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, key := range []string{"listen", "tls", "ops", "log", "drain", "trusted_proxies"} {
		if says(l.Origins, key) {
			errs = append(errs, fmt.Errorf("%s: belongs to authz serve; a bundled server uses the hub's", key))
		}
	}
	if !sameOrigin(l.Value.Issuer, h.PublicURL) {
		errs = append(errs, fmt.Errorf("issuer: %q is not on the hub's site, %q, where a bundled server stands", l.Value.Issuer, h.PublicURL))
	}
	serves := false
	for _, r := range l.Value.Resources {
		serves = serves || r.ID == h.Resource
	}
	if !serves {
		errs = append(errs, fmt.Errorf("resources: the hub's own, %q, is missing", h.Resource))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, s.Path, err)
	}
	return l, nil
}

// says tells whether a configuration sets a key or one below it.
func says(origins map[string]Origin, key string) bool {
	for path := range origins {
		if top, _, _ := strings.Cut(path, "."); top == key {
			return true
		}
	}
	return false
}

// LoadAuthzOffline loads the configuration of an authorization server for what works on its store and does not listen: a bundled
// server, and the commands. It asks for no certificate. Errors are as for LoadHub.
func LoadAuthzOffline(s Source) (*Loaded[Authz], error) {
	defaults := DefaultAuthz()
	defaults.TLS = TLS{Mode: "off"}
	return load(s, AuthzEnvPrefix, defaults)
}

func sameOrigin(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && ua.Scheme == ub.Scheme && ua.Host == ub.Host
}
