package devapp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
)

// ErrOptions says that the server cannot work as it was asked to.
var ErrOptions = errors.New("dev: bad options")

// Options configures the development server.
type Options struct {
	// Listen is the address of the HTTPS face and HTTP that of the plain one: localhost or a loopback address, and a port.
	Listen, HTTP string
	// Ops is the address of the listener for operators, on loopback too; empty: none.
	Ops string
	// DataDir is where everything is kept. Empty with Ephemeral: a fresh temporary folder.
	DataDir string
	// Ephemeral starts with nothing, keeps updates in memory, and removes what it made when it ends.
	Ephemeral bool
	// InsecureCookie gives the plain face a cookie without Secure and prefix, for browsers that keep no other on http://localhost.
	InsecureCookie bool
	// CORSOrigins are allowed besides the usual development ports on localhost.
	CORSOrigins []string
	// Executable and Version are named in the printed commands and on the start page.
	Executable, Version string
	// Logger is required.
	Logger *slog.Logger
}

// address is a checked address to listen on.
type address struct {
	hosts []string // loopback addresses
	port  int
}

// parseAddress refuses everything but loopback: the demo sign-in must not be reachable from elsewhere.
func parseAddress(flag, s string) (address, error) {
	host, portText, err := net.SplitHostPort(s)
	if err != nil {
		return address{}, fmt.Errorf("%w: %s %q is not HOST:PORT", ErrOptions, flag, s)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 1 || port > 65535 {
		return address{}, fmt.Errorf("%w: %s %q needs a port between 1 and 65535, since URLs carry it", ErrOptions, flag, s)
	}
	if host == "localhost" || host == "" {
		return address{hosts: loopbackHosts(), port: port}, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return address{}, fmt.Errorf("%w: %s %q is not localhost or a loopback address; hub serve is for other networks", ErrOptions, flag, s)
	}
	return address{hosts: []string{host}, port: port}, nil
}

// loopbackHosts are the addresses that localhost stands for here.
func loopbackHosts() []string {
	hosts := []string{"127.0.0.1"}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(net.IPv6loopback) {
				hosts = append(hosts, "::1")
			}
		}
	}
	return hosts
}

// origin is the site that an address is reached as: always localhost, whatever loopback address it listens on.
func (a address) origin(scheme string, standardPort int) string {
	if a.port == standardPort {
		return scheme + "://localhost"
	}
	return scheme + "://localhost:" + strconv.Itoa(a.port)
}

// developmentOrigins are the pages that usual development servers serve on localhost.
func developmentOrigins() []string {
	var out []string
	for _, port := range []int{3000, 3001, 4173, 4200, 4321, 5000, 5173, 5174, 8000, 8081, 8888, 9000} {
		for _, scheme := range []string{"http", "https"} {
			out = append(out, fmt.Sprintf("%s://localhost:%d", scheme, port))
		}
	}
	return out
}
