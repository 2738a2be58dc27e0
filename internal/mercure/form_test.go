package mercure_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

func TestParseForm(t *testing.T) {
	type pairs = []mercure.Pair
	for _, tc := range []struct {
		name, raw string
		want      pairs
	}{
		{"nothing", "", nil},
		{"PUB-07 plus is a space", "data=a+b&c+d=e", pairs{{"data", "a b"}, {"c d", "e"}}},
		{"PUB-07 an encoded plus is a plus", "data=a%2Bb", pairs{{"data", "a+b"}}},
		{"PUB-07 names are decoded", "%74opic=T", pairs{{"topic", "T"}}},
		{"SUB-16 a semicolon is no separator", "match=a;b", pairs{{"match", "a;b"}}},
		{"SUB-16 in a value before a pair", "x=1;match_nope=2", pairs{{"x", "1;match_nope=2"}}},
		{"SUB-17 a stray percent sign", "match=100%&m=%zz&n=%4&o=%", pairs{{"match", "100%"}, {"m", "%zz"}, {"n", "%4"}, {"o", "%"}}},
		{"SUB-17 a stray one before an escape", "m=%%41", pairs{{"m", "%A"}}},
		{"SUB-18 the first equals sign splits", "match=a=b", pairs{{"match", "a=b"}}},
		{"SUB-19 empty sequences", "&&match=T&", pairs{{"match", "T"}}},
		{"SUB-19 an equals sign alone is a pair", "=&=x", pairs{{"", ""}, {"", "x"}}},
		{"SUB-20 hex digits of either case", "m%61t%63h=%c3%A9", pairs{{"match", "é"}}},
		{"SUB-21 a name without a value", "match", pairs{{"match", ""}}},
		{"PUB-37 raw UTF-8", "data=é", pairs{{"data", "é"}}},
		{"bytes that are not UTF-8 are kept", "data=%FF\xFE", pairs{{"data", "\xFF\xFE"}}},
		{"escapes are decoded once", "data=%2541", pairs{{"data", "%41"}}},
		{"NUL and line breaks", "data=%00%0D%0A", pairs{{"data", "\x00\r\n"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mercure.ParseForm(tc.raw, 0)
			if err != nil {
				t.Fatalf("ParseForm(%q) = %v", tc.raw, err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("ParseForm(%q) (-want +got):\n%s", tc.raw, d)
			}
		})
	}
}

func TestParseForm_limit(t *testing.T) {
	if got, err := mercure.ParseForm("a=1&&b=2&", 2); err != nil || len(got) != 2 {
		t.Errorf("ParseForm(two pairs) = %v, %v", got, err)
	}
	_, err := mercure.ParseForm("a=1&b=2&c", 2)
	var field *mercure.FieldError
	if !errors.As(err, &field) || !field.TooLarge {
		t.Errorf("ParseForm(three pairs) = %v, want a FieldError with TooLarge", err)
	}
	if _, err := mercure.ParseForm(strings.Repeat("a&", 100_000), 100_000); err != nil {
		t.Errorf("ParseForm(many) = %v", err)
	}
}

// FuzzParseForm checks that encoding is undone, and that on forms net/url accepts the two parsers agree.
func FuzzParseForm(f *testing.F) {
	f.Add("a=b&c+d=%C3%A9&&=&x")
	f.Add("match=100%&m=%zz;n=1=2")
	f.Add("%")
	f.Add("&")
	f.Fuzz(func(t *testing.T, raw string) {
		pairs, err := mercure.ParseForm(raw, 0)
		if err != nil {
			t.Fatalf("ParseForm(%q) = %v", raw, err)
		}
		var b strings.Builder
		for _, p := range pairs {
			b.WriteString("&" + url.QueryEscape(p.Name) + "=" + url.QueryEscape(p.Value))
		}
		again, err := mercure.ParseForm(b.String(), 0)
		if err != nil || cmp.Diff(pairs, again, cmpopts.EquateEmpty()) != "" {
			t.Errorf("ParseForm(%q) and its encoding %q differ: %q, %q, %v", raw, b.String(), pairs, again, err)
		}
		values, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		ours := url.Values{}
		for _, p := range pairs {
			ours.Add(p.Name, p.Value)
		}
		if d := cmp.Diff(values, ours); d != "" {
			t.Errorf("ParseForm(%q) differs from net/url (-url +ours):\n%s", raw, d)
		}
	})
}

func FuzzParseUpdate(f *testing.F) {
	f.Add("topic=https%3A%2F%2Fexample.com%2F1&data=x&private&id=a&type=t&retry=1")
	f.Add("topic=*&id=%23x&type=mercure&retry=-1")
	f.Add("topic=%FF&data=%00")
	f.Fuzz(func(t *testing.T, raw string) {
		pairs, err := mercure.ParseForm(raw, 1000)
		if err != nil {
			return
		}
		u, err := mercure.ParseUpdate(pairs, mercure.DefaultLimits())
		if err != nil {
			checkFieldError(t, err, pairs)
			return
		}
		if len(u.Topics) == 0 || u.Canonical() != u.Topics[0] || !utf8.ValidString(u.Data) {
			t.Errorf("ParseUpdate(%q) = %+v", raw, u)
		}
		for _, s := range append(u.Topics, u.ID, u.Type, u.Retry) {
			if strings.ContainsAny(s, "\r\n\x00\u200b\u0085") || s == "*" || s == "earliest" && s == u.ID {
				t.Errorf("ParseUpdate(%q) lets %q through", raw, s)
			}
		}
	})
}

func FuzzParseSubscribe(f *testing.F) {
	f.Add("match=a&match_urlpattern=/b", "last_event_id=x", "y", true)
	f.Add("MATCH=a", "match_nope=1", "", false)
	f.Fuzz(func(t *testing.T, query, body, header string, hasHeader bool) {
		q, _ := mercure.ParseForm(query, 0)
		b, _ := mercure.ParseForm(body, 0)
		s, err := mercure.ParseSubscribe(q, b, header, hasHeader, mercure.DefaultLimits())
		if err != nil {
			checkFieldError(t, err, append(q, b...))
			return
		}
		matchers := 0
		for _, p := range append(q, b...) {
			if len(p.Name) >= 5 && strings.EqualFold(p.Name[:5], "match") {
				matchers++
			}
		}
		if len(s.Matchers) == 0 || len(s.Matchers) != matchers {
			t.Errorf("ParseSubscribe(%q, %q) = %d matchers of %d parameters", query, body, len(s.Matchers), matchers)
		}
		if hasHeader && s.Cursor != header {
			t.Errorf("ParseSubscribe().Cursor = %q, want the header %q", s.Cursor, header)
		}
	})
}

// checkFieldError checks that an error is fit for clients.
func checkFieldError(t *testing.T, err error, pairs []mercure.Pair) {
	t.Helper()
	var field *mercure.FieldError
	if !errors.As(err, &field) {
		t.Fatalf("error %v is no FieldError", err)
	}
	text := field.Error() + field.Hint
	for _, p := range pairs {
		if len(p.Value) > 40 && strings.Contains(text, p.Value) {
			t.Errorf("error %q contains a value", text)
		}
	}
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			t.Errorf("error %q has odd characters", text)
		}
	}
}
