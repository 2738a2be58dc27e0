package hubapp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/session"
)

// broker gives the options of the session broker, or nil when it is off.
func broker(c config.Hub) (*session.Options, *http.Client, error) {
	if c.Session.Issuer == "" {
		return nil, nil, nil
	}
	key, err := os.ReadFile(string(c.Session.ClientKeyFile))
	if err != nil {
		return nil, nil, fmt.Errorf("session.client_key_file: %w", err)
	}
	cookieKeys, err := readCookieKeys(string(c.Session.KeysFile))
	if err != nil {
		return nil, nil, fmt.Errorf("session.keys_file: %w", err)
	}
	o := sessionOptions(c)
	o.Issuer, o.ClientID, o.ClientKey, o.CookieKeys = c.Session.Issuer, c.Session.ClientID, key, cookieKeys
	return o, &http.Client{Timeout: app.BrokerTimeout}, nil
}

// sessionOptions gives what does not depend on where the authorization server runs.
func sessionOptions(c config.Hub) *session.Options {
	o := &session.Options{
		HubURL: c.PublicURL, Resource: c.Resource, CookieName: c.Cookie.Name, CookieDomain: c.Cookie.Domain,
		ReturnToOrigins: c.Session.ReturnToOrigins, Idle: c.Session.Idle, Absolute: c.Session.Absolute,
		Profiles: map[string]session.Profile{},
	}
	for name, p := range c.Session.Profiles {
		o.Profiles[name] = session.Profile{Scope: p.Scope, AuthorizationDetails: json.RawMessage(p.AuthorizationDetails)}
	}
	return o
}

// readCookieKeys reads one key a line, base64url, the newest first.
func readCookieKeys(path string) ([][]byte, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	sc := bufio.NewScanner(bytes.NewReader(raw))
	for number := 1; sc.Scan(); number++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		key, err := base64.RawURLEncoding.DecodeString(string(bytes.TrimRight(line, "=")))
		if err != nil || len(key) != session.CookieKeyBytes {
			return nil, fmt.Errorf("line %d is not base64url of %d bytes; make one with: openssl rand 64 | basenc --base64url -w0",
				number, session.CookieKeyBytes)
		}
		keys = append(keys, key)
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("holds no key")
	}
	return keys, nil
}
