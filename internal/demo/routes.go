package demo

import (
	"bytes"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// bookPath is where the demo resources live on the face; their topics live at Options.TopicBase + "/books/:id".
const bookPath = "/demo/books/"

// staticPrefix is where the page finds its scripts and styles.
const staticPrefix = "/static/"

// face holds what the handlers share. It is immutable after Register.
type face struct {
	options Options
	deps    Dependencies
	page    *template.Template
	view    view
}

// Register adds the start page (/), the demo resource (/demo/books/:id) and the static files (/static/*) to e, for GET
// and HEAD. It reads all templates and files, and reports those that are missing or malformed.
func Register(e *echo.Echo, o Options, d Dependencies) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := d.validate(); err != nil {
		return err
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	page, err := template.ParseFS(d.Templates, "start.html")
	if err != nil {
		return fmt.Errorf("demo: parse start page: %w", err)
	}
	hub, err := url.Parse(o.HubURL)
	if err != nil {
		return fmt.Errorf("demo: hub URL: %w", err)
	}
	f := &face{options: o, deps: d, page: page, view: newView(o, hub)}
	if err := page.Execute(&bytes.Buffer{}, f.view); err != nil {
		return fmt.Errorf("demo: render start page: %w", err)
	}
	static, err := httpserver.NewStatic(d.Static, "no-cache") // a rebuilt file must show at once
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for _, add := range []func(string, echo.HandlerFunc, ...echo.MiddlewareFunc) *echo.Route{e.GET, e.HEAD} {
		add("/", f.start)
		add(bookPath+":id", f.book)
		add(staticPrefix+"*", static.Serve)
	}
	return nil
}

// start answers GET /. The page says the outcome of a sign-in that failed, and is otherwise the same for all.
func (f *face) start(c echo.Context) error {
	data := f.view
	data.Problem = problemText(c.QueryParam("session_error"))
	var body bytes.Buffer
	if err := f.page.Execute(&body, data); err != nil {
		return fmt.Errorf("render start page: %w", err)
	}
	httpserver.SetPageHeaders(c.Response().Header(), httpserver.PagePolicy{Scripts: true, Forms: true})
	return c.HTMLBlob(http.StatusOK, body.Bytes())
}
