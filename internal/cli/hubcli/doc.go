// Package hubcli holds the commands of the hub binary. Servers live in package app; the verbs that both binaries could have live
// in package cli.
package hubcli
