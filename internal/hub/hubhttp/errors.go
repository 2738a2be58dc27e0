package hubhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Errors that arise at this edge. They never leave the package: the table below turns them into answers.
var (
	errNoToken            = errors.New("hubhttp: no token where one is needed")
	errMalformedBearer    = errors.New("hubhttp: malformed Authorization field")
	errTwoAuthorizations  = errors.New("hubhttp: several Authorization fields")
	errTwoCookies         = errors.New("hubhttp: different cookies of the same name")
	errForeignOrigin      = errors.New("hubhttp: cookie publication from an origin that is not listed")
	errUnknownOrigin      = errors.New("hubhttp: cookie publication without origin")
	errMediaType          = errors.New("hubhttp: body is not a form")
	errBodyTooLarge       = errors.New("hubhttp: body exceeds the limit")
	errQueryTooLarge      = errors.New("hubhttp: body of a subscription exceeds the limit")
	errBodyUnread         = errors.New("hubhttp: body could not be read")
	errBodyTimeout        = errors.New("hubhttp: body came too slowly")
	errCostlyMatchers     = errors.New("hubhttp: the regular expressions of a subscription are too large together")
	errURLTooLong         = errors.New("hubhttp: request target exceeds the limit")
	errTooManyConnections = errors.New("hubhttp: too many streams")
	errAddressConnections = errors.New("hubhttp: too many streams of one client address")
	errMethod             = errors.New("hubhttp: method not allowed")
	errNoResource         = errors.New("hubhttp: no such resource below the subscriptions")
	errNoSubscription     = errors.New("hubhttp: no such subscription")
	errManyLists          = errors.New("hubhttp: too many lists of subscriptions at once")
)

// answer is what a client is told about an error.
type answer struct {
	status     int
	reason     string        // low-cardinality name for the log and the metrics
	challenge  challenge     // which WWW-Authenticate field comes with it
	retryAfter time.Duration // when to try again; 0 says nothing
	detail     string
	hint       string
	field      string
	// quiet keeps a failure of the server out of the warnings: the log says it elsewhere, or nothing is wrong.
	quiet bool
	// gone says that nobody waits for the answer any more.
	gone bool
	// closeConnection ends the connection: whoever comes again should find the successor, and not this process by a connection it
	// has kept.
	closeConnection bool
}

// rule says which answer an error gets.
type rule struct {
	target error
	answer answer
}

// Details that several answers share, or that say more than fits beside one.
const (
	noToken    = "This request needs an access token: Authorization: Bearer TOKEN, or the cookie that the hub's metadata names."
	notGranted = "The token is valid, and does not allow this on every topic of the request."

	busy     = "The hub cannot take this request at the moment."
	tooLarge = "The body exceeds the limit of this hub."
	origin   = "Publishing with the cookie needs the Origin (or Referer) of a page that may publish."
)

// table maps every sentinel of this package, the engine, its sinks, the verifier and the topic compiler to its answer. A test walks the
// exported sentinels of those packages and fails on one that is missing here.
func table() []rule { return slices.Concat(ownRules(), othersRules()) }

