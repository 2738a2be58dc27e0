// Package devcert makes the certificate of the development server: a throw-away certificate authority, limited to localhost
// and the loopback addresses by critical name constraints (RFC 5280 section 4.2.1.10), signs one certificate, and its key is
// discarded at once. So trusting it can never make another host's certificate valid.
//
// It also puts the authority into the stores of the system and the browsers, and takes it out again. Functions are not safe for
// concurrent use on one folder.
package devcert
