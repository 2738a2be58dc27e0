package hubapp

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/session"
)

func TestReadCookieKeys(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, session.CookieKeyBytes) }
	line := func(b byte) string { return base64.RawURLEncoding.EncodeToString(key(b)) }
	for name, c := range map[string]struct {
		text string
		want [][]byte
		err  string
	}{
		"one":                 {text: line(0xfb), want: [][]byte{key(0xfb)}},
		"newest first":        {text: line(2) + "\n" + line(1) + "\n", want: [][]byte{key(2), key(1)}},
		"padding, blank line": {text: "\r\n" + line(1) + "==\r\n\n", want: [][]byte{key(1)}},
		"nothing":             {text: "\n", err: "holds no key"},
		"too short":           {text: line(1) + "\n\n" + line(2)[:40], err: "line 3 "},
		"standard base64":     {text: base64.StdEncoding.EncodeToString(key(0xfb)), err: "line 1 "},
	} {
		got, err := readCookieKeys(string(write(t, "session.keys", c.text)))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: readCookieKeys = %v, want %q", name, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: readCookieKeys: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := readCookieKeys("missing"); err == nil {
		t.Error("readCookieKeys of a missing file succeeds")
	}
}
