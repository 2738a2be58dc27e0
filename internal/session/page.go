package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// pageStyle is the one style sheet of a page that has to stand without any other file.
const pageStyle = `:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}`

// pageText is shown when a callback belongs to no sign-in of this browser.
const pageText = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign-in not found</title>
<style>{{.Style}}</style>
</head>
<body>
<main>
<h1>This sign-in is no longer open</h1>
<p>It was finished already, took longer than ten minutes, or was started in another browser. Nothing was changed.</p>
<p><a href="{{.Login}}">Sign in again</a> or <a href="{{.Home}}">go to the start page</a>.</p>
</main>
</body>
</html>
`

// lostPage is rendered once: it says the same to everybody and repeats nothing of the request.
type lostPage struct {
	body   []byte
	policy string
}

func newLostPage(home, login string) (*lostPage, error) {
	var body bytes.Buffer
	data := struct {
		Style       template.CSS
		Home, Login string
	}{pageStyle, home, login}
	if err := template.Must(template.New("lost").Parse(pageText)).Execute(&body, data); err != nil {
		return nil, fmt.Errorf("session: render page: %w", err)
	}
	sum := sha256.Sum256([]byte(pageStyle))
	page := &lostPage{
		body: body.Bytes(),
		policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			base64.StdEncoding.EncodeToString(sum[:])),
	}
	return page, nil
}

func (p *lostPage) write(c echo.Context) error {
	h := c.Response().Header()
	httpserver.SetPageHeaders(h, httpserver.PagePolicy{})
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Referrer-Policy", "no-referrer") // the address may hold a code
	return c.HTMLBlob(http.StatusBadRequest, p.body)
}
