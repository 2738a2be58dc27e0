package httpserver

import (
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// HostGate returns middleware that answers 421 (Misdirected Request) unless the host of the request is one of hosts, which
// are written without port, IPv6 addresses without brackets. Development listeners use it so that a page of another
// site, whose name was re-bound to a loopback address, cannot talk to them. The port does not matter: it may be forwarded.
func HostGate(hosts ...string) echo.MiddlewareFunc {
	allowed := make(map[string]struct{}, len(hosts))
	for _, h := range hosts {
		allowed[strings.ToLower(h)] = struct{}{}
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if _, ok := allowed[hostOnly(c.Request().Host)]; !ok {
				return &Problem{
					Status: http.StatusMisdirectedRequest,
					Detail: "This listener serves other host names.",
				}
			}
			return next(c)
		}
	}
}

func hostOnly(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(host)
}
