// Package interop holds tests only: clients that nobody here wrote, unchanged, against the real programs over TLS that is
// verified: oauth4webapi under Node (npm ci --prefix test/interop installs it) and golang.org/x/oauth2.
package interop
