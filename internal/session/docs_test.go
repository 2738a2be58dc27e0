package session_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/session"
)

func TestErrorCodes_areDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/session.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range session.ErrorCodes() {
		if !strings.Contains(string(page), "| `"+code+"` |") {
			t.Errorf("docs/session.md does not explain session_error=%s", code)
		}
	}
}
