package httpserver_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

func TestCookieValues(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields []string
		want   []string
	}{
		{"no field", nil, nil},
		{"another cookie", []string{"x=a; T=b; tt=c"}, nil},
		{"a name alone", []string{"t"}, nil},
		{"one value", []string{"x=y; t=a"}, []string{"a"}},
		{"spaces and tabs around", []string{" \tt\t = \ta \t"}, []string{"a"}},
		{"an empty value", []string{"t="}, []string{""}},
		{"a value with =", []string{"t=a=b"}, []string{"a=b"}},
		{"a value that net/http drops", []string{"t=a\"b\\é"}, []string{"a\"b\\é"}},
		{"equal duplicates", []string{"t=a; t=a", "t=a"}, []string{"a"}},
		{"different values", []string{"t=a;t=b"}, []string{"a", "b"}},
		{"different values in two fields", []string{"t=a", "t="}, []string{"a", ""}},
		{"no more than two", []string{"t=a; t=b; t=c"}, []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := httpserver.CookieValues(&http.Request{Header: http.Header{"Cookie": tc.fields}}, "t")
			if !slices.Equal(got, tc.want) {
				t.Errorf("CookieValues(%q) = %q, want %q", tc.fields, got, tc.want)
			}
		})
	}
}
