package httpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
)

// ProblemMediaType is the media type of problem documents (RFC 9457 section 3).
const ProblemMediaType = "application/problem+json"

// Problem is a problem document (RFC 9457). It is an error, so a handler may return one and leave the writing to the echo
// instance. The zero value of every member but Status is left out of the document.
type Problem struct { //nolint:errname // RFC 9457 calls it that, and it is a document first
	// Type is a URI reference for the kind of problem; empty means "about:blank" (RFC 9457 section 4.2.1).
	Type string `json:"type,omitempty"`
	// Title is the short summary; empty is filled with the phrase of Status.
	Title string `json:"title,omitempty"`
	// Status is the HTTP status code; 0 is treated as 500.
	Status int `json:"status"`
	// Detail explains this occurrence to the client. It must not hold secrets or text of libraries.
	Detail string `json:"detail,omitempty"`
	// Field names the request field or parameter that caused the problem.
	Field string `json:"field,omitempty"`
	// Check names the failed check of a token, on development listeners only.
	Check string `json:"check,omitempty"`
	// Hint says what to do about it.
	Hint string `json:"hint,omitempty"`
	// RequestID is the id under which the log knows the request; WriteProblem fills it.
	RequestID string `json:"request_id,omitempty"`
}

// Error returns the problem as one line for logs. It implements error.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return fmt.Sprintf("http %d: %s", p.Status, p.title())
	}
	return fmt.Sprintf("http %d: %s: %s", p.Status, p.title(), p.Detail)
}

func (p *Problem) title() string {
	if p.Title != "" {
		return p.Title
	}
	switch p.Status {
	case http.StatusRequestEntityTooLarge:
		return "Content Too Large" // RFC 9110 renamed it; net/http did not
	case http.StatusUnprocessableEntity:
		return "Unprocessable Content"
	default:
		return http.StatusText(p.Status)
	}
}

// WriteProblem writes p as the response, completing its title, status and request id. HEAD requests get the header fields
// alone. Header fields that the caller set before (challenges, Retry-After, CORS) are kept. A response that has already
// begun is left as it is, and nil is returned.
func WriteProblem(c echo.Context, p Problem) error {
	if c.Response().Committed {
		return nil
	}
	if p.Status < http.StatusBadRequest || p.Status > 599 {
		p.Status = http.StatusInternalServerError
	}
	p.Title = p.title()
	p.RequestID = RequestID(c)
	h := c.Response().Header()
	if h.Get(echo.HeaderCacheControl) == "" {
		h.Set(echo.HeaderCacheControl, "no-store")
	}
	if c.Request().Method == http.MethodHead {
		h.Set(echo.HeaderContentType, ProblemMediaType)
		return c.NoContent(p.Status)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode problem: %w", err)
	}
	return c.Blob(p.Status, ProblemMediaType, append(body, '\n'))
}

// asProblem turns any error into the document a client may see. Errors that are neither a *Problem nor an
// *echo.HTTPError are internal: the client learns the status alone.
func asProblem(err error) Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return *p
	}
	if he, ok := errors.AsType[*echo.HTTPError](err); ok {
		return Problem{Status: he.Code}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Problem{Status: http.StatusRequestEntityTooLarge}
	}
	return Problem{Status: http.StatusInternalServerError}
}
