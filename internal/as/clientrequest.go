package as

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// ClientRequest is a request to one of the endpoints for clients: token (RFC 6749 section 3.2), pushed authorization requests
// (RFC 9126 section 2.1), revocation (RFC 7009 section 2.1), and the revocation log.
type ClientRequest struct {
	// Form is the body, application/x-www-form-urlencoded.
	Form string
	// Basic is the Authorization header, if there is one.
	Basic *Basic
}

// HasCredentials says whether a request claims to be from a client that authenticates. If the claim is false, nothing is stored.
// A request that cannot be read claims nothing.
func (r ClientRequest) HasCredentials() bool {
	p, err := parseParams(r.Form)
	if err != nil {
		return false
	}
	creds, err := readCredentials(p, r.Basic)
	return err == nil && (creds.secret != "" || creds.assertion != "")
}

// readClientForm reads the body of a request to an endpoint for clients.
func readClientForm(form string) (params, error) {
	p, err := parseParams(form)
	if err != nil || len(p.repeated) > 0 {
		return params{}, refuse(CodeInvalidRequest, "The body is malformed, too long, or repeats a parameter.").because(err)
	}
	return p, nil
}

// readClientRequest reads a request to an endpoint for clients and authenticates its client.
func (s *Server) readClientRequest(ctx context.Context, r ClientRequest) (store.Client, params, error) {
	p, err := readClientForm(r.Form)
	if err != nil {
		return store.Client{}, params{}, err
	}
	client, err := s.authenticate(ctx, p, r.Basic)
	return client, p, err
}

// clientError is what a client is told, after the log was told more.
func (s *Server) clientError(ctx context.Context, endpoint, clientID string, err error) *OAuthError {
	oe := tokenError(err)
	level := slog.LevelInfo
	if oe.Status() >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("endpoint", endpoint), slog.String("client_id", clientID), slog.String("oauth_error", string(oe.Code)),
	}
	if cause := oe.Unwrap(); cause != nil {
		attrs = append(attrs, slog.String("error", causes(cause)))
	}
	s.logger.LogAttrs(ctx, level, "client request refused", attrs...)
	return oe
}
