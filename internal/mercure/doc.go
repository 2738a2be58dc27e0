// Package mercure is the vocabulary of the Mercure protocol: names of
// parameters, fields, headers, the cookie and the link relation; updates and
// event ids; the rules for the fields of a publication and for the parameters
// of a subscription, with their limits.
//
// It does not own the rules that need to know the hub's URL: what a URL Pattern
// means, and whether a topic lies in the reserved namespace, are decided by
// packages topic and hub. It knows nothing of HTTP: it is handed decoded strings and
// returns values or a [*FieldError], whose text is fit for clients.
//
// # Parsing forms
//
// [ParseForm] is the application/x-www-form-urlencoded parser of the WHATWG URL
// standard, which the protocol prescribes for query components and which EventSource and
// URLSearchParams implement. net/url's parser must not be used instead: it
// refuses ";" and a stray "%", which are plain characters here (SUB-15 to
// SUB-21, PUB-07, PUB-37). Unlike the standard it keeps bytes that are not UTF-8 as they
// are, so that the rules can refuse them where the protocol demands it.
//
// # Rules and limits
//
// A broken rule is a 400; an exceeded limit is a 413 for publications (LIM-08)
// and a 400 for subscriptions (LIM-03). [FieldError] says which; where one
// request breaks both, the rule is reported.
//
// References: Mercure, "Subscription", "Publication" and "Reconnection, State
// Reconciliation, and Event Sourcing"; WHATWG URL, section 5.1.
//
// Everything here is safe for concurrent use; values are owned by the caller.
package mercure
