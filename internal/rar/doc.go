// Package rar holds the authorization details of the Mercure protocol (RFC 9396): their strict parsing, the grants a
// hub derives from them, and what an authorization server does to them before they reach a token.
//
// It owns the wire form of a detail, the evaluation of grants, the rules of the authorization server's request
// parameter, narrowing to a ceiling and the expansion of templates. It does not own tokens (package token), policies
// and consent (package as), nor the words that describe a detail to people.
//
// # Invariants
//
//   - Member names are compared byte for byte, and a duplicate name in a Mercure detail, or a duplicate type in any,
//     refuses the whole claim, so that two parsers of one token can not see two different grants.
//   - What [Narrow] returns is contained in the ceiling, as far as [topic.Contains] proves it.
//   - A value that [Expand] puts into a matcher stays within its path segment, query value or label, and no two
//     lists of values give the same matcher.
//
// # Concurrency
//
// [Grants] is immutable and safe for concurrent use; everything else is a pure function of its arguments.
//
// References: RFC 9396; Mercure, "Authorization Details" and "Payload"; RFC 8259.
package rar
