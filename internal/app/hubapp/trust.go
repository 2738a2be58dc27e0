package hubapp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// maxKeyFileBytes bounds a file of keys.
const maxKeyFileBytes = 1 << 20

// Trusted are the issuers whose tokens a hub accepts.
type Trusted struct {
	Issuers []token.Issuer

	marks map[string]string // of the keys in files, by issuer
}

// TrustedIssuers reads the keys of the configured issuers, and prepares the discovery of those that have none. What was discovered
// before is kept, so that a reload while an authorization server is down loses none of its keys; before is nil at the start.
func TrustedIssuers(issuers []config.Issuer, before *Trusted, logger *slog.Logger) (*Trusted, error) {
	t := &Trusted{marks: map[string]string{}}
	for _, is := range issuers {
		keys, mark, err := issuerKeys(is)
		if err != nil {
			return nil, fmt.Errorf("issuer %s: %w", is.ID, err)
		}
		source := token.Static(keys...)
		switch configured := len(is.Keys) + len(is.Publisher.Keys) + len(is.Subscriber.Keys); {
		case configured > 0 && len(keys) == 0:
			return nil, fmt.Errorf("issuer %s: none of its files holds a key for signatures", is.ID)
		case configured == 0:
			source, err = before.discovery(is.ID, logger)
			if err != nil {
				return nil, fmt.Errorf("issuer %s: %w", is.ID, err)
			}
		}
		t.marks[is.ID] = mark
		t.Issuers = append(t.Issuers, token.Issuer{ID: is.ID, Keys: source, AuthorizationServer: is.AuthorizationServer})
	}
	return t, nil
}

// discovery gives the discovery of an issuer's keys that is there already, else a new one.
func (t *Trusted) discovery(issuer string, logger *slog.Logger) (token.KeySource, error) {
	if t != nil {
		for _, is := range t.Issuers {
			if known, ok := is.Keys.(*token.Discovery); ok && is.ID == issuer {
				return known, nil
			}
		}
	}
	return token.NewDiscovery(token.DiscoveryOptions{Issuer: issuer, AllowLoopbackHTTP: true, Logger: logger})
}

// changed names the issuers that are trusted no longer or have other keys in next.
func (t *Trusted) changed(next *Trusted) map[string]bool {
	out := map[string]bool{}
	for id, mark := range t.marks {
		if now, ok := next.marks[id]; !ok || now != mark {
			out[id] = true
		}
	}
	return out
}

// issuerKeys reads an issuer's keys. The mark differs when one of them does.
func issuerKeys(is config.Issuer) (keys []token.Key, mark string, err error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "authorization server %t\n", is.AuthorizationServer) // never fails
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
			data, err := readKeyFile(k)
			if err != nil {
				return nil, "", fmt.Errorf("%s[%d]: %w", set.name, i, err)
			}
			read, err := parseKeys(k, set.actions, data)
			if err != nil {
				return nil, "", fmt.Errorf("%s[%d]: %w", set.name, i, err)
			}
			keys = append(keys, read...)
			_, _ = fmt.Fprintf(sum, "%s %q %q %x\n", set.name, k.Algorithm, k.KeyID, sha256.Sum256(data))
		}
	}
	return keys, string(sum.Sum(nil)), nil
}

// keyFile is the file that a key is in.
func keyFile(k config.IssuerKey) config.File {
	var name config.File
	for _, f := range []config.File{k.SecretFile, k.PEMFile, k.JWKFile, k.JWKSFile} {
		if f != "" {
			name = f
		}
	}
	return name
}

func readKeyFile(k config.IssuerKey) ([]byte, error) {
	name := keyFile(k)
	info, err := os.Stat(string(name))
	if err == nil && info.Size() > maxKeyFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxKeyFileBytes)
	}
	data, err := os.ReadFile(string(name))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return data, nil
}

func parseKeys(k config.IssuerKey, actions rar.ActionSet, data []byte) ([]token.Key, error) {
	name := keyFile(k)
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
