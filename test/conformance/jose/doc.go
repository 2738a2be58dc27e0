// Package jose makes the tokens of the conformance suite: right ones, and wrong ones in every way that a check needs.
//
// It owns keys and the compact serialisation and nothing else; it verifies nothing. Everything in it may be used by
// several goroutines at once.
//
// References: RFC 7515 (JWS), RFC 7517 (JWK), RFC 7518 (JWA), RFC 8037 (EdDSA).
package jose
