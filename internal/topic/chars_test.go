package topic_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestCheck(t *testing.T) {
	cases := []struct {
		name string
		in   []string
		want error
	}{
		{"TOPIC-01 refuses bytes that are not UTF-8", []string{
			"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "a\x80", "\xe2\x82", "\xf4\x90\x80\x80",
		}, topic.ErrNotUTF8},
		{"TOPIC-02 refuses C0 controls", []string{"a\x00b", "\x09", "\x0a", "\x0d", "\x1b", "\x1f"}, topic.ErrForbiddenCharacter},
		{"TOPIC-03 refuses C1 controls", []string{"a\u0080b", "\u0085", "\u009f"}, topic.ErrForbiddenCharacter},
		{"TOPIC-04 refuses U+007F", []string{"a\x7fb"}, topic.ErrForbiddenCharacter},
		{"TOPIC-05 refuses format characters", strings.Split(
			"\u00ad \u0600 \u061c \u06dd \u180e \u200b \u200d \u200e \u202e \u2060 \u2066 \ufeff \ufff9 \U000110bd \U0001bca0 \U0001d173 \U000e0001 \U000e0041", " ",
		), topic.ErrForbiddenCharacter},
		{"TOPIC-06 allows everything else", []string{
			"", "plain words", "\u00a0", "\u2028", "\u2029", "\u3000", "\ufe0f", "e\u0301", "\u0378", "\ue000", "\U0001f600", "\ufffd",
			"https://example.com/books/1", "\U0010ffff",
		}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, in := range c.in {
				if err := topic.Check(in); !errors.Is(err, c.want) {
					t.Errorf("Check(%+q) = %v, want %v", in, err, c.want)
				}
			}
		})
	}
}

func TestCheck_errorNamesTheOffset(t *testing.T) {
	err := topic.Check("secret\u200b")
	if want := "topic: forbidden character at byte 6"; err == nil || err.Error() != want {
		t.Errorf("Check = %v, want %q", err, want)
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"", "https://example.com/é", "a\x00", "\xff", "\u200b", "\xed\xa0\x80", "\U000e0041", "a\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := error(nil)
		switch {
		case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
			want = topic.ErrForbiddenCharacter
			if !utf8.ValidString(s) {
				want = nil // either error, whichever comes first
			}
		case !utf8.ValidString(s):
			want = topic.ErrNotUTF8
		}
		err := topic.Check(s)
		switch {
		case want != nil && !errors.Is(err, want):
			t.Fatalf("Check(%+q) = %v, want %v", s, err, want)
		case want == nil && utf8.ValidString(s) && err != nil:
			t.Fatalf("Check(%+q) = %v, want nil", s, err)
		case !utf8.ValidString(s) && err == nil:
			t.Fatalf("Check(%+q) = nil, want an error", s)
		}
	})
}

func TestCheck_doesNotAllocate(t *testing.T) {
	s := strings.Repeat("https://example.com/é\U0001f600/", 20)
	if n := testing.AllocsPerRun(100, func() { _ = topic.Check(s) }); n != 0 {
		t.Errorf("Check allocates %v times, want 0", n)
	}
}

func ExampleCheck() {
	fmt.Println(topic.Check("https://example.com/books/1"))
	fmt.Println(topic.Check("https://example.com/\x00"))
	// Output:
	// <nil>
	// topic: forbidden character at byte 20
}
