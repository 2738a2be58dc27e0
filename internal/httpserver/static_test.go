package httpserver_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

func TestStatic(t *testing.T) {
	files := fstest.MapFS{
		"app.css":   {Data: []byte("body{}")},
		"start.js":  {Data: []byte("export {}")},
		"notes.txt": {Data: []byte("not for browsers")},
	}
	all, err := httpserver.NewStatic(files, "no-cache")
	if err != nil {
		t.Fatal(err)
	}
	one, err := httpserver.NewStatic(files, "public, max-age=3600", "app.css")
	if err != nil {
		t.Fatal(err)
	}
	e, err := httpserver.NewEcho(httpserver.EchoOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e.GET("/all/*", all.Serve)
	e.GET("/one/*", one.Serve)
	get := func(path, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	for path, want := range map[string]int{
		"/all/app.css": http.StatusOK, "/all/start.js": http.StatusOK, "/all/notes.txt": http.StatusNotFound, "/all/nosuch.css": http.StatusNotFound,
		"/one/app.css": http.StatusOK, "/one/start.js": http.StatusNotFound, "/all/../app.css": http.StatusNotFound,
	} {
		if w := get(path, ""); w.Code != want {
			t.Errorf("%s = %d, want %d", path, w.Code, want)
		}
	}
	w := get("/one/app.css", "")
	if got := w.Header(); got.Get("Content-Type") != "text/css; charset=utf-8" || got.Get("Cache-Control") != "public, max-age=3600" {
		t.Errorf("header = %v", got)
	}
	if again := get("/one/app.css", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("asked again = %d, want 304", again.Code)
	}
	if _, err := httpserver.NewStatic(files, "", "nosuch.css"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file = %v, want fs.ErrNotExist", err)
	}
}
