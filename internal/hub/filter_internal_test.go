package hub

import (
	"slices"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// What the history may rely on follows from the patterns, and only when all of them begin with something.
func TestFilter_selection(t *testing.T) {
	c, err := topic.NewCompiler("https://hub.example.com/.well-known/mercure", topic.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	compile := func(typ topic.Type, pattern string) *topic.Matcher {
		m, err := c.Compile(typ, pattern)
		if err != nil {
			t.Fatalf("Compile(%q) = %v", pattern, err)
		}
		return m
	}
	exact := compile(topic.Exact, "https://example.com/exact")
	books, users := compile(topic.URLPattern, "https://example.com/books/:id"), compile(topic.URLPattern, "/users/*")
	anywhere, all := compile(topic.URLPattern, "*://example.com/books/:id"), compile(topic.URLPattern, "*")
	for name, tc := range map[string]struct {
		matchers []*topic.Matcher
		prefixes []string
	}{
		"exact":                      {[]*topic.Matcher{exact}, nil},
		"patterns":                   {[]*topic.Matcher{books, users}, []string{"https://example.com/books/", "https://hub.example.com/users/", "/users/"}},
		"a pattern beside exact":     {[]*topic.Matcher{exact, books}, []string{"https://example.com/books/"}},
		"a pattern without a prefix": {[]*topic.Matcher{books, anywhere}, nil},
		"everything":                 {[]*topic.Matcher{books, all}, nil},
	} {
		sel := newFilter(c, tc.matchers, nil).selection()
		if !slices.Equal(sel.Prefixes, tc.prefixes) || (sel.Prefixes == nil) != (tc.prefixes == nil) {
			t.Errorf("%s: Prefixes = %q, want %q", name, sel.Prefixes, tc.prefixes)
		}
	}
}
