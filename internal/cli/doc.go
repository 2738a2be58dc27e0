// Package cli holds what the commands of both binaries share: their environment, exit codes, the way they find a hub and a
// token, and the verbs publish and subscribe. The verbs of one binary live in hubcli and authzcli, so that authz does not
// link the hub engine.
//
// Output for people and errors go to standard error, results go to standard output, so that a token or an id can be taken
// with $(…). A command never prints a token it was given.
package cli
