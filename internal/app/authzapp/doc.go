// Package authzapp builds the authorization server's process (authz serve), and the core that its commands and the development
// server stand on: the store, the accounts and the keys derived from the store's secret.
//
// A Core is safe for concurrent use; several processes may have one on the same files, which is how commands work beside a running
// server. An App is built by New and works in Run, once.
package authzapp
