// Package refhub is a small reference hub of the Mercure protocol, written for reading, with faults that can be planted
// one at a time. The conformance suite proves itself on it: the faultless hub passes every check, and each fault turns
// the check red that exists to find it.
//
// It owns the whole protocol on one page each: publishing (publish.go), event streams (subscribe.go, stream.go,
// dispatch.go), tokens (present.go, token.go, rar.go), topics and matchers (topics.go, pattern.go, namespace.go),
// cross-origin rules (cors.go), active subscriptions (subscriptions.go), metadata (metadata.go), a minimal authorization
// server (authserver.go), and the faults (faults*.go). It does not own servers, certificates or configuration files: a
// [Hub] is an [http.Handler]. It shares no code with any other hub, because it is a second opinion.
//
// Everything lives in memory. One mutex orders all updates and owns history and streams; it is never held while a
// reader is written to, so that a slow reader holds up nobody. The goroutines are those of the HTTP server; Close ends
// the streams and waits for them.
package refhub
