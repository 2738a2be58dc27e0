package hubapp

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// maxKeyFileBytes bounds a file of keys.
const maxKeyFileBytes = 1 << 20

// TrustedIssuers reads the keys of the configured issuers, and prepares the discovery of those that have none.
func TrustedIssuers(issuers []config.Issuer, logger *slog.Logger) ([]token.Issuer, error) {
	out := make([]token.Issuer, 0, len(issuers))
	for _, is := range issuers {
		keys, err := issuerKeys(is)
		if err != nil {
			return nil, fmt.Errorf("issuer %s: %w", is.ID, err)
		}
		source := token.Static(keys...)
		switch configured := len(is.Keys) + len(is.Publisher.Keys) + len(is.Subscriber.Keys); {
		case configured > 0 && len(keys) == 0:
			return nil, fmt.Errorf("issuer %s: none of its files holds a key for signatures", is.ID)
		case configured == 0:
			source, err = token.NewDiscovery(token.DiscoveryOptions{Issuer: is.ID, AllowLoopbackHTTP: true, Logger: logger})
			if err != nil {
				return nil, fmt.Errorf("issuer %s: %w", is.ID, err)
			}
		}
		out = append(out, token.Issuer{ID: is.ID, Keys: source, AuthorizationServer: is.AuthorizationServer})
	}
	return out, nil
}

func issuerKeys(is config.Issuer) ([]token.Key, error) {
	var keys []token.Key
	for _, set := range []struct {
		name    string
		keys    []config.IssuerKey
		actions rar.ActionSet
	}{
		{"publisher", is.Publisher.Keys, rar.Actions(rar.Publish)},
		{"subscriber", is.Subscriber.Keys, rar.Actions(rar.Subscribe)},
		{"keys", is.Keys, 0},
	} {
		for i, k := range set.keys {
			read, err := readKeys(k, set.actions)
			if err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", set.name, i, err)
			}
			keys = append(keys, read...)
		}
	}
	return keys, nil
}

func readKeys(k config.IssuerKey, actions rar.ActionSet) ([]token.Key, error) {
	var name config.File
	for _, f := range []config.File{k.SecretFile, k.PEMFile, k.JWKFile, k.JWKSFile} {
		if f != "" {
			name = f
		}
	}
	info, err := os.Stat(string(name))
	if err == nil && info.Size() > maxKeyFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxKeyFileBytes)
	}
	data, err := os.ReadFile(string(name))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if k.JWKSFile != "" {
		keys, err := token.ParseJWKSet(data, actions)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return keys, nil
	}
	if k.SecretFile != "" {
		data = bytes.TrimRight(data, "\r\n") // the line end is the editor's, not the secret's
	}
	key, err := token.ParseKey(k.Algorithm, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if k.KeyID != "" {
		key.ID = k.KeyID
	}
	if key.Actions, err = narrow(key.Actions, actions); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return []token.Key{key}, nil
}

// narrow gives the actions of a key that names some itself and stands under a role: 0 means all.
func narrow(own, role rar.ActionSet) (rar.ActionSet, error) {
	switch {
	case own == 0:
		return role, nil
	case role == 0:
		return own, nil
	case own&role == 0:
		return 0, fmt.Errorf("the key is for %s, and stands under the keys for %s", own, role)
	}
	return own & role, nil
}
