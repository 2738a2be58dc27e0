// Package account signs people in with user name and password, and makes and changes their accounts.
//
// It owns the spelling of user names, the rules for passwords and how they are hashed, and the throttle for guesses. It does not own
// where accounts are kept (see store), login pages and sessions (packages as and ashttp), the audit trail, or what a person may do.
//
// # User names
//
// Names are compared in the PRECIS profile UsernameCaseMapped (RFC 8265 section 3.3): width-mapped, lower case, NFC, no spaces or control
// characters. Only the canonical spelling is stored, so "Zoë", "ZOË" and the decomposed form are one name. Look-alikes of different
// scripts stay different names.
//
// # Passwords
//
// A password is brought into the PRECIS profile OpaqueString (RFC 8265 section 4.2) before it is hashed or compared, so that one that is typed
// on another keyboard or system still fits; case and inner spaces count. It is hashed with argon2id (RFC 9106) with a salt of its own.
// There are no rules about kinds of characters (NIST SP 800-63B section 3.1.1).
//
// # What an attacker learns
//
// Authenticate gives one error for an unknown name, a wrong password and a disabled account, and does the same work for each: for an
// unknown name a dummy hash is computed. Guesses are counted before they are checked, so parallel guesses cannot slip through, and are
// limited per name and address together, per name, and per address; unknown names count like known ones. The counters are in
// memory: a restart forgets them, and each process has its own.
//
// # Concurrency and memory
//
// All types are safe for concurrent use and start no goroutines. A Hasher computes a bounded number of hashes at once and lets a
// bounded number wait, so a flood of logins cannot exhaust memory: it gets ErrBusy.
package account
