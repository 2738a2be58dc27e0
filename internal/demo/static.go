package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

const (
	staticPrefix = "/static/"
	// maxStaticFiles and maxStaticBytes bound what is held in memory. The files are a handful of kilobytes.
	maxStaticFiles = 256
	maxStaticBytes = 4 << 20
)

// static holds files with all that answering needs, made once.
type static struct {
	files map[string]staticFile
}

type staticFile struct {
	body      []byte
	mediaType string
	etag      string
}

// newStatic reads every file of files whose kind is known. Media types are a closed list: what the system's
// tables say must not decide how a browser reads our scripts.
func newStatic(files fs.FS) (*static, error) {
	s := &static{files: map[string]staticFile{}}
	total := 0
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		mediaType := mediaTypeOf(name)
		if mediaType == "" {
			return nil
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if total += len(body); total > maxStaticBytes || len(s.files) >= maxStaticFiles {
			return fmt.Errorf("more than %d files or %d bytes", maxStaticFiles, maxStaticBytes)
		}
		sum := sha256.Sum256(body)
		etag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
		s.files[name] = staticFile{body: body, mediaType: mediaType, etag: etag}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("demo: read static files: %w", err)
	}
	return s, nil
}

func mediaTypeOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	}
	return ""
}

// serve answers GET and HEAD /static/*. Browsers ask again each time and are told "not modified": in development a
// rebuilt file must show at once.
func (s *static) serve(c echo.Context) error {
	file, ok := s.files[c.Param("*")]
	if !ok {
		return &httpserver.Problem{Status: http.StatusNotFound, Detail: "There is no such file."}
	}
	h := c.Response().Header()
	h.Set("Content-Type", file.mediaType)
	h.Set("ETag", file.etag)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(file.body))
	return nil
}
