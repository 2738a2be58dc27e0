// Package keyring keeps the signing keys of one issuer through their lives.
//
// It owns which key signs what and which keys are published when. It does not own their storage (port [Store]), the
// format of keys and tokens (package token), nor who may have a token (package as).
//
// # Families
//
// An issuer has three families of keys: for tokens that subscribe, for tokens that publish, and for tokens that do both. A
// token is signed with the family equal to its actions, and the published key says in mercure_actions which that is. So a
// key that signs subscriptions for browsers, once stolen, publishes nothing.
//
// # States
//
// The state of a key is a pure function of its entry and the time; nothing has to run for it to change.
//
//	next      published, not signing yet: lasts at least 10 minutes, so that verifiers that cache the set know it in time
//	active    signing; of several active keys of a family the youngest signs
//	retiring  published, no longer signing: lasts the longest token life and 10 minutes more
//	gone      not published; tokens signed with it are refused
//
// The first keys of an issuer are active at once: nobody has cached a set without them.
//
// # Rotation
//
// [Ring.Rotate] gives each family its next key, and plans the end of the one that signs, in one write. Processes that rotate at once
// agree through the version of the set. What holds at every instant, through any number of rotations:
//
//   - exactly one key of a family is active;
//   - a token verifies until it expires, unless its key was withdrawn by an immediate rotation with Revoke;
//   - the published set stays short enough for those who read it.
//
// # Concurrency
//
// A [Ring] is safe for concurrent use. It follows changes made by other processes within a second while [Ring.Run] runs.
//
// References: RFC 7517; RFC 7638; Mercure, "Token Validation".
package keyring
