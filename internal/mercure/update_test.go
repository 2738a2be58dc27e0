package mercure_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

func parseUpdate(t *testing.T, raw string, l mercure.Limits) (*mercure.Update, error) {
	t.Helper()
	pairs, err := mercure.ParseForm(raw, 0)
	if err != nil {
		t.Fatalf("ParseForm(%q) = %v", raw, err)
	}
	return mercure.ParseUpdate(pairs, l)
}

func TestParseUpdate_accepts(t *testing.T) {
	one := func(u mercure.Update) mercure.Update {
		if u.Topics == nil {
			u.Topics = []string{"T"}
		}
		return u
	}
	for _, tc := range []struct {
		name, body string
		want       mercure.Update
	}{
		{"PUB-01 topic and data", "topic=T&data=x", mercure.Update{Data: "x"}},
		{"PUB-08 alternates", "topic=A&topic=B&topic=A", mercure.Update{Topics: []string{"A", "B", "A"}}},
		{"PUB-22 a URN", "topic=T&id=urn:uuid:00000000-0000-4000-8000-000000000000", mercure.Update{ID: "urn:uuid:00000000-0000-4000-8000-000000000000"}},
		{"PUB-22 a DID", "topic=T&id=did:example:1", mercure.Update{ID: "did:example:1"}},
		{"PUB-22 anything else", "topic=T&id=plain-1+%25%2B%23", mercure.Update{ID: "plain-1 %+#"}},
		{"PUB-20 only the exact word is reserved", "topic=T&id=Earliest", mercure.Update{ID: "Earliest"}},
		{"PUB-20 not its extensions", "topic=T&id=earliest2", mercure.Update{ID: "earliest2"}},
		{"PUB-27 only the exact type is reserved", "topic=T&type=Mercure", mercure.Update{Type: "Mercure"}},
		{"PUB-27 not its extensions", "topic=T&type=mercure2", mercure.Update{Type: "mercure2"}},
		{"SSE-13 a leading space is another type", "topic=T&type=+mercure", mercure.Update{Type: " mercure"}},
		{"PUB-28 zero", "topic=T&retry=0", mercure.Update{Retry: "0"}},
		{"PUB-28 leading zeros", "topic=T&retry=007", mercure.Update{Retry: "007"}},
		{"PUB-36 a thousand digits", "topic=T&retry=" + strings.Repeat("9", 1000), mercure.Update{Retry: strings.Repeat("9", 1000)}},
		{"PUB-36 empty id, type and retry are absent", "topic=T&id=&type&retry=", mercure.Update{}},
		{"PUB-36 the first of a repeated field counts", "topic=T&data=a&data=b&id=1&id=2&type=x&type=y&retry=1&retry=z", mercure.Update{Data: "a", ID: "1", Type: "x", Retry: "1"}},
		{"PUB-29 unknown fields", "foo=bar&Topic=*&data2=x&topic=T&retries=-1", mercure.Update{}},
		{"PUB-18 names are case-sensitive", "topic=T&Private=on", mercure.Update{}},
		{"PUB-37 odd bodies", "&&topic=T&&data=a;b=100%25%zz&", mercure.Update{Data: "a;b=100%%zz"}},
		{"SSE-11 no data", "topic=T", mercure.Update{}},
		{"SSE-12 data is free", "topic=T&data=%00%0Aid:+x%E2%80%8B", mercure.Update{Data: "\x00\nid: x\u200b"}},
		{"TOPIC-06 odd characters", "topic=%C2%A0%E2%80%A8%F0%9F%98%80", mercure.Update{Topics: []string{"\u00a0\u2028😀"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseUpdate(t, tc.body, mercure.DefaultLimits())
			if err != nil {
				t.Fatalf("ParseUpdate(%.80q) = %v", tc.body, err)
			}
			if d := cmp.Diff(one(tc.want), *got); d != "" {
				t.Errorf("ParseUpdate(%.80q) (-want +got):\n%s", tc.body, d)
			}
		})
	}
	for _, private := range []string{"private", "private=", "private=on", "private=0", "private=false", "private=off", "private=a&private=b"} {
		t.Run("PUB-15 presence alone: "+private, func(t *testing.T) {
			if u, err := parseUpdate(t, "topic=T&"+private, mercure.DefaultLimits()); err != nil || !u.Private {
				t.Errorf("ParseUpdate(%q) = %+v, %v, want a private update", private, u, err)
			}
		})
	}
}

func TestParseUpdate_refuses(t *testing.T) {
	limits := mercure.Limits{Topics: 3, TopicBytes: 10, IDBytes: 10, TypeBytes: 10, RetryBytes: 10}
	for _, tc := range []struct {
		name, body, field string
		tooLarge          bool
	}{
		{"PUB-05 no topic", "data=x", "topic", false},
		{"PUB-05 an empty body", "", "topic", false},
		{"PUB-04 data that is not UTF-8", "topic=T&data=%FF", "data", false},
		{"PUB-04 an unknown field that is not UTF-8", "topic=T&foo=%C0%AF", "foo", false},
		{"PUB-04 a name that is not UTF-8", "topic=T&%FF=x", "\xff", false},
		{"TOPIC-01 a topic that is not UTF-8", "topic=%ED%A0%80", "topic", false},
		{"TOPIC-02 a C0 control", "topic=a%0Ab", "topic", false},
		{"TOPIC-03 a C1 control", "topic=a%C2%85b", "topic", false},
		{"TOPIC-04 DEL", "topic=a%7Fb", "topic", false},
		{"TOPIC-05 a format character", "topic=a%E2%80%8Bb", "topic", false},
		{"TOPIC-08 in an alternate", "topic=T&topic=a%E2%80%8B", "topic", false},
		{"PUB-10 the wildcard", "topic=*", "topic", false},
		{"PUB-10 as an alternate", "topic=T&topic=*", "topic", false},
		{"PUB-19 an id that starts with #", "topic=T&id=%23x", "id", false},
		{"PUB-19 # alone", "topic=T&id=%23", "id", false},
		{"PUB-20 the reserved id", "topic=T&id=earliest", "id", false},
		{"PUB-21 an id with LF", "topic=T&id=a%0Ab", "id", false},
		{"PUB-21 an id with NUL", "topic=T&id=%00", "id", false},
		{"PUB-21 an id with DEL", "topic=T&id=%7F", "id", false},
		{"PUB-21 an id with C1", "topic=T&id=%C2%85", "id", false},
		{"PUB-21 an id with Cf", "topic=T&id=%E2%80%8B", "id", false},
		{"PUB-26 a type with CR", "topic=T&type=%0D", "type", false},
		{"PUB-26 a type with Cf", "topic=T&type=%E2%80%8B", "type", false},
		{"PUB-27 the reserved type", "topic=T&type=mercure", "type", false},
		{"PUB-28 a sign", "topic=T&retry=-1", "retry", false},
		{"PUB-28 a space", "topic=T&retry=+1", "retry", false},
		{"PUB-28 a plus", "topic=T&retry=%2B1", "retry", false},
		{"PUB-28 a fraction", "topic=T&retry=1.5", "retry", false},
		{"PUB-28 an exponent", "topic=T&retry=1e3", "retry", false},
		{"PUB-28 hexadecimal", "topic=T&retry=0x10", "retry", false},
		{"PUB-28 fullwidth digits", "topic=T&retry=%EF%BC%91", "retry", false},
		{"PUB-28 Arabic digits", "topic=T&retry=%D9%A3", "retry", false},
		{"PUB-28 a trailing space", "topic=T&retry=1+", "retry", false},
		{"LIM-07 too many topics", "topic=a&topic=b&topic=c&topic=d", "topic", true},
		{"LIM-07 a long topic", "topic=12345678901", "topic", true},
		{"LIM-07 a long id", "topic=T&id=12345678901", "id", true},
		{"LIM-07 a long type", "topic=T&type=12345678901", "type", true},
		{"LIM-07 a long retry", "topic=T&retry=12345678901", "retry", true},
		{"a broken rule comes before a limit", "topic=12345678901&topic=*", "topic", false},
		{"a broken rule comes before a limit of another field", "topic=12345678901&type=mercure", "type", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u, err := parseUpdate(t, tc.body, limits)
			var got *mercure.FieldError
			if !errors.As(err, &got) {
				t.Fatalf("ParseUpdate(%q) = %+v, %v, want a FieldError", tc.body, u, err)
			}
			if got.Field != tc.field || got.TooLarge != tc.tooLarge || got.Rule == "" {
				t.Errorf("ParseUpdate(%q) = %+v, want field %q, too large %v", tc.body, got, tc.field, tc.tooLarge)
			}
		})
	}
}

