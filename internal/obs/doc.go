// Package obs is how an operator looks into a running Cinnabar: logs, metrics and the operations endpoints.
//
// It owns: the set-up of slog with its redaction of secrets, the Prometheus metrics with their documented names, and the handler
// for /livez, /readyz, /metrics and the profiler. It does not own: what is counted when. Metrics satisfies the small
// ports that the hub, its edge and its revocation lists declare by structure alone, so neither side imports the other.
//
// Concurrency: everything here is safe for concurrent use.
//
// Invariants: the number of time series does not depend on clients, topics or subjects; no secret passes the log handler
// under a key that is known to carry one; the operations handler is never mounted on a public listener.
//
// References: the Prometheus naming guide, https://prometheus.io/docs/practices/naming/.
package obs
