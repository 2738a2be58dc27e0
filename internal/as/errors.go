package as

import (
	"errors"
	"net/http"
	"strings"

	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// Code is an OAuth error code. Only registered codes are used (RFC 6749 sections 4.1.2.1 and 5.2, RFC 8707, RFC 9396,
// OpenID Connect Core 1.0 section 3.1.2.6).
type Code string

// The codes this server answers with.
const (
	CodeInvalidRequest          Code = "invalid_request"
	CodeInvalidClient           Code = "invalid_client"
	CodeInvalidGrant            Code = "invalid_grant"
	CodeInvalidScope            Code = "invalid_scope"
	CodeInvalidTarget           Code = "invalid_target"
	CodeInvalidDetails          Code = "invalid_authorization_details"
	CodeUnauthorizedClient      Code = "unauthorized_client"
	CodeUnsupportedGrantType    Code = "unsupported_grant_type"
	CodeUnsupportedResponseType Code = "unsupported_response_type"
	CodeRequestNotSupported     Code = "request_not_supported"
	CodeRequestURINotSupported  Code = "request_uri_not_supported"
	CodeRegistrationUnsupported Code = "registration_not_supported"
	CodeAccessDenied            Code = "access_denied"
	CodeLoginRequired           Code = "login_required"
	CodeConsentRequired         Code = "consent_required"
	CodeServerError             Code = "server_error"
	CodeTemporarilyUnavailable  Code = "temporarily_unavailable"
)

// OAuthError is an error in the terms of OAuth. Its description is one of this package's own texts: it never quotes the
// request or a library.
type OAuthError struct {
	Code        Code
	Description string
	// BasicChallenge says that the client tried HTTP Basic, so that a 401 needs a challenge (RFC 6749 section 5.2).
	BasicChallenge bool
	// cause is for the log.
	cause error
}

func refuse(code Code, description string) *OAuthError {
	return &OAuthError{Code: code, Description: description}
}

func (e *OAuthError) because(err error) *OAuthError {
	c := *e
	c.cause = err
	return &c
}

// Error returns code and description.
func (e *OAuthError) Error() string { return string(e.Code) + ": " + e.Description }

// Unwrap returns what caused the error, for logs.
func (e *OAuthError) Unwrap() error { return e.cause }

// Status is the HTTP status at the token endpoint (RFC 6749 section 5.2).
func (e *OAuthError) Status() int {
	switch e.Code {
	case CodeInvalidClient:
		return http.StatusUnauthorized
	case CodeServerError:
		return http.StatusInternalServerError
	case CodeTemporarilyUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
}

// Errors that end at a page of the server, because there is no client they could be redirected to.
var (
	// ErrClient says that the request names no client that may use this server.
	ErrClient = errors.New("as: unknown client")
	// ErrRedirectURI says that the redirect URI is not one of the client's.
	ErrRedirectURI = errors.New("as: redirect URI not registered")
	// ErrRequest says that the request cannot be read, or names client or redirect URI more than once.
	ErrRequest = errors.New("as: malformed request")
	// ErrInteraction says that the interaction does not exist, has expired, or is finished.
	ErrInteraction = errors.New("as: no such interaction")
	// ErrForeignBrowser says that the interaction was started by another browser.
	ErrForeignBrowser = errors.New("as: interaction of another browser")
	// ErrFormToken says that a form was not made by this server for this browser and interaction.
	ErrFormToken = errors.New("as: form token does not match")
	// ErrDemo says that signing in without a password is not possible.
	ErrDemo = errors.New("as: demo sign-in is not available")
)

// Refusals with more than one cause: what a client is told must not tell them apart.
func badGrant() *OAuthError {
	return refuse(CodeInvalidGrant,
		"The code or refresh token is unknown, expired, used or revoked, or was issued to another client or for another request.")
}

func badClient() *OAuthError { return refuse(CodeInvalidClient, "Client authentication failed.") }

func clientMismatch() *OAuthError {
	return refuse(CodeInvalidRequest, "The client_id parameter names another client than the one that authenticated.")
}

func badTarget() *OAuthError {
	return refuse(CodeInvalidTarget, "The resource is missing, unknown, or named more than once.")
}

func badDetails() *OAuthError {
	return refuse(CodeInvalidDetails, "The authorization details are malformed or not of a supported type.")
}

func excess() *OAuthError {
	return refuse(CodeInvalidDetails, "The authorization details go beyond what may be granted.")
}

// tokenError turns what the grant state machine or the store returned into an OAuthError. fosite's own texts and codes
// stay inside: its descriptions echo input, several of its codes exist in no RFC, and it reports a lost race for a
// code as a server error.
func tokenError(err error) *OAuthError {
	if oe, ok := errors.AsType[*OAuthError](err); ok {
		return oe
	}
	switch {
	case errors.Is(err, store.ErrConsumed), errors.Is(err, store.ErrRevoked), errors.Is(err, store.ErrNotFound),
		errors.Is(err, fosite.ErrInvalidatedAuthorizeCode), errors.Is(err, fosite.ErrTokenExpired):
		return badGrant().because(err)
	case errors.Is(err, store.ErrUnavailable):
		return refuse(CodeTemporarilyUnavailable, "The server is busy; try again.").because(err)
	}
	switch Code(fosite.ErrorToRFC6749Error(err).ErrorField) {
	case CodeInvalidGrant:
		return badGrant().because(err)
	case CodeInvalidRequest:
		return refuse(CodeInvalidRequest, "The request is incomplete or malformed.").because(err)
	case CodeUnauthorizedClient:
		return refuse(CodeUnauthorizedClient, "The client may not use this grant type.").because(err)
	default:
		return refuse(CodeServerError, "The server could not complete the request.").because(err)
	}
}

// causes spells an error out for the log: fosite's name a code, and keep to themselves what they wrap.
func causes(err error) string {
	text := err.Error()
	for err = errors.Unwrap(err); err != nil; err = errors.Unwrap(err) {
		if more := err.Error(); !strings.Contains(text, more) {
			text += ": " + more
		}
	}
	return text
}