// ownRules are those of the errors that arise at this edge.
func ownRules() []rule {
	return []rule{
		{errNoToken, answer{status: http.StatusUnauthorized, reason: "no_token", challenge: challengeBare, detail: noToken}},
		{errMalformedBearer, answer{
			status: http.StatusBadRequest, reason: "malformed_authorization", challenge: challengeInvalidRequest,
			detail: "The Authorization field is not a token presented as Bearer.",
			hint:   "Send one field of the form: Authorization: Bearer TOKEN",
		}},
		{errTwoAuthorizations, answer{
			status: http.StatusBadRequest, reason: "several_authorizations", challenge: challengeInvalidRequest, detail: "The request has several Authorization fields.",
		}},
		{errTwoCookies, answer{
			status: http.StatusBadRequest, reason: "several_cookies", challenge: challengeInvalidRequest,
			detail: "The request has several different token cookies.",
			hint:   "Cookies for the host and for a parent domain, or for different paths, are sent together: delete one.",
		}},
		{errForeignOrigin, answer{
			status: http.StatusForbidden, reason: "foreign_origin", detail: origin,
			hint: "List the page's origin in publish_origins, or publish with an Authorization field.",
		}},
		{errUnknownOrigin, answer{
			status: http.StatusForbidden, reason: "unknown_origin", detail: origin,
			hint: "Outside browsers, publish with an Authorization field instead of the cookie.",
		}},
		{errMediaType, answer{
			status: http.StatusUnsupportedMediaType, reason: "media_type",
			detail: "The body must be " + mercure.FormMediaType + ", uncompressed.",
		}},
		{errBodyTooLarge, answer{status: http.StatusRequestEntityTooLarge, reason: "body_too_large", detail: tooLarge}},
		{errQueryTooLarge, answer{status: http.StatusBadRequest, reason: "body_too_large", detail: tooLarge}},
		{errBodyUnread, answer{status: http.StatusBadRequest, reason: "body_unread", detail: "The body could not be read."}},
		{errBodyTimeout, answer{status: http.StatusRequestTimeout, reason: "body_timeout", detail: "The body came too slowly."}},
		{errURLTooLong, answer{
			status: http.StatusBadRequest, reason: "url_too_long", detail: "The URL exceeds the limit of this hub.",
			hint: "Send the matchers in the body of a QUERY request, or select topics by match_urlpattern.",
		}},
		{errCostlyMatchers, answer{
			status: http.StatusBadRequest, reason: "costly_matchers", detail: "The regular expressions of this subscription are too large together.",
			hint: "Use named groups and wildcards instead, or fewer patterns.",
		}},
		{errTooManyConnections, answer{
			status: http.StatusTooManyRequests, reason: "connections_total", retryAfter: 30 * time.Second,
			detail: "The hub has no room for another stream.",
		}},
		{errAddressConnections, answer{
			status: http.StatusTooManyRequests, reason: "connections_per_address", retryAfter: 30 * time.Second,
			detail: "This client address has too many open streams.",
			hint:   "One stream can carry many topics: repeat the match parameter.",
		}},
		{errMethod, answer{status: http.StatusMethodNotAllowed, reason: "method"}},
		{errNoResource, answer{
			status: http.StatusNotFound, reason: "no_resource", detail: "There is nothing at this address.",
			hint: "Subscriptions are at subscriptions, subscriptions/{match_type}/{match} and subscriptions/{match_type}/{match}/{subscriber}, each variable percent-encoded.",
		}},
		{errNoSubscription, answer{
			status: http.StatusNotFound, reason: "no_subscription", detail: "There is no such subscription, or it has ended.",
		}},
		{errManyLists, answer{
			status: http.StatusServiceUnavailable, reason: "lists", retryAfter: 5 * time.Second, quiet: true, // nothing is wrong
			detail: "The hub has too many lists of subscriptions to send at the moment.", hint: "The list of one matcher is shorter.",
		}},
	}
}

// othersRules are those of the errors that come from the packages behind it.
func othersRules() []rule {
	return []rule{
		{hub.ErrReserved, answer{
			status: http.StatusBadRequest, reason: "reserved_topic", field: mercure.FieldTopic,
			detail: "A topic lies in the namespace that is reserved for the hub.",
			hint:   "Topics are resolved against the hub URL: an empty or relative topic, a query or a fragment can end up there.",
		}},
		{hub.ErrForbidden, answer{status: http.StatusForbidden, reason: "insufficient_scope", challenge: challengeInsufficientScope, detail: notGranted}},
		{hub.ErrNoMatcher, answer{status: http.StatusBadRequest, reason: "field", field: mercure.ParamMatch, detail: "A subscription needs at least one matcher."}},
		{hub.ErrTooLarge, answer{
			status: http.StatusRequestEntityTooLarge, reason: "update_too_large", detail: "The update exceeds what the history of this hub can hold.",
		}},
		{hub.ErrTooManySubscribers, answer{
			status: http.StatusTooManyRequests, reason: "subscribers", retryAfter: 30 * time.Second,
			detail: "The hub has no room for another stream.",
		}},
		{hub.ErrDraining, answer{
			status: http.StatusServiceUnavailable, reason: "draining", retryAfter: time.Second, detail: busy,
			quiet: true, closeConnection: true, // somebody stops the hub, and knows it
		}},
		{sink.ErrClosed, answer{status: http.StatusServiceUnavailable, reason: "closed", retryAfter: time.Second, detail: busy}},
		{hub.ErrUnavailable, answer{
			status: http.StatusServiceUnavailable, reason: "unavailable", retryAfter: 5 * time.Second, detail: busy,
			quiet: true, // the history says so, once
		}},

		{token.ErrUnavailable, answer{status: http.StatusServiceUnavailable, reason: "keys_unavailable", retryAfter: 5 * time.Second, detail: busy}},

		{topic.ErrPattern, answer{status: http.StatusBadRequest, reason: "pattern", detail: "A match_urlpattern value is not a URL Pattern."}},
		{topic.ErrPatternTooLong, answer{status: http.StatusBadRequest, reason: "pattern_too_long", detail: "A matcher exceeds the limit of this hub."}},
		{topic.ErrUnsupportedType, answer{status: http.StatusBadRequest, reason: "matcher_type", detail: "A matcher type is not supported by this hub."}},
	}
}

