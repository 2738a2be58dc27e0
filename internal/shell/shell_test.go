package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/shell"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func TestLine_isReadBackByAShell(t *testing.T) {
	words := []string{"plain", "", "two words", "it's", `a"b`, "$HOME", "`id`", "a;b&c|d", "*", "~", "#x", "a\\b", "é", "--opt=/x:y@z", "line\nbreak"}
	out, err := exec.CommandContext(t.Context(), needs.Program(t, "sh"), "-c", `printf '%s\0' `+shell.Line(words...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); strings.Join(got, "|") != strings.Join(words, "|") {
		t.Errorf("read back %q, want %q", got, words)
	}
	if got := shell.Quote("/usr/bin/hub"); got != "/usr/bin/hub" {
		t.Errorf("a plain word became %s", got)
	}
}
