package ashttp

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/account"
)

// loginPage is what the sign-in template shows.
type loginPage struct {
	Page    page
	Action  string
	Problem string
	as.LoginView
}

// loginPage answers GET /login.
func (h *edge) loginPage(c echo.Context) error {
	view, err := h.server.LoginView(c.Request().Context(), c.QueryParam(as.ParamInteraction), h.cookie.read(c))
	if err != nil {
		return h.failed(c, err)
	}
	return h.showLogin(c, http.StatusOK, view, "")
}

func (h *edge) showLogin(c echo.Context, status int, view as.LoginView, problem string) error {
	return h.render(c, status, pageLogin, loginPage{
		Page:      h.page("Sign in", problem != ""),
		Action:    h.base + as.PathLogin,
		Problem:   problem,
		LoginView: view,
	})
}

// login answers POST /login.
func (h *edge) login(c echo.Context) error {
	form, err := h.ownForm(c)
	if err != nil {
		return h.failed(c, err)
	}
	browser := h.cookie.read(c)
	attempt := as.LoginForm{
		Interaction: form.Get("interaction"),
		FormToken:   form.Get("form_token"),
		Username:    form.Get("username"),
		Password:    form.Get("password"),
		Demo:        form.Get("method") == "demo",
		From:        h.clientIP(c.Request()),
	}
	fresh, err := h.server.Login(c.Request().Context(), attempt, browser)
	if err == nil {
		h.cookie.write(c, browser, fresh)
		return h.moveOn(c, attempt.Interaction)
	}
	status, problem := loginProblem(c, err)
	if problem == "" {
		return h.failed(c, err)
	}
	view, err := h.server.LoginView(c.Request().Context(), attempt.Interaction, browser)
	if err != nil {
		return h.failed(c, err)
	}
	view.Username = attempt.Username
	return h.showLogin(c, status, view, problem)
}

// loginProblem puts a failed attempt into words for the form; none for errors that the form cannot mend.
func loginProblem(c echo.Context, err error) (status int, problem string) {
	throttled, isThrottled := errors.AsType[*account.ThrottledError](err)
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		return http.StatusUnprocessableEntity, "The user name or password is wrong."
	case isThrottled:
		wait := int(math.Ceil(max(throttled.RetryAfter, time.Second).Seconds()))
		c.Response().Header().Set("Retry-After", strconv.Itoa(wait))
		return http.StatusTooManyRequests, "There were too many attempts. Try again in " + inWords(time.Duration(wait)*time.Second) + "."
	case errors.Is(err, account.ErrBusy):
		c.Response().Header().Set("Retry-After", "5")
		return http.StatusServiceUnavailable, "The server is busy. Try again in a few seconds."
	default:
		return 0, ""
	}
}

// moveOn answers a form: a page of our own that goes back to /authorize by itself.
func (h *edge) moveOn(c echo.Context, interaction string) error {
	return h.render(c, http.StatusOK, pageContinue, continuePage{
		Page: h.page("One moment", false),
		Next: h.stepURL(as.PathAuthorize, interaction),
	})
}

// continuePage is what the template between a form and /authorize shows.
type continuePage struct {
	Page page
	Next string
}
