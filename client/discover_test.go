package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/client"
)

func TestDiscover(t *testing.T) {
	const hub = "https://hub.example.com/.well-known/mercure"
	for name, c := range map[string]struct {
		path  string
		links []string
		kind  string
		want  client.Discovery // ORIGIN stands for the server's
		err   error
	}{
		"DISC-02 the hub alone": {
			links: []string{`<` + hub + `>; rel="mercure"`}, kind: "application/ld+json; charset=utf-8",
			want: client.Discovery{HubURL: hub, Topic: "ORIGIN/books/1?lang=en", ContentType: "application/ld+json; charset=utf-8"},
		},
		"everything": {
			links: []string{
				`</books/1>; rel="canonical"`,
				`<` + hub + `>; rel="preconnect Mercure"; last-event-id="urn:uuid:1"; type=sold; content-type="application/merge-patch+json", <1.jsonld>; rel=self`,
			},
			want: client.Discovery{
				HubURL: hub, Topic: "ORIGIN/books/1.jsonld", Cursor: "urn:uuid:1", EventType: "sold", ContentType: "application/merge-patch+json",
			},
		},
		"relative targets": {
			links: []string{`</.well-known/mercure>; rel=mercure`, `<>; rel=self`},
			want:  client.Discovery{HubURL: "ORIGIN/.well-known/mercure", Topic: "ORIGIN/books/1?lang=en", ContentType: "text/plain"},
		},
		"relative to where a redirect led": {
			path: "/redirect/2", links: []string{`<hub>; rel=mercure`},
			want: client.Discovery{HubURL: "ORIGIN/books/hub", Topic: "ORIGIN/books/1?lang=en", ContentType: "text/plain"},
		},
		"DISC-03 the first of several": {
			links: []string{`<` + hub + `/1>; rel=mercure; last-event-id=a`, `<` + hub + `/2>; rel=mercure; last-event-id=b`, `</a>; rel=self`, `</b>; rel=self`},
			want:  client.Discovery{HubURL: hub + "/1", Topic: "ORIGIN/a", Cursor: "a", ContentType: "text/plain"},
		},
		"links about something else": {
			links: []string{
				`<` + hub + `/0>; rel=mercure; anchor="/books/2"`, `<` + hub + `/1>; rel=mercure; anchor="#part"`, `<x>; rel=self; anchor="::"`,
				`<` + hub + `>; rel=mercure; anchor="/books/1?lang=en"`,
			},
			want: client.Discovery{HubURL: hub, Topic: "ORIGIN/books/1?lang=en", ContentType: "text/plain"},
		},
		"what is no hub": {
			links: []string{`<javascript:alert(1)>; rel=mercure`, `<data:,x>; rel=mercure`, `<https:hub>; rel=mercure`, `<https://%zz/>; rel=mercure`, `<ftp://h/hub>; rel=mercure`},
			err:   client.ErrNoHub,
		},
		"rel that only looks like it": {links: []string{`<` + hub + `>; rel="mercure2 xmercure"`, `<` + hub + `>; rev=mercure`}, err: client.ErrNoHub},
		"no link":                     {err: client.ErrNoHub},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("/redirect/{n}", func(w http.ResponseWriter, r *http.Request) {
				target := "/books/1?lang=en"
				if n, err := strconv.Atoi(r.PathValue("n")); err == nil && n > 1 {
					target = fmt.Sprintf("/redirect/%d", n-1)
				}
				http.Redirect(w, r, target, http.StatusFound)
			})
			mux.HandleFunc("/books/1", func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" {
					t.Error("the resource gets a credential")
				}
				w.Header().Set("Content-Type", "text/plain")
				if c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				w.Header()["Link"] = c.links
			})
			s := httptest.NewServer(mux)
			defer s.Close()
			path := "/books/1?lang=en#part"
			if c.path != "" {
				path = c.path
			}
			got, err := client.Discover(t.Context(), nil, s.URL+path)
			if !errors.Is(err, c.err) {
				t.Fatalf("Discover = %v, want %v", err, c.err)
			}
			c.want.HubURL = strings.Replace(c.want.HubURL, "ORIGIN", s.URL, 1)
			c.want.Topic = strings.Replace(c.want.Topic, "ORIGIN", s.URL, 1)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Discovery (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiscover_failures(t *testing.T) {
	loop := httptest.NewServer(http.RedirectHandler("/", http.StatusFound))
	defer loop.Close()
	down := httptest.NewTLSServer(http.RedirectHandler(loop.URL, http.StatusFound))
	defer down.Close()
	lost := httptest.NewServer(http.NotFoundHandler())
	defer lost.Close()
	own := &http.Client{Transport: down.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("no redirects here") }}
	for name, c := range map[string]struct {
		client *http.Client
		url    string
		status int
		text   string
	}{
		"nobody there":          {nil, "http://127.0.0.1:1/", 0, "refused"},
		"not found":             {nil, lost.URL + "/secret", http.StatusNotFound, "discover: 404 Not Found"},
		"not a URL":             {nil, "::", 0, "discover: "},
		"another scheme":        {nil, "file:///etc/passwd", 0, "unsupported protocol scheme"},
		"redirects for ever":    {nil, loop.URL, 0, "more than 5 redirects"},
		"out of TLS":            {down.Client(), down.URL, 0, "a redirect from https to http"},
		"the client's own rule": {own, loop.URL, 0, "no redirects here"},
	} {
		_, err := client.Discover(t.Context(), c.client, c.url)
		if e := failure(t, err); e.Op != "discover" || e.Status != c.status || !strings.Contains(e.Error(), c.text) || strings.Contains(e.Error(), "secret") {
			t.Errorf("%s: Discover = %v, want %q", name, err, c.text)
		}
	}
	down.CloseClientConnections()
}

// The body is the resource's matter, and may be without end.
func TestDiscover_readsNoBody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", `</hub>; rel=mercure`)
		var err error
		for err == nil && r.Context().Err() == nil {
			_, err = io.WriteString(w, strings.Repeat("x", 1<<20))
		}
	}))
	defer s.Close()
	if d, err := client.Discover(t.Context(), nil, s.URL); err != nil || d.HubURL != s.URL+"/hub" {
		t.Errorf("Discover = %+v, %v", d, err)
	}
}

func TestDiscover_isBounded(t *testing.T) {
	header := rawServer(t, func(c net.Conn) {
		readRequest(c)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			_, err = io.WriteString(c, "Link: </"+strings.Repeat("x", 1000)+">; rel=x\r\n")
		}
	})
	if _, err := client.Discover(t.Context(), nil, header); err == nil || !strings.Contains(err.Error(), "exceeded") {
		t.Errorf("an endless header: Discover = %v", err)
	}
	silent := rawServer(t, func(c net.Conn) { readRequest(c); _, _ = c.Read(make([]byte, 1)) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Discover(ctx, nil, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent server: Discover = %v", err)
	}
}
