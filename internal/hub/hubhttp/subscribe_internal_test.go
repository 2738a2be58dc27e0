package hubhttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// FuzzSubscribeParams holds for any query, body and cursor: it is a subscription or a 400, never a defect.
func FuzzSubscribeParams(f *testing.F) {
	for _, seed := range []string{
		"match=T", "match_urlpattern=/:x", "m%61tch=%", "Match=x", "match=%FF", "&&match=a=b;c&", "last_event_id=&match", "match_urlpattern=(",
	} {
		f.Add(seed, "match=B", "urn:x")
	}
	compiler, err := topic.NewCompiler("https://hub.example/.well-known/mercure", topic.Limits{})
	if err != nil {
		f.Fatal(err)
	}
	a := &api{
		options: Options{Anonymous: true, CookieName: "c", Limits: mercure.DefaultLimits()}, compiler: compiler, rules: table(),
	}
	a.legacyCursor.done.Store(true)
	e := echo.New()
	f.Fuzz(func(t *testing.T, query, body, cursor string) {
		r := httptest.NewRequest(methodQuery, "/", strings.NewReader(body))
		r.URL = &url.URL{Path: "/", RawQuery: query}
		r.Header = http.Header{"Last-Event-Id": {cursor}, "Content-Type": {mercure.FormMediaType}}
		s, err := a.admit(e.NewContext(r, httptest.NewRecorder()))
		switch {
		case err != nil:
			if got := a.classify(err); got.status != http.StatusBadRequest {
				t.Errorf("query %q, body %q: %v is answered with %d", query, body, err, got.status)
			}
		case len(s.matchers) == 0 || !s.params.HasCursor:
			t.Errorf("query %q, body %q: %+v", query, body, s.params)
		}
	})
}