// classify finds the answer to err. What no rule knows is a defect: the client learns nothing, the log everything.
func (a *api) classify(err error) answer {
	if invalid, ok := invalidToken(err); ok {
		ans := answer{status: http.StatusUnauthorized, reason: "invalid_token", challenge: challengeInvalidToken}
		if a.options.DevHints {
			ans.hint = tokenHint(invalid.Check)
		}
		return ans
	}
	if field, ok := errors.AsType[*mercure.FieldError](err); ok {
		ans := answer{
			status: http.StatusBadRequest, reason: "field", field: fieldName(field.Field, "other"), hint: field.Hint,
			detail: strings.TrimPrefix(field.Error(), "mercure: "),
		}
		if field.TooLarge {
			ans.status, ans.reason = http.StatusRequestEntityTooLarge, "field_too_large"
		}
		return ans
	}
	for _, r := range a.rules {
		if errors.Is(err, r.target) {
			return r.answer
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return answer{status: http.StatusServiceUnavailable, reason: "cancelled", gone: true}
	}
	return answer{status: http.StatusInternalServerError, reason: "internal"}
}

// invalidToken returns why err makes a token invalid, if it does. Beside the verifier's verdicts there is one of the engine: the
// token was revoked between its verification and its use. It gets the same bare answer as any other (ERR-13).
func invalidToken(err error) (*token.InvalidError, bool) {
	if errors.Is(err, hub.ErrRevoked) {
		return &token.InvalidError{Check: token.CheckRevocation, Reason: "revoked while the request was being served"}, true
	}
	return errors.AsType[*token.InvalidError](err)
}

// refuse answers c with what err deserves, and writes the one log line about it.
func (a *api) refuse(c echo.Context, endpoint string, err error) error {
	ans := a.classify(err)
	h := c.Response().Header()
	if value := a.challenges.value(ans.challenge); value != "" {
		h.Set(echo.HeaderWWWAuthenticate, value)
	}
	if ans.retryAfter > 0 {
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(int(ans.retryAfter/time.Second)))
	}
	if ans.closeConnection {
		h.Set(echo.HeaderConnection, "close")
	}
	problem := httpserver.Problem{Status: ans.status, Detail: ans.detail, Hint: ans.hint, Field: ans.field}
	if invalid, ok := invalidToken(err); ok && a.options.DevHints {
		problem.Check = string(invalid.Check)
	}
	a.logRefusal(c, endpoint, ans, err)
	if a.metrics != nil {
		a.metrics.RequestRefused(endpoint, ans.reason, ans.status)
	}
	return httpserver.WriteProblem(c, problem)
}

// logRefusal writes why a request was refused: the only place where the reason of an invalid token can be read (ERR-13). The
// line has no topic, no query and nothing of the token.
func (a *api) logRefusal(c echo.Context, endpoint string, ans answer, err error) {
	attrs := []slog.Attr{
		slog.String("request_id", httpserver.RequestID(c)),
		slog.String("endpoint", endpoint),
		slog.Int("status", ans.status),
		slog.String("reason", ans.reason),
	}
	invalid, isInvalid := invalidToken(err)
	var field *mercure.FieldError
	switch {
	case isInvalid:
		attrs = append(attrs, slog.String("check", string(invalid.Check)), slog.String("detail", invalid.Reason))
	case ans.status >= http.StatusInternalServerError:
		attrs = append(attrs, slog.String("error", err.Error()))
	case errors.As(err, &field):
		attrs = append(attrs, slog.String("field", ans.field), slog.String("rule", field.Rule))
	}
	a.log.LogAttrs(c.Request().Context(), ans.level(), "request refused", attrs...)
}

// level is the level of the log line about the answer.
func (a answer) level() slog.Level {
	switch {
	case a.gone:
		return slog.LevelDebug
	case a.quiet, a.status < http.StatusInternalServerError:
		return slog.LevelInfo
	case a.status == http.StatusInternalServerError:
		return slog.LevelError
	default:
		return slog.LevelWarn
	}
}

// fieldName returns name if the protocol knows it, and other otherwise: a client can put anything into a name, topics included,
// and that must not reach the log.
func fieldName(name, other string) string {
	switch name {
	case mercure.FieldTopic, mercure.FieldData, mercure.FieldPrivate, mercure.FieldID, mercure.FieldType, mercure.FieldRetry,
		mercure.ParamMatch, mercure.ParamMatchPrefix + string(topic.Exact), mercure.ParamMatchPrefix + string(topic.URLPattern),
		mercure.ParamLastEventID, "form":
		return name
	default:
		return other
	}
}
