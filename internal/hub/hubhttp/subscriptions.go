package hubhttp

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// documentChunk is about how many bytes of a collection are written at a time.
	documentChunk = 64 << 10
	// documentPatience is how long a reader may take for that.
	documentPatience = 30 * time.Second
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
	cursor, list, err := a.hub.ActiveSubscriptions(r.Context(), at.query)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Link", mercure.HubLink(a.url, cursor)+`; type="`+mercure.ReservedEventType+`"; content-type="`+echo.MIMEApplicationJSON+`"`)
	h.Set(echo.HeaderCacheControl, "no-store")
	if at.single && len(list) == 0 {
		return errNoSubscription
	}
	h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	switch {
	case r.Method == http.MethodHead:
		return c.NoContent(http.StatusOK)
	case at.single:
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, append(list[0].AppendJSON(nil), '\n'))
	default:
		writeCollection(c.Response(), at.path, list)
		return nil
	}
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

// writeCollection writes the document of a collection (ACT-37 to ACT-40), in the order of the ids, so that equal lists have equal
// documents. An error means that the reader is gone: there is nobody to be told.
func writeCollection(w *echo.Response, path string, list []mercure.Subscription) {
	slices.SortFunc(list, func(a, b mercure.Subscription) int { return cmp.Compare(a.ID, b.ID) })
	deadlines := http.NewResponseController(w.Writer)
	defer func() { _ = deadlines.SetWriteDeadline(time.Time{}) }() // the connection may serve others
	buf := append(make([]byte, 0, min(documentChunk, 256*(len(list)+1))), `{"id":`...)
	buf, _ = jsontext.AppendQuote(buf, strings.ToValidUTF8(path, "\uFFFD")) // the one error is about UTF-8
	buf = append(buf, `,"type":"subscriptions","subscriptions":[`...)
	for i := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = list[i].AppendJSON(buf)
		if len(buf) >= documentChunk {
			_ = deadlines.SetWriteDeadline(time.Now().Add(documentPatience))
			if _, err := w.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	_ = deadlines.SetWriteDeadline(time.Now().Add(documentPatience))
	_, _ = w.Write(append(buf, "]}\n"...))
}
