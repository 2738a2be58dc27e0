// Package demo serves what a person meets first at `hub dev`: the start page, a demo resource that announces
// the hub, and the static files both need. Nothing else registers it.
//
// It owns the start page's data and headers and the demo resource. It does not own signing in (package
// session), publishing and subscribing (the page's script talks to the hub like any other client), or the
// templates and scripts themselves (package web, handed in as file systems).
//
// The demo resource shows discovery (Mercure, "Discovery"): it answers with Link header fields that
// name the hub, the topic, and the event from which a reader misses nothing.
//
// Everything is prepared by Register and safe for concurrent use. The page is the same for everybody; who is
// signed in is found out by its script.
package demo
