package httpserver_test

import (
	"net/http"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

func TestSourceOrigin(t *testing.T) {
	for _, tc := range []struct {
		name            string
		origin, referer []string
		want            string
		ok              bool
	}{
		{name: "SEC-07 neither"},
		{name: "SEC-06 Origin", origin: []string{"https://a.example"}, want: "https://a.example", ok: true},
		{name: "SEC-06 Origin beats Referer", origin: []string{"https://a.example"}, referer: []string{"https://b.example/x"}, want: "https://a.example", ok: true},
		{name: "SEC-06 Referer", referer: []string{"https://B.example:443/x?y"}, want: "https://b.example", ok: true},
		{name: "SEC-13 null, whatever the Referer", origin: []string{"null"}, referer: []string{"https://b.example/x"}},
		{name: "SEC-07 empty Origin", origin: []string{""}, referer: []string{"https://b.example/x"}},
		{name: "SEC-07 two Origins", origin: []string{"https://a.example", "https://a.example"}},
		{name: "SEC-07 two Referers", referer: []string{"https://a.example/", "https://a.example/"}},
		{name: "SEC-07 Referer without origin", referer: []string{"about:blank"}},
		{name: "SEC-07 relative Referer", referer: []string{"/x"}},
		{name: "SEC-07 Referer of an app", referer: []string{"capacitor://localhost/x"}},
		{name: "SEC-07 Referer with an address no browser writes", referer: []string{"http://127.1/x"}},
		{name: "SEC-07 broken Referer", referer: []string{"https://[bad/x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{}
			if tc.origin != nil {
				h["Origin"] = tc.origin
			}
			if tc.referer != nil {
				h["Referer"] = tc.referer
			}
			got, ok := httpserver.SourceOrigin(&http.Request{Header: h})
			if got != tc.want || ok != tc.ok {
				t.Errorf("SourceOrigin = %q, %v, want %q, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}
