package history_test

import (
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func TestSelection(t *testing.T) {
	prefix := func(p string) func(string) bool {
		return func(s string) bool { return strings.HasPrefix(s, p) }
	}
	for _, tc := range []struct {
		name       string
		sel        history.Selection
		topics     []string
		everything bool
		selects    bool
	}{
		{"the zero value selects everything", history.Selection{}, []string{"a"}, true, true},
		{"all", history.Selection{All: true, Exact: []string{"b"}}, []string{"a"}, true, true},
		{"exact", history.Selection{Exact: []string{"b", "a"}}, []string{"a"}, false, true},
		{"exact is exact", history.Selection{Exact: []string{"ab"}}, []string{"a", "abc", "AB"}, false, false},
		{"an empty list selects nothing", history.Selection{Exact: []string{}}, []string{"a"}, false, false},
		{"an alternate", history.Selection{Exact: []string{"b"}}, []string{"a", "b"}, false, true},
		{"pattern", history.Selection{Pattern: prefix("a")}, []string{"b", "ab"}, false, true},
		{"pattern without a match", history.Selection{Pattern: prefix("c")}, []string{"b", "ab"}, false, false},
		{"exact beside a pattern", history.Selection{Exact: []string{"b"}, Pattern: prefix("c")}, []string{"b"}, false, true},
		{"no topics", history.Selection{Exact: []string{"b"}}, nil, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.sel.Everything(); got != tc.everything {
				t.Errorf("Everything() = %v, want %v", got, tc.everything)
			}
			if got := tc.sel.Selects(tc.topics); got != tc.selects {
				t.Errorf("Selects(%q) = %v, want %v", tc.topics, got, tc.selects)
			}
		})
	}
}

func TestRecord_Size(t *testing.T) {
	empty := (&history.Record{}).Size()
	if empty <= 0 {
		t.Errorf("Size() = %d of an empty record: a million of them must count for something", empty)
	}
	r := history.Record{ID: "12345", Topics: []string{"123", "4"}, Event: make([]byte, 100)}
	if got := r.Size() - empty; got < 109 {
		t.Errorf("Size() grew by %d, want at least 109", got)
	}
}
