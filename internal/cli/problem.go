package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxProblemBytes bounds what is read of an error response.
const maxProblemBytes = 64 << 10

// Refusal turns an unexpected response into an error that says what the server said: the status, the challenge's error code
// and, when there is one, the problem's detail (RFC 9457) with its hint.
func Refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes)) // a broken body still has a status
	var p struct {
		Title     string `json:"title"`
		Detail    string `json:"detail"`
		Hint      string `json:"hint"`
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(body, &p) // not every refusal is a problem document
	parts := []string{resp.Status}
	code := challengeError(resp.Header.Get("WWW-Authenticate"))
	if code != "" {
		parts = append(parts, code)
	}
	switch {
	case p.Detail != "":
		parts = append(parts, strings.TrimSuffix(p.Detail, "."))
	case p.Title != "" && !strings.Contains(resp.Status, p.Title):
		parts = append(parts, p.Title)
	}
	text := strings.Join(parts, ": ")
	if p.RequestID != "" {
		text += " (request " + p.RequestID + ")"
	}
	e := &Error{Code: ExitFailure, Hint: p.Hint, Err: errors.New(text)}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		e.Code = ExitRefused
	}
	if e.Hint == "" && resp.StatusCode == http.StatusUnauthorized {
		e.Hint = "give a token: --token-file, --token or CINNABAR_TOKEN; for 'hub dev', --data DIR"
		if code != "" { // the hub names no error when there was no token (RFC 6750 section 3.1)
			e.Hint = "see what is wrong with the token: authz token inspect"
		}
	}
	return e
}

// challengeError gives the error parameter of a Bearer challenge.
func challengeError(challenge string) string {
	_, rest, ok := strings.Cut(challenge, `error="`)
	if !ok {
		return ""
	}
	code, _, _ := strings.Cut(rest, `"`)
	return code
}

// unreachable explains a request that got no response.
func unreachable(hub string, err error) error {
	e := &Error{Code: ExitFailure, Err: fmt.Errorf("reach %s: %w", hub, err)}
	if strings.Contains(err.Error(), "certificate") {
		e.Hint = "for 'hub dev', give --data DIR, or --ca-file with its tls/ca.crt"
	}
	return e
}
