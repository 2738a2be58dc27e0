// Package authzcli holds the commands of the authz binary. They work beside a running server: on the same store, never migrating
// it, and every change is audited with the user of the operating system.
//
// It owns their flags, what they print, and the files they write (keys of clients, copies of the store). It does not own what they
// do: clients, grants and revocations are those of package as, keys those of keyring, verdicts about tokens those of token, revocation
// and rar, which a hub asks as well.
//
// A result goes to standard output alone; the secret of a new client is printed there once, and nowhere else. With --json it is one JSON
// value, whose members are a contract: cli.JSONFlag puts them into the help, and docs/commands.md is made from that.
package authzcli
