package hubhttp

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// address is a URL of the subscription API.
type address struct {
	path   string // as it was sent, without the query: the topic to authorise, and the id of a collection (ACT-26, ACT-27, ACT-38)
	query  hub.SubscriptionQuery
	single bool
}

// activeSubscriptions serves GET and HEAD of the collections of active subscriptions, and of single ones (ACT-24 to ACT-48).
//
// Nothing may be stored on the way: what is active changes at any time, and payloads are for those alone who have a grant.
func (a *api) activeSubscriptions(c echo.Context) error {
	r := c.Request()
	if err := a.checkURL(r); err != nil {
		return err
	}
	at, err := a.address(r)
	if err != nil {
		return err
	}
	if err := a.mayWatch(r, at); err != nil {
		return err
	}
	if at.single {
		return a.serveSingle(c, at)
	}
	return a.serveCollection(c, at)
}

// serveSingle answers with the document of a subscription (ACT-33 to ACT-35).
func (a *api) serveSingle(c echo.Context, at address) error {
	cursor, list, err := a.hub.ActiveSubscriptions(c.Request().Context(), at.query)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	a.setCursor(h, cursor)
	if len(list) == 0 {
		return errNoSubscription
	}
	h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, append(list[0].AppendJSON(nil), '\n'))
}

// serveCollection answers with a list (ACT-37 to ACT-40).
func (a *api) serveCollection(c echo.Context, at address) error {
	r, h := c.Request(), c.Response().Header()
	if r.Method == http.MethodHead { // it takes the cursor alone, and no list
		cursor, _, err := a.hub.ActiveSubscriptions(r.Context(), hub.SubscriptionQuery{MatchType: topic.Exact, Subscriber: "none"})
		if err != nil {
			return err
		}
		a.setCursor(h, cursor)
		h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		return c.NoContent(http.StatusOK)
	}
	lists := a.connections.lists
	m, err := lists.make(r.Context(), at.path, func(ctx context.Context) (string, []mercure.Subscription, error) {
		return a.hub.ActiveSubscriptions(ctx, at.query)
	})
	if err != nil {
		return err
	}
	defer m.free()
	a.setCursor(h, m.cursor)
	h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	lists.write(c.Response(), m.document)
	return nil
}

func (a *api) setCursor(h http.Header, cursor string) {
	h.Set("Link", mercure.HubLink(a.url, cursor)+`; type="`+mercure.ReservedEventType+`"; content-type="`+echo.MIMEApplicationJSON+`"`)
	h.Set(echo.HeaderCacheControl, "no-store")
}

// address reads the path of a request. Its segments are decoded once, as they were sent (ACT-07).
func (a *api) address(r *http.Request) (address, error) {
	at := address{path: r.URL.RawPath}
	if at.path == "" { // the usual form of URL.Path is what was sent
		at.path = r.URL.EscapedPath()
	}
	variables := strings.Split(at.path, "/")[a.depth+1:]
	for i, v := range variables {
		decoded, err := url.PathUnescape(v)
		if err != nil {
			return address{}, errNoResource
		}
		variables[i] = decoded
	}
	switch len(variables) {
	case 0:
		return at, nil
	case 3:
		at.single, at.query.Subscriber = true, variables[2]
		fallthrough
	case 2:
		at.query.MatchType, at.query.Match = topic.Type(variables[0]), variables[1]
	}
	if at.query.MatchType == "" || at.single && at.query.Subscriber == "" { // those of a query select more
		return address{}, errNoResource
	}
	return at, nil
}

// mayWatch judges whether the token of r grants the address (ACT-26 to ACT-31), also of a hub with anonymous subscribers. What is asked for in
// another spelling than that of its topic needs a grant for the topic as well: URL patterns see no matcher behind a raw "#" or backslash.
func (a *api) mayWatch(r *http.Request, at address) error {
	principal, _, err := a.authenticate(r, rar.Subscribe)
	if err != nil {
		return err
	}
	if principal == nil {
		return errNoToken
	}
	topics := []*topic.Topic{a.compiler.Topic(at.path)}
	own := mercure.SubscriptionsTopic(a.compiler.HubPath(), string(at.query.MatchType), at.query.Match, at.query.Subscriber)
	if own != at.path {
		topics = append(topics, a.compiler.Topic(own))
	}
	if !principal.Grants.AllowsAll(rar.Subscribe, topics) {
		return hub.ErrForbidden
	}
	return nil
}
