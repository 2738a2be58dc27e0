package mercure_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// request is a subscription request in short.
type request struct {
	query, body, header string
	hasHeader           bool
}

func (r request) parse(t *testing.T, l mercure.Limits) (*mercure.SubscribeParams, error) {
	t.Helper()
	query, err := mercure.ParseForm(r.query, 0)
	if err != nil {
		t.Fatalf("ParseForm(%q) = %v", r.query, err)
	}
	body, err := mercure.ParseForm(r.body, 0)
	if err != nil {
		t.Fatalf("ParseForm(%q) = %v", r.body, err)
	}
	return mercure.ParseSubscribe(query, body, r.header, r.hasHeader, l)
}

func exact(patterns ...string) []mercure.MatcherParam {
	var ms []mercure.MatcherParam
	for _, p := range patterns {
		ms = append(ms, mercure.MatcherParam{Type: topic.Exact, Pattern: p})
	}
	return ms
}

func TestParseSubscribe_matchers(t *testing.T) {
	pattern := func(p string) mercure.MatcherParam {
		return mercure.MatcherParam{Type: topic.URLPattern, Pattern: p}
	}
	for _, tc := range []struct {
		name string
		in   request
		want []mercure.MatcherParam
	}{
		{"SUB-01 one", request{query: "match=T"}, exact("T")},
		{"SUB-13 any mix", request{query: "match=A&match_exact=B&match_urlpattern=/C"}, append(exact("A", "B"), pattern("/C"))},
		{"SUB-06 the union of query and body", request{query: "match=A", body: "match=B&match_urlpattern=/C"}, append(exact("A", "B"), pattern("/C"))},
		{"SUB-01 in the body alone", request{body: "match=B"}, exact("B")},
		{"SUB-15 plus is a space", request{query: "match=a+b"}, exact("a b")},
		{"SUB-16 semicolons", request{query: "match=a;b&x=1;match_nope=2"}, exact("a;b")},
		{"SUB-17 stray percent signs", request{query: "match=100%&match=%zz"}, exact("100%", "%zz")},
		{"SUB-18 more equals signs", request{query: "match=a=b"}, exact("a=b")},
		{"SUB-19 empty sequences", request{query: "&&match=T&"}, exact("T")},
		{"SUB-20 names are decoded first", request{query: "m%61tch=T"}, exact("T")},
		{"SUB-21 a name without a value", request{query: "match"}, exact("")},
		{"SUB-25 other names", request{query: "match=T&foo=1&_match=2&topic=x&mat=1&ma%FF=%FF"}, exact("T")},
		{"SUB-35 equal ones are kept", request{query: "match=T&match=T&match_exact=T"}, exact("T", "T", "T")},
		{"the wildcard", request{query: "match=*"}, exact("*")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.in.parse(t, mercure.DefaultLimits())
			if err != nil {
				t.Fatalf("ParseSubscribe(%+v) = %v", tc.in, err)
			}
			if d := cmp.Diff(tc.want, got.Matchers); d != "" {
				t.Errorf("ParseSubscribe(%+v) (-want +got):\n%s", tc.in, d)
			}
		})
	}
}

func TestParseSubscribe_cursor(t *testing.T) {
	for _, tc := range []struct {
		name   string
		in     request
		cursor string
		has    bool
	}{
		{"REC-18 none", request{query: "match=T"}, "", false},
		{"REC-05 in the query", request{query: "match=T&last_event_id=I"}, "I", true},
		{"SUB-08 in the body", request{query: "match=T", body: "last_event_id=I"}, "I", true},
		{"SUB-09 the query before the body", request{query: "match=T&last_event_id=I2", body: "last_event_id=I1"}, "I2", true},
		{"SUB-10 the header before both", request{query: "match=T&last_event_id=I2", body: "last_event_id=I1", header: "I3", hasHeader: true}, "I3", true},
		{"REC-19 empty and there", request{query: "match=T&last_event_id="}, "", true},
		{"REC-19 an empty one of the query before the body's", request{query: "match=T&last_event_id", body: "last_event_id=I"}, "", true},
		{"REC-19 an empty header", request{query: "match=T&last_event_id=I", hasHeader: true}, "", true},
		{"REC-24 decoded once", request{query: "match=T&last_event_id=%C3%A9-1%2525+%2B"}, "é-1%25 +", true},
		{"REC-11 the reserved word", request{query: "match=T&last_event_id=earliest"}, mercure.Earliest, true},
		{"of several the first", request{query: "match=T&last_event_id=1&last_event_id=2"}, "1", true},
		{"REC-17 no id at all", request{query: "match=T&last_event_id=%FF%00"}, "\xff\x00", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.in.parse(t, mercure.DefaultLimits())
			if err != nil || got.Cursor != tc.cursor || got.HasCursor != tc.has {
				t.Errorf("ParseSubscribe(%+v) = %+v, %v, want %q, %v", tc.in, got, err, tc.cursor, tc.has)
			}
		})
	}
	t.Run("REC-23 other spellings are no cursors", func(t *testing.T) {
		in := request{query: "match=T&lastEventID=1&Last-Event-ID=2&lastEventId=3&lastEventID=4&event=5", body: "LAST_EVENT_ID=6"}
		got, err := in.parse(t, mercure.DefaultLimits())
		if err != nil || got.HasCursor {
			t.Fatalf("ParseSubscribe(%+v) = %+v, %v, want no cursor", in, got, err)
		}
		want := []string{"lastEventID", "Last-Event-ID", "lastEventId", "LAST_EVENT_ID"}
		if d := cmp.Diff(want, got.IgnoredCursorNames); d != "" {
			t.Errorf("IgnoredCursorNames (-want +got):\n%s", d)
		}
	})
}

