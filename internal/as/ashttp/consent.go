package ashttp

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
)

// consentPage is what the consent template shows.
type consentPage struct {
	Page         page
	Action       string
	Problem      string
	ResourceName string
	Permissions  []permission
	Lifetime     string // hides the view's
	as.ConsentView
}

// consentPage answers GET /consent.
func (h *edge) consentPage(c echo.Context) error {
	interaction := c.QueryParam(as.ParamInteraction)
	view, err := h.server.ConsentView(c.Request().Context(), interaction, h.cookie.read(c))
	if overtaken(err) {
		return seeOther(c, h.stepURL(as.PathAuthorize, interaction))
	}
	if err != nil {
		return h.failed(c, err)
	}
	return h.showConsent(c, http.StatusOK, view, "")
}

func (h *edge) showConsent(c echo.Context, status int, view as.ConsentView, problem string) error {
	return h.render(c, status, pageConsent, consentPage{
		Page:         h.page("Allow "+view.ClientName+"?", problem != ""),
		Action:       h.base + as.PathConsent,
		Problem:      problem,
		ResourceName: view.Resource.Name,
		Permissions:  describe(view.Details, view.Resource.HubURL, view.AccountID),
		Lifetime:     duration(view),
		ConsentView:  view,
	})
}

// duration says how long what is agreed to lasts.
func duration(v as.ConsentView) string {
	if v.Renewable == 0 {
		return inWords(v.Lifetime)
	}
	return inWords(v.Lifetime) + ", and can be renewed for " + inWords(v.Renewable)
}

// consent answers POST /consent.
func (h *edge) consent(c echo.Context) error {
	values, err := h.ownForm(c)
	if err != nil {
		return h.failed(c, err)
	}
	browser := h.cookie.read(c)
	form := as.ConsentForm{
		Interaction: values.Get("interaction"),
		FormToken:   values.Get("form_token"),
		Answer:      as.Answer(values.Get("answer")),
		Confirmed:   values.Get("confirmed") == "yes",
	}
	after, err := h.server.Consent(c.Request().Context(), form, browser)
	switch {
	case overtaken(err):
		return h.moveOn(c, form.Interaction)
	case errors.Is(err, as.ErrUnconfirmed):
		view, err := h.server.ConsentView(c.Request().Context(), form.Interaction, browser)
		if err != nil {
			return h.failed(c, err)
		}
		return h.showConsent(c, http.StatusUnprocessableEntity, view, "Confirm that you mean every topic, or deny.")
	case err != nil:
		return h.failed(c, err)
	}
	h.cookie.write(c, browser, after)
	return h.moveOn(c, form.Interaction)
}

// overtaken says whether the page is no longer what the interaction needs: the person signed out, or the policy changed. Then
// /authorize decides anew.
func overtaken(err error) bool {
	_, refused := errors.AsType[*as.OAuthError](err)
	return refused || errors.Is(err, as.ErrSignedOut)
}
