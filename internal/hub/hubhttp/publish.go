package hubhttp

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// publish serves POST: the update in the form body is handed to the engine, and its id is the answer (PUB-30 to PUB-32). Fields in
// the query are not looked at (PUB-06).
func (a *api) publish(c echo.Context) error {
	r := c.Request()
	if err := a.checkURL(r); err != nil {
		return err
	}
	principal, by, err := a.authenticate(r, rar.Publish)
	if err != nil {
		return err
	}
	if principal == nil {
		return errNoToken
	}
	if by == carriedByCookie {
		if err := a.checkForgery(r); err != nil {
			return err
		}
	}
	pairs, err := a.readForm(c, a.options.Limits.BodyBytes)
	if err != nil {
		return err
	}
	update, err := mercure.ParseUpdate(pairs, a.options.Limits)
	if err != nil {
		return a.ruleFirst(err, pairs)
	}
	id, err := a.hub.Publish(r.Context(), principal, update)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(id))
}

// ruleFirst returns the error for a reserved topic in place of that for an exceeded limit: broken rules are reported
// first, and this is the one that mercure.ParseUpdate cannot know (NS-01). Topics beyond their own limits are not looked at.
func (a *api) ruleFirst(err error, pairs []mercure.Pair) error {
	if field, ok := errors.AsType[*mercure.FieldError](err); !ok || !field.TooLarge {
		return err
	}
	limits, seen := a.options.Limits, 0
	for _, p := range pairs {
		if p.Name != mercure.FieldTopic || limits.TopicBytes > 0 && len(p.Value) > limits.TopicBytes {
			continue
		}
		if seen++; limits.Topics > 0 && seen > limits.Topics {
			break
		}
		if a.compiler.Topic(p.Value).Reserved() {
			return hub.ErrReserved
		}
	}
	return err
}

// authenticate judges the credential of r for an endpoint. A request that presents none has a nil principal and no error.
func (a *api) authenticate(r *http.Request, endpoint rar.Action) (*hub.Principal, carrier, error) {
	cred, err := a.presented(r)
	if err != nil || cred.carrier == carriedByNothing {
		return nil, carriedByNothing, err
	}
	claims, err := a.verifier.Verify(r.Context(), cred.compact, endpoint)
	if err != nil {
		return nil, cred.carrier, err
	}
	return principalOf(claims), cred.carrier, nil
}

// principalOf is what the engine may know of a token.
func principalOf(c *token.Claims) *hub.Principal {
	return &hub.Principal{
		Issuer:    c.Issuer,
		Subject:   c.Subject,
		ClientID:  c.ClientID,
		TokenID:   c.ID,
		SessionID: c.SessionID,
		GrantID:   c.GrantID,
		IssuedAt:  c.IssuedAt,
		ExpiresAt: c.ExpiresAt,
		Grants:    c.Grants,
	}
}

// checkForgery lets a cookie publication pass only when it says that it comes from a page that may publish (SEC-05 to SEC-07).
// Browsers attach the cookie whoever made the request, and cannot be made to lie about who did.
func (a *api) checkForgery(r *http.Request) error {
	origin, ok := httpserver.SourceOrigin(r)
	switch {
	case !ok:
		return errUnknownOrigin
	case !a.publishOrigins.has(origin):
		return errForeignOrigin
	}
	return nil
}

// checkURL bounds the request target. It is a 400 also where HTTP would have 414, as all limits of the protocol are (LIM-03).
func (a *api) checkURL(r *http.Request) error {
	if limit := a.options.Limits.URLBytes; limit > 0 && len(r.RequestURI) > limit {
		return errURLTooLong
	}
	return nil
}