func TestParseSubscribe_refuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   request
		hint string // part of it
	}{
		{"SUB-12 the suffix is canonical", request{query: "match_Exact=x"}, "match_exact"},
		{"SUB-12 in every type", request{query: "match_URLPattern=x"}, "match_urlpattern"},
		{"SUB-12 a type's nickname", request{query: "match_url_pattern=x"}, "match_urlpattern"},
		{"SUB-12 a type of older versions", request{query: "match_uritemplate=x"}, "match_urlpattern"},
		{"SUB-21 an unknown type without a value", request{query: "match_nope"}, "match_urlpattern"},
		{"SUB-20 an encoded name", request{query: "%6Datch_nope=x"}, "match_exact"},
		{"SUB-23 upper case", request{query: "MATCH=x"}, "did you mean match?"},
		{"SUB-23 mixed case", request{query: "mAtCh_exact=x"}, "match_exact"},
		{"SUB-24 a plural", request{query: "match=T&matches=1"}, "match"},
		{"SUB-24 no suffix", request{query: "match_=x"}, "match"},
		{"SUB-24 no underscore", request{query: "matchtopic=x"}, "match"},
		{"SUB-24 a hyphen", request{query: "match-exact=x"}, "match_exact"},
		{"SUB-24 a dot", request{query: "match.x=1"}, "match"},
		{"SUB-24 brackets", request{query: "match[]=x"}, "match"},
		{"SUB-24 numbered brackets", request{query: "match%5B0%5D=x"}, "did you mean match?"},
		{"SUB-24 a trailing underscore", request{query: "match_exact_=x"}, "match_exact"},
		{"SUB-24 what lower-cases to ASCII is no ASCII", request{query: "match_\u212A=x"}, "match"},
		{"MATCH-08 whatever the value", request{query: "match_nope=*"}, "match"},
		{"SUB-04 in the body", request{query: "match=T", body: "m%61tch_x=y"}, "match"},
		{"SUB-07 in the query beside a good body", request{query: "match_nope=x", body: "match=B"}, "match"},
		{"SUB-26 not UTF-8", request{query: "match=%C0%AF"}, ""},
		{"SUB-27 C0", request{query: "match_exact=a%00"}, ""},
		{"SUB-28 C1", request{query: "match=a%C2%85"}, ""},
		{"SUB-28 DEL", request{query: "match=%7F"}, ""},
		{"SUB-29 Cf", request{query: "match_urlpattern=https://e.example/%EF%BB%BF"}, ""},
		{"SUB-31 one of several", request{query: "match=T&match=a%00"}, ""},
		{"SUB-05 in the body", request{query: "match=T", body: "match=%FF"}, ""},
		{"SUB-38 no matcher", request{}, "match_urlpattern"},
		{"SUB-38 no matcher but others", request{query: "foo=1&last_event_id=x"}, "match=TOPIC"},
		{"SUB-38 the parameter of older versions", request{query: "topic=https://example.com/{id}"}, "older protocol versions"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.in.parse(t, mercure.DefaultLimits())
			var field *mercure.FieldError
			if !errors.As(err, &field) || field.TooLarge || !strings.Contains(field.Hint, tc.hint) {
				t.Errorf("ParseSubscribe(%+v) = %+v, %+v, want a FieldError with hint %q", tc.in, got, err, tc.hint)
			}
		})
	}
}

func TestParseSubscribe_limits(t *testing.T) {
	l := mercure.Limits{Matchers: 3, PatternBytes: 5}
	for name, tc := range map[string]struct {
		in request
		ok bool
	}{
		"LIM-12 at the limits":              {request{query: "match=12345&match=2", body: "match=3"}, true},
		"LIM-01 LIM-03 one matcher more":    {request{query: "match=1&match=2", body: "match=3&match=4"}, false},
		"LIM-02 LIM-03 a pattern too long":  {request{query: "match=123456"}, false},
		"parameters of others do not count": {request{query: "match=1&a=1&b=2&c=3&d=4567890"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.in.parse(t, l)
			var field *mercure.FieldError
			if tc.ok && err != nil || !tc.ok && (!errors.As(err, &field) || field.TooLarge) {
				t.Errorf("ParseSubscribe(%+v) = %v, want success: %v", tc.in, err, tc.ok)
			}
		})
	}
}
