package httpserver

import (
	"net/http"
	"slices"
	"strings"
)

// CookieValues gives the different values of the cookie called name, empty ones too, and no more than two: equal duplicates count
// once, and whoever gets two refuses both. The pairs are split by hand, since net/http drops those whose values it dislikes, and a
// credential that is there must be judged and not overlooked: the value counts as it is.
func CookieValues(r *http.Request, name string) []string {
	var values []string
	for _, field := range r.Header["Cookie"] {
		for pair := range strings.SplitSeq(field, ";") {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || strings.Trim(key, " \t") != name {
				continue
			}
			value = strings.Trim(value, " \t")
			if slices.Contains(values, value) {
				continue
			}
			if values = append(values, value); len(values) == 2 {
				return values
			}
		}
	}
	return values
}
