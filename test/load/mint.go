package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
)

// detailType is the type of authorization details of the Mercure protocol.
const detailType = "https://mercure.rocks/authorization-detail"

// minter makes the tokens of publishers and subscribers.
type minter struct {
	key                   jose.Key
	issuer, audience, run string
}

// grant is what a token allows.
type grant struct {
	action          string
	exact, patterns []string
}

// mint makes a token that is valid for a day.
func (m minter) mint(subject string, g grant) (string, error) {
	type matcher struct {
		Match string `json:"match"`
		Type  string `json:"match_type,omitempty"`
	}
	topics := make([]matcher, 0, len(g.exact)+len(g.patterns))
	for _, t := range g.exact {
		topics = append(topics, matcher{Match: t})
	}
	for _, t := range g.patterns {
		topics = append(topics, matcher{Match: t, Type: "urlpattern"})
	}
	header := map[string]string{"alg": m.key.Alg, "typ": "at+jwt"}
	if m.key.Kid != "" {
		header["kid"] = m.key.Kid
	}
	now := time.Now()
	input, err := encode(header, map[string]any{
		"iss": m.issuer, "sub": subject, "aud": m.audience, "client_id": "load", "jti": m.run + "/" + subject,
		"iat": now.Unix(), "exp": now.Add(24 * time.Hour).Unix(),
		"authorization_details": []any{map[string]any{"type": detailType, "actions": []string{g.action}, "topics": topics}},
	})
	if err != nil {
		return "", err
	}
	signature, err := m.key.Sign([]byte(input))
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return input + "." + jose.Encode(signature), nil
}

// encode gives what is signed.
func encode(header, claims any) (string, error) {
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return jose.Encode(h) + "." + jose.Encode(c), nil
}

// readToken reads a token from a file.
func readToken(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s does not hold one token", path)
	}
	return token, nil
}
