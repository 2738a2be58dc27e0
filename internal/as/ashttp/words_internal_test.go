package ashttp

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const wordsHub = "https://hub.example/.well-known/mercure"

func sentence(p permission) string {
	s := p.Lead + " " + p.Subject
	if p.Tail != "" {
		s += " " + p.Tail
	}
	return s
}

func TestDescribe(t *testing.T) {
	const read = "Read private updates about "
	for _, tc := range []struct {
		match string
		typ   topic.Type
		want  string
	}{
		{"https://shop.example/orders/42", topic.Exact, read + "orders/42 on shop.example"},
		{"https://shop.example:8443/orders/42", topic.Exact, read + "orders/42 on shop.example:8443"},
		{"https://shop.example/", topic.Exact, read + "the page at shop.example"},
		{"https://shop.example/o?x=*", topic.Exact, read + "o?x=* on shop.example"},
		{"/orders/42", topic.Exact, read + "orders/42 on hub.example"},
		{"//evil.example/x", topic.Exact, read + "//evil.example/x"},
		{"urn:isbn:123", topic.Exact, read + "urn:isbn:123"},
		{"https://user@shop.example/x", topic.Exact, read + "https://user@shop.example/x"},
		{`https:\\shop.example\x`, topic.Exact, read + `https:\\shop.example\x`},
		{"https://shop.example/users/42/:resource", topic.URLPattern, read + "anything directly under users/42 on shop.example"},
		{"https://shop.example/users/42/:rest*", topic.URLPattern, read + "everything under users/42 on shop.example"},
		{"https://shop.example/users/42/:rest(.*)", topic.URLPattern, read + "everything under users/42 on shop.example"},
		{"https://shop.example/users/42/*", topic.URLPattern, read + "everything under users/42 on shop.example"},
		{"https://shop.example/*", topic.URLPattern, read + "everything on shop.example"},
		{"https://shop.example", topic.URLPattern, read + "everything on shop.example"},
		{"https://shop.example/orders/42", topic.URLPattern, read + "orders/42 on shop.example"},
		{`https://shop.example/a\:b/*`, topic.URLPattern, read + "everything under a:b on shop.example"},
		{"/orders/*", topic.URLPattern, read + "everything under orders on hub.example"},
		{"https://shop.example/:a/x", topic.URLPattern, read + "whatever matches https://shop.example/:a/x"},
		{"https://shop.example/a/:b?", topic.URLPattern, read + "whatever matches https://shop.example/a/:b?"},
		{"https://shop.example/a/:b(\\d+)", topic.URLPattern, read + "whatever matches https://shop.example/a/:b(\\d+)"},
		{"https://shop.example/a/x*", topic.URLPattern, read + "whatever matches https://shop.example/a/x*"},
		{"https://shop.example/:a", topic.URLPattern, read + "whatever matches https://shop.example/:a"},
		{"https://*.example/x", topic.URLPattern, read + "whatever matches https://*.example/x"},
		{"https://shop.example:*/x", topic.URLPattern, read + "whatever matches https://shop.example:*/x"},
		{"http{s}?://shop.example/x", topic.URLPattern, read + "whatever matches http{s}?://shop.example/x"},
		{"https://bücher.example/x", topic.Exact, read + "x on bücher.example (xn--bcher-kva.example)"},
		{"*", topic.Exact, "Read every private update on this hub"},
		{"*", topic.URLPattern, "Read every private update on this hub"},
		{wordsHub + "/subscriptions", topic.Exact, "See who is connected to this hub, including the details they share"},
		{"/.well-known/mercure/subscriptions/*", topic.URLPattern, "See who is connected to this hub, including the details they share"},
		{wordsHub + "/subscriptions/exact/x", topic.Exact, "See who is connected to exact/x, including the details they share"},
		{wordsHub + "/subscriptionsX", topic.Exact, read + ".well-known/mercure/subscriptionsX on hub.example"},
	} {
		ds := []rar.Detail{{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: tc.match, MatchType: tc.typ}}}}
		got := describe(ds, wordsHub, "")
		if len(got) != 1 || sentence(got[0]) != tc.want || got[0].Raw != tc.match {
			t.Errorf("%s (%s):\ngot  %+v\nwant %s", tc.match, tc.typ, got, tc.want)
		}
	}
	t.Run("writing comes last and is marked", func(t *testing.T) {
		got := describe([]rar.Detail{{
			Actions: []rar.Action{rar.Publish, rar.Subscribe, "fly"},
			Topics:  []rar.TopicMatcher{{Match: "https://e.example/u_1/x", MatchType: topic.Exact}, {Match: "*", MatchType: topic.Exact}},
			Payload: json.RawMessage(`{"b":1,"a":2}`),
		}}, wordsHub, "u_1")
		var said []string
		for _, p := range got {
			said = append(said, sentence(p))
		}
		want := "Read private updates about (you)/x on e.example|Read every private update on this hub|" +
			"Send updates about (you)/x on e.example|Send updates about anything on this hub"
		if strings.Join(said, "|") != want {
			t.Errorf("got %s", strings.Join(said, "|"))
		}
		if got[0].Warn || !got[1].Warn || !got[2].Warn || !got[3].Warn || got[0].Shown != "a, b" || got[2].Shown != "" {
			t.Errorf("got %+v", got)
		}
	})
}

// FuzzDescribe checks that words never hide the host: what is not said in words is shown as it is.
func FuzzDescribe(f *testing.F) {
	for _, seed := range []string{"https://e.example/a/*", "/a/:b", `\`, ":", "https://e/\\", "{", "https://e.example@evil/x", "*"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, match string, pattern bool) {
		typ := topic.Exact
		if pattern {
			typ = topic.URLPattern
		}
		ds := []rar.Detail{{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: match, MatchType: typ}}}}
		for _, p := range describe(ds, wordsHub, "") {
			if p.Raw != match || p.Lead == "" {
				t.Errorf("%q: %+v", match, p)
			}
			if utf8.ValidString(match) && !utf8.ValidString(sentence(p)) {
				t.Errorf("%q: %q", match, sentence(p))
			}
		}
	})
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1 second", 90 * time.Second: "90 seconds", 10 * time.Minute: "10 minutes", 121 * time.Second: "3 minutes",
		24 * time.Hour: "24 hours", time.Hour: "60 minutes", 49 * time.Hour: "3 days", 336 * time.Hour: "14 days",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
