package ashttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// assets are the files that the pages load. It is immutable.
type assets map[string]asset

type asset struct {
	body      []byte
	mediaType string
	etag      string
}

// newAssets reads the files the layout names.
func newAssets(files fs.FS) (assets, error) {
	a := assets{}
	for name, mediaType := range map[string]string{"app.css": "text/css; charset=utf-8", "logo.svg": "image/svg+xml"} {
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("ashttp: read asset: %w", err)
		}
		sum := sha256.Sum256(body)
		a[name] = asset{body: body, mediaType: mediaType, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
	}
	return a, nil
}

// serve answers GET and HEAD of a file. Browsers ask again after an hour, and get 304 until the program is replaced.
func (a assets) serve(c echo.Context) error {
	file, ok := a[c.Param("*")]
	if !ok {
		return &httpserver.Problem{Status: http.StatusNotFound, Detail: "There is no such file."}
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, file.mediaType)
	h.Set("ETag", file.etag)
	h.Set("Cache-Control", "public, max-age=3600")
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(file.body))
	return nil
}
