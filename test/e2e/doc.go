// Package e2e holds tests only: they build the programs, start them as a user would, and look at what comes out, with an HTTP
// client, with curl and with a browser. Everything the programs print is kept for the checker of secrets (package report).
package e2e
