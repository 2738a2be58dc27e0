// Package devapp builds the development server (hub dev): hub, authorization server, browser login and start page in one process,
// on two faces. HTTPS and plain HTTP are two sites, told apart by listener and never by the Host of a request: each has its own
// issuer, hub URL, resource, metadata, cookies and signing keys, and accepts its own tokens alone. Accounts, clients, grants and the
// history are one.
//
// It differs from production in what it says aloud: relative topics and patterns resolve against the HTTPS hub URL on both faces,
// the demo user signs in by one click, problem documents carry hints, and with InsecureCookie the plain face sets a cookie without
// Secure. It listens on loopback only and serves no host but localhost.
//
// An App is built by New, which opens the data folder and binds nothing, and works in Run, once.
package devapp
