package client

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLinks(t *testing.T) {
	for name, c := range map[string]struct {
		fields []string
		want   []link
	}{
		"none":      {},
		"one":       {[]string{`<https://h/hub>; rel="mercure"`}, []link{{"https://h/hub", map[string]string{"rel": "mercure"}}}},
		"no params": {[]string{`<a>`}, []link{{"a", map[string]string{}}}},
		"tokens, spaces, case, an empty parameter": {
			[]string{"\t <a> ;\tREL = mercure ;; x ; y=  ;z=1"}, []link{{"a", map[string]string{"rel": "mercure", "x": "", "y": "", "z": "1"}}},
		},
		"several in a field, and several fields": {
			[]string{`<a,b;c>;rel=x, ,<d>; rel="y, <z>; w"`, `<e>`},
			[]link{{"a,b;c", map[string]string{"rel": "x"}}, {"d", map[string]string{"rel": "y, <z>; w"}}, {"e", map[string]string{}}},
		},
		"escapes":            {[]string{`<a>; t="x\"y\\z"; u="\`}, []link{{"a", map[string]string{"t": `x"y\z`, "u": `\`}}}},
		"the first counts":   {[]string{`<a>; rel=x; rel=y`}, []link{{"a", map[string]string{"rel": "x"}}}},
		"an empty target":    {[]string{`<>; rel=self`}, []link{{"", map[string]string{"rel": "self"}}}},
		"no closing bracket": {[]string{`<a>, <b; rel=x`}, []link{{"a", map[string]string{}}}},
		"no closing quote":   {[]string{`<a>; rel="x, <b>; rel=y`}, []link{{"a", map[string]string{"rel": "x, <b>; rel=y"}}}},
		"not a link":         {[]string{`a; rel=x, <b>`}, nil},
		"garbage after":      {[]string{`<a>; rel="x"y, <b>`}, []link{{"a", map[string]string{"rel": "x"}}}},
		"a field too long":   {[]string{`<a>`, `<` + strings.Repeat("b", maxLinkBytes) + `>`, `<c>`}, []link{{"a", map[string]string{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parseLinks(c.fields), cmp.AllowUnexported(link{})); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseLinks_boundsParameters(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		b.WriteString(";p" + strings.Repeat("x", i%50) + "=" + strings.Repeat("y", i%7))
	}
	links := parseLinks([]string{"<a>" + b.String()})
	if len(links) != 1 || len(links[0].params) != maxLinkParams {
		t.Errorf("%d links, %d parameters", len(links), len(links[0].params))
	}
}

// FuzzLinks feeds hostile fields: what is read must be bounded, and reading what it is written as must give it again.
func FuzzLinks(f *testing.F) {
	for _, seed := range []string{
		`<https://h/hub>; rel="mercure"; last-event-id="urn:uuid:1"; type=x; content-type="application/json"`,
		`</hub>;rel="self mercure", <>; rel=self`, `<a>; rel="x\"y`, `<a`, `,,,<a>;;;=;"`, `<a>; anchor="#x"; rel=mercure`, "<\x00>;rel=mercure",
	} {
		f.Add(seed, seed)
	}
	base, err := url.Parse("https://example.com/books/1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		links := parseLinks([]string{one, two})
		if len(links) > strings.Count(one+two, "<") {
			t.Errorf("%d links from %q, %q", len(links), one, two)
		}
		for _, l := range links {
			if len(l.params) > maxLinkParams || strings.Contains(l.target, ">") {
				t.Errorf("link %+v", l)
			}
			if diff := cmp.Diff([]link{l}, parseLinks([]string{written(l)}), cmp.AllowUnexported(link{})); diff != "" {
				t.Errorf("written as %q it is (-want +got):\n%s", written(l), diff)
			}
		}
		d, err := readLinks(http.Header{"Link": {one, two}}, base)
		if err != nil {
			return
		}
		if hub, err := url.Parse(d.HubURL); err != nil || hub.Host == "" || hub.Scheme != "https" && hub.Scheme != "http" {
			t.Errorf("hub %q, %v", d.HubURL, err)
		}
	})
}

// written gives a link as a field.
func written(l link) string {
	var b strings.Builder
	b.WriteString("<" + l.target + ">")
	for name, value := range l.params {
		b.WriteString("; " + name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`)
	}
	return b.String()
}
