package segments

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSelector_begins(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab/\xff")), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		prefixes, topic := rapid.SliceOfN(text, 0, 12).Draw(t, "prefixes"), text.Draw(t, "topic")
		x := selector{prefixes: shortest(prefixes)}
		want := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(topic, p) })
		if got := x.begins([]byte(topic)); got != want {
			t.Errorf("begins(%q) = %v for %q, want %v", topic, got, prefixes, want)
		}
	})
	if x := (selector{prefixes: shortest(nil)}); !x.begins([]byte("any")) {
		t.Error("begins() = false where nothing is said about the beginning")
	}
	many := make([]string, 256)
	for i := range many {
		many[i] = strings.Repeat("a", i+1)
	}
	if got := shortest(many); !slices.Equal(got, many[:1]) {
		t.Errorf("shortest() = %q, want the one that all others begin with", got)
	}
}
