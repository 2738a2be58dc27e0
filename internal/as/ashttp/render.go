package ashttp

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// The pages, by the names of their template files.
const (
	pageLogin    = "login"
	pageConsent  = "consent"
	pageContinue = "continue"
	pageError    = "error"
)

// pages are the parsed templates: each page with a layout of its own.
type pages map[string]*template.Template

func newPages(files fs.FS) (pages, error) {
	p := pages{}
	for _, name := range []string{pageLogin, pageConsent, pageContinue, pageError} {
		t, err := template.New(name).Option("missingkey=error").ParseFS(files, "layout.html", name+".html")
		if err != nil {
			return nil, fmt.Errorf("ashttp: parse %s page: %w", name, err)
		}
		p[name] = t
	}
	return p, nil
}

// page is what the layout shows.
type page struct {
	Title  string
	Failed bool   // the title says so first, for people who hear it
	Site   string // the issuer's host: which server this is
	Assets string
}

func (h *edge) page(title string, failed bool) page {
	p := page{Title: title, Failed: failed, Assets: h.base + pathAssets}
	if u, err := url.Parse(h.server.Issuer()); err == nil {
		p.Site = u.Host
	}
	return p
}

// render writes a page. It is made in memory first: a template that fails must not leave half a form.
func (h *edge) render(c echo.Context, status int, name string, data any) error {
	var body bytes.Buffer
	if err := h.pages[name].ExecuteTemplate(&body, "layout", data); err != nil {
		return fmt.Errorf("render %s page: %w", name, err)
	}
	httpserver.SetPageHeaders(c.Response().Header(), httpserver.PagePolicy{Forms: name == pageLogin || name == pageConsent})
	return c.HTMLBlob(status, body.Bytes())
}