func TestParseUpdate_defaultLimits(t *testing.T) {
	l := mercure.DefaultLimits()
	t.Run("LIM-07 a hundred thousand topics", func(t *testing.T) {
		_, err := parseUpdate(t, strings.Repeat("topic=a&", 100_000), l)
		var field *mercure.FieldError
		if !errors.As(err, &field) || !field.TooLarge {
			t.Errorf("ParseUpdate() = %v, want a limit", err)
		}
	})
	t.Run("LIM-12 sensible requests pass", func(t *testing.T) {
		body := strings.Repeat("topic=https://example.com/a/rather/long/topic&", 100) + "data=" + strings.Repeat("x", 512<<10)
		if _, err := parseUpdate(t, body, l); err != nil {
			t.Errorf("ParseUpdate() = %v", err)
		}
	})
	t.Run("zero limits are off", func(t *testing.T) {
		if _, err := parseUpdate(t, strings.Repeat("topic=a&", 2000), mercure.Limits{}); err != nil {
			t.Errorf("ParseUpdate() = %v", err)
		}
	})
}

func TestFieldError_quotesNames(t *testing.T) {
	e := &mercure.FieldError{Field: "\n\x1b[31mé" + strings.Repeat("é", 100), Rule: "is odd"}
	want := regexp.MustCompile(`^mercure: "\\n\\x1b\[31m(\\u00e9)+\.\.\." is odd$`)
	if !want.MatchString(e.Error()) {
		t.Errorf("Error() = %q, want %v", e.Error(), want)
	}
}

func TestNewEventID(t *testing.T) {
	form := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := mercure.NewEventID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("PUB-23 NewEventID() = %q, want a new random UUID URN", id)
		}
		seen[id] = true
	}
}

func TestUpdate_Canonical(t *testing.T) {
	if got := (&mercure.Update{}).Canonical(); got != "" {
		t.Errorf("Canonical() = %q without topics", got)
	}
	if got := (&mercure.Update{Topics: []string{"a", "b"}}).Canonical(); got != "a" {
		t.Errorf("Canonical() = %q, want a", got)
	}
}
