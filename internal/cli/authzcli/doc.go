// Package authzcli holds the commands of the authz binary. They work beside a running server: on the same store, never migrating
// it, and every change is audited with the user of the operating system.
package authzcli
