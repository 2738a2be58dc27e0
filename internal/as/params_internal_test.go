package as

import (
	"slices"
	"strings"
	"testing"
)

func TestParseParams(t *testing.T) {
	p, err := parseParams("a=1&b=&a=2&resource=x&resource=y&c=d+e%20f&b=")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.repeated, []string{"a", "b"}) {
		t.Errorf("repeated: %v", p.repeated)
	}
	if p.get("a") != "" || p.get("c") != "d e f" || p.get("none") != "" {
		t.Errorf("values: %v", p.values)
	}
	if !p.has("a") || p.has("b") || p.has("none") || !p.has("resource") {
		t.Error("has is wrong")
	}
	for _, raw := range []string{"a=%zz", "a;b", "a=" + strings.Repeat("x", MaxParameterBytes)} {
		if _, err := parseParams(raw); err == nil {
			t.Errorf("%.20q is well-formed", raw)
		}
	}
}
