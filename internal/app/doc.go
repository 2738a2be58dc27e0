// Package app holds what the composition roots share. The roots themselves are its sub-packages: hubapp (hub serve), authzapp
// (authz serve and what the commands of authz stand on) and devapp (hub dev). They are the only packages that choose drivers, and
// the only ones that see both the hub and the authorization server.
//
// A root's New builds everything and binds nothing; Run binds the listeners, says when it is ready, works until its context ends or
// something fails, and then stops in order: no new requests, streams drained, work finished, stores closed last.
package app
