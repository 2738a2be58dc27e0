// Package hubhttp is the HTTP edge of the hub: it turns requests into calls of the engine, and errors into answers.
//
// It owns: the routes of the hub (routes.go is the only list), how a token is presented (header before cookie), the forgery
// check of cookie publishing, CORS, the parameters of a request as they arrive in HTTP, limits on connections, the
// protected resource metadata, the documents of active subscriptions, and the one table of errors with their status, challenge and problem document.
//
// It does not own: what a token means (token), what an update or a matcher is (mercure, topic), who may publish or read
// what (hub), how bytes reach a subscriber (hub/sink), listeners and middleware (httpserver).
//
// # Order of refusals
//
// 401 (no token, or an invalid one) comes before anything the body can say; then 400, which includes what is refused
// whatever the token (reserved topics, "*"); then 413; then 403. A forged cookie request is the exception: it is answered 403
// before its body is read, because nothing in it is to be trusted.
//
// # Credentials
//
// A request that presents a credential is served with it or refused with 401, never served as anonymous (TOK-25). A
// presentation that cannot be read is 400 with a challenge (ERR-08). Every reason for which a token is invalid has the same
// answer (ERR-13), a revocation that the engine finds after the verification among them; the log has the reason, under the request id that the client is told.
//
// # Concurrency
//
// Handlers keep nothing of a request once the sink has it: no request, context or echo context. The only state shared by
// requests is the count of connections.
//
// References: Mercure, "Subscription", "Publication", "Authorization", "Active Subscriptions" and "Discovery"; RFC 6750; RFC 9457; RFC 9728; the
// Fetch standard for CORS.
package hubhttp
