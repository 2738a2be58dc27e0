package httpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxStaticFiles and maxStaticBytes bound what is held in memory. The files are a handful of kilobytes.
	maxStaticFiles = 256
	maxStaticBytes = 4 << 20
)

// Static serves files that are part of the program. It is immutable and safe for concurrent use.
type Static struct {
	files        map[string]staticFile
	cacheControl string
}

type staticFile struct {
	body      []byte
	mediaType string
	etag      string
}

// NewStatic reads the named files, or every file whose kind is known when none is named; a named file that is missing or of an
// unknown kind is an error. Media types are a closed list: what the system's tables say must not decide how a browser reads
// our scripts. cacheControl is what answers say to caches.
func NewStatic(files fs.FS, cacheControl string, names ...string) (*Static, error) {
	s := &Static{files: map[string]staticFile{}, cacheControl: cacheControl}
	total := 0
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		mediaType := mediaTypeOf(name)
		if mediaType == "" || len(names) > 0 && !slices.Contains(names, name) {
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
		return nil, fmt.Errorf("read static files: %w", err)
	}
	for _, name := range names {
		if _, ok := s.files[name]; !ok {
			return nil, fmt.Errorf("read static files: %s: %w", name, fs.ErrNotExist)
		}
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

// Serve answers GET and HEAD of the file that the route's wildcard names, and 404 for any other. Browsers that ask again are told
// "not modified" until the program is replaced.
func (s *Static) Serve(c echo.Context) error {
	file, ok := s.files[c.Param("*")]
	if !ok {
		return &Problem{Status: http.StatusNotFound, Detail: "There is no such file."}
	}
	h := c.Response().Header()
	h.Set("Content-Type", file.mediaType)
	h.Set("ETag", file.etag)
	h.Set("Cache-Control", s.cacheControl)
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(file.body))
	return nil
}
