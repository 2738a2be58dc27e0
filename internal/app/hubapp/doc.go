// Package hubapp builds the hub's process (hub serve) and the parts of it that the development server shares: the engine and its
// faces. An App is built by New, which opens the history and binds nothing, and works in Run. Neither is safe to call twice.
package hubapp
