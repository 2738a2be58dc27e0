// Package web embeds the files that browsers get: the templates of the pages and the static files beside them.
//
// It owns the files and nothing else. Rendering, paths, media types and caching belong to the edges that serve them
// (packages ashttp and demo). Pages work without JavaScript; what script there is comes as files of their own, since no page
// allows inline script or style. There is no bundler and no third-party asset.
//
// Everything is safe for concurrent use.
package web

import (
	"embed"
	"io/fs"
)

//go:embed templates static
var files embed.FS

// Templates returns the templates (html/template), each in a file of its own at the root.
func Templates() fs.FS { return sub("templates") }

// Static returns the static files.
func Static() fs.FS { return sub("static") }

// sub never fails: the folders are embedded, or this package does not compile.
func sub(folder string) fs.FS {
	f, err := fs.Sub(files, folder)
	if err != nil {
		return files
	}
	return f
}
