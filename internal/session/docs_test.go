package session_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/session"
)

// reference is docs/session.md.
func reference(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/session.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestErrorCodes_areDocumented(t *testing.T) {
	page := reference(t)
	for _, code := range session.ErrorCodes() {
		if !strings.Contains(page, "| `"+code+"` |") {
			t.Errorf("docs/session.md does not explain session_error=%s", code)
		}
	}
}

// documentedStatuses reads, once, which statuses the reference gives for which endpoint: the rows "| `401` |" below a heading
// "## `POST {hub}/session/refresh`".
var documentedStatuses = sync.OnceValue(func() map[string]map[int]bool {
	raw, err := os.ReadFile("../../docs/session.md")
	if err != nil {
		return nil
	}
	all := map[string]map[int]bool{}
	heading := regexp.MustCompile("^## `([A-Z]+ )\\{hub\\}([a-z/]+)")
	row := regexp.MustCompile("^\\| `([0-9]{3})` \\|")
	var statuses map[int]bool
	for line := range strings.SplitSeq(string(raw), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			statuses = map[int]bool{}
			all[m[1]+m[2]] = statuses
		}
		if m := row.FindStringSubmatch(line); m != nil && statuses != nil {
			n, _ := strconv.Atoi(m[1])
			statuses[n] = true
		}
	}
	return all
})

// documented fails a test whose request was answered as docs/session.md does not say. Every test sends its requests past it.
func documented(t *testing.T, method, path string, status int) {
	t.Helper()
	_, endpoint, ok := strings.Cut(path, "/session")
	if method == "OPTIONS" || !ok {
		return
	}
	statuses, ok := documentedStatuses()[method+" /session"+endpoint]
	if !ok {
		t.Errorf("docs/session.md does not describe %s %s", method, path)
	} else if !statuses[status] {
		t.Errorf("docs/session.md does not say that %s %s answers %d", method, path, status)
	}
}

func TestReference_membersAndCookies(t *testing.T) {
	page := reference(t)
	for _, word := range []string{
		"active", "expires_at", "refresh_after", "now", "renewable", "sub", "username", "revoked",
		"__Secure-mercure_access_token", "__Host-cinnabar_session", "__Host-cinnabar_login_", "X-Mercure-Session", "Retry-After", "WWW-Authenticate",
	} {
		if !strings.Contains(page, word) {
			t.Errorf("docs/session.md does not mention %s", word)
		}
	}
}
