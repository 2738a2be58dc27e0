package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// HubPath is where the hub stands in every site that the tests make.
const HubPath = "/.well-known/mercure"

// Site is a running hub that can be reached over HTTPS, with whatever runs beside it.
type Site struct {
	*Process // the hub

	Data   string // the data folder, with the certificate authority in it
	Origin string // of the hub
}

// Hub is the hub URL.
func (s *Site) Hub() string { return s.Origin + HubPath }

// Client is Client with the site's certificate authority.
func (s *Site) Client() *http.Client { s.T.Helper(); return Client(s.T, CAFile(s.Data)) }

// SessionState is what GET {hub}/session says.
type SessionState struct {
	Active       bool      `json:"active"`
	ExpiresAt    time.Time `json:"expires_at"`
	RefreshAfter time.Time `json:"refresh_after"`
	Renewable    bool      `json:"renewable"`
	Username     string    `json:"username"`
}

// Session asks for the state of the client's session.
func (s *Site) Session(c *http.Client) SessionState {
	s.T.Helper()
	resp, body := Do(s.T, c, http.MethodGet, s.Hub()+"/session", nil, nil)
	var state SessionState
	if err := json.Unmarshal([]byte(body), &state); err != nil || resp.StatusCode != http.StatusOK {
		s.T.Fatalf("session = %d %s", resp.StatusCode, body)
	}
	if strings.Contains(body, "eyJ") {
		s.T.Fatalf("the session's state holds a token")
	}
	return state
}

// LoginURL is where a page sends a person to log in, to come back to a path of the hub's own origin.
func (s *Site) LoginURL(returnTo string) string {
	return s.Hub() + "/session/login?return_to=" + url.QueryEscape(returnTo)
}

// PublishAs publishes with a token and gives the event id.
func (s *Site) PublishAs(c *http.Client, token, topic, data string, private bool) string {
	s.T.Helper()
	form := url.Values{"topic": {topic}, "data": {data}}
	if private {
		form.Set("private", "on")
	}
	resp, body := Do(s.T, c, http.MethodPost, s.Hub(), form, Bearer(token))
	if resp.StatusCode != http.StatusOK {
		s.T.Fatalf("publish = %d %s", resp.StatusCode, body)
	}
	return body
}

// Dev is a running 'hub dev'.
type Dev struct {
	Site

	Plain string // the origin of its plain face
}

// PlainHub is the hub URL of the plain face.
func (d *Dev) PlainHub() string { return d.Plain + HubPath }

// StartDev starts the development server on free ports and waits for its banner.
func StartDev(tb testing.TB, data string, args ...string) *Dev {
	tb.Helper()
	ports := FreePorts(tb, 2)
	return StartDevOn(tb, data, ports[0], ports[1], args...)
}

// StartDevOn is StartDev on given ports.
func StartDevOn(tb testing.TB, data string, https, plain int, args ...string) *Dev {
	tb.Helper()
	d := &Dev{Site: Site{Data: data, Origin: fmt.Sprintf("https://localhost:%d", https)}, Plain: fmt.Sprintf("http://localhost:%d", plain)}
	all := append([]string{
		"dev", "--listen", fmt.Sprintf("localhost:%d", https), "--http", fmt.Sprintf("localhost:%d", plain), "--log-level", "debug",
	}, args...)
	if data != "" {
		all = append(all, "--data", data)
	}
	d.Process = Start(tb, "hub", all...)
	d.WaitFor("Stop with Ctrl-C")
	for _, name := range []string{"publish.header", "subscribe.header"} {
		if raw, err := os.ReadFile(filepath.Join(data, name)); err == nil {
			_, token, _ := strings.Cut(string(raw), "Bearer ")
			secretwatch.Add(tb, strings.TrimSpace(token))
		}
	}
	return d
}

// Header gives the Authorization header of one of the files that the printed commands use.
func (d *Dev) Header(name string) string {
	d.T.Helper()
	raw, err := os.ReadFile(filepath.Join(d.Data, name+".header"))
	if err != nil {
		d.T.Fatal(err)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(raw)), ": ")
	return value
}

// Publish publishes with the credential of the printed commands and gives the event id.
func (d *Dev) Publish(c *http.Client, topic, data string, private bool) string {
	d.T.Helper()
	return d.PublishAs(c, strings.TrimPrefix(d.Header("publish"), "Bearer "), topic, data, private)
}

// SignIn goes from the login endpoint through login and consent back to the start page, without a browser.
func (d *Dev) SignIn(c *http.Client) {
	d.T.Helper()
	p := Person{Client: c}
	at := p.Open(d.T, d.LoginURL("/"))
	at = p.Press(d.T, at, "demo")
	at = p.Press(d.T, at, "allow")
	if at.URL.String() != d.Origin+"/" {
		d.T.Fatalf("ended at %s%s: %s", at.URL.Host, at.URL.Path, Text(at.Body))
	}
}
