package ashttp

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// errorPage is what the error template shows.
type errorPage struct {
	Page      page
	Heading   string
	Sentence  string
	Advice    string
	Hint      string
	RequestID string
}

// fault is how one kind of error is shown.
type fault struct {
	status                    int
	heading, sentence, advice string
}

const (
	startAgain = "Go back to the application and start again."
	tellOwner  = "Tell the people who run the application."
)

// faultOf is the table from errors to pages. An unknown client and a redirect URI that is not its own look alike: who
// guesses client identifiers learns nothing.
func faultOf(err error) fault {
	switch {
	case errors.Is(err, as.ErrClient), errors.Is(err, as.ErrRedirectURI):
		return fault{
			http.StatusBadRequest, "This request cannot be answered",
			"The application is not known here, or asks for the answer at an address that is not registered for it.", tellOwner,
		}
	case errors.Is(err, as.ErrRequest), errors.Is(err, as.ErrAnswer):
		return fault{http.StatusBadRequest, "This request cannot be answered", "It is incomplete or malformed.", tellOwner}
	case errors.Is(err, errMediaType):
		return fault{http.StatusUnsupportedMediaType, "This request cannot be answered", "It is not a form.", tellOwner}
	case errors.Is(err, errTooLarge):
		return fault{http.StatusRequestEntityTooLarge, "This request cannot be answered", "It is too large.", tellOwner}
	case errors.Is(err, as.ErrInteraction):
		return fault{
			http.StatusBadRequest, "This page is no longer valid",
			"The sign-in took too long, or it was finished already.", startAgain,
		}
	case errors.Is(err, as.ErrPushedRequest):
		return fault{
			http.StatusBadRequest, "This request is no longer valid",
			"The application announced it too long ago, or it was answered already.", startAgain,
		}
	case errors.Is(err, as.ErrForeignBrowser):
		return fault{
			http.StatusForbidden, "This sign-in was started elsewhere",
			"It belongs to another browser, or this browser keeps no cookies. If somebody sent you the link, do not use it.", startAgain,
		}
	case errors.Is(err, as.ErrFormToken), errors.Is(err, errOrigin):
		return fault{
			http.StatusForbidden, "This form was not accepted",
			"It did not come from a page of this server.", startAgain,
		}
	case errors.Is(err, errTooMany):
		return fault{
			http.StatusTooManyRequests, "Too many sign-ins",
			"Too many sign-ins were started from your network.", "Wait some seconds and load this page again.",
		}
	case errors.Is(err, as.ErrDemo):
		return fault{
			http.StatusForbidden, "The demo account is not available",
			"It does not exist, or may not sign in without a password.", startAgain,
		}
	case errors.Is(err, store.ErrUnavailable):
		return fault{
			http.StatusServiceUnavailable, "The server is busy",
			"It could not reach its database in time.", "Try again in a few seconds.",
		}
	default:
		return fault{
			http.StatusInternalServerError, "Something went wrong",
			"The server could not complete the request.", "Try again. If it goes on, tell the people who run this server.",
		}
	}
}

// failed shows an error. This is where it is logged, too.
func (h *edge) failed(c echo.Context, err error) error {
	f := faultOf(err)
	level := slog.LevelInfo
	if f.status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	h.logger.LogAttrs(c.Request().Context(), level, "page refused",
		slog.String("request_id", httpserver.RequestID(c)), slog.String("error", err.Error()))
	return h.render(c, f.status, pageError, errorPage{
		Page:      h.page(f.heading, true),
		Heading:   f.heading,
		Sentence:  f.sentence,
		Advice:    f.advice,
		Hint:      h.hint(c, err),
		RequestID: httpserver.RequestID(c),
	})
}

// hint tells the developer of a client, in development mode, what the page keeps to itself elsewhere.
func (h *edge) hint(c echo.Context, err error) string {
	if !h.server.Dev() {
		return ""
	}
	switch {
	case errors.Is(err, as.ErrClient):
		return "no client is registered with the client_id " + quoted(c.QueryParam("client_id")) + "."
	case errors.Is(err, as.ErrRedirectURI):
		return "the redirect_uri " + quoted(c.QueryParam("redirect_uri")) + " is not registered for the client " +
			quoted(c.QueryParam("client_id")) + "."
	case errors.Is(err, as.ErrRequest) && c.QueryParam(as.ParamRequestURI) != "":
		return "beside request_uri only client_id may be there: everything else belongs into the pushed request."
	case errors.Is(err, as.ErrPushedRequest):
		return "a request_uri is good for " + inWords(as.PushedTTL) + ", for one sign-in, and for the client that pushed it."
	default:
		return ""
	}
}

// quoted shows a value of the request, shortened.
func quoted(s string) string {
	const most = 200
	if s == "" {
		return "(none)"
	}
	if len(s) > most {
		s = s[:most] + "…"
	}
	return "“" + s + "”"
}
