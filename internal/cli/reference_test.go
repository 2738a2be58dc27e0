package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/authzcli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/hubcli"
)

var update = flag.Bool("update", false, "rewrite docs/commands.md from the commands")

// program is one binary as a shell sees it.
type program struct {
	name string
	main func(context.Context, cli.Env) int
}

func programs() []program { return []program{{"hub", hubcli.Main}, {"authz", authzcli.Main}} }

func (p program) run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := p.main(t.Context(), cli.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Version: "test"})
	return result{code, stdout.String(), stderr.String()}
}

// help is what --help prints of a command, and the names of the commands under it with what is said of them.
type help struct {
	path   []string
	text   string
	under  []string
	shorts map[string]string
}

func (p program) help(t *testing.T, path ...string) help {
	t.Helper()
	r := p.run(t, append(path, "--help")...)
	if r.code != cli.ExitOK || r.stderr != "" {
		t.Fatalf("%s %s --help: code %d, %s", p.name, strings.Join(path, " "), r.code, r.stderr)
	}
	h := help{path: append([]string{p.name}, path...), text: r.stdout, shorts: map[string]string{}}
	_, list, ok := strings.Cut(r.stdout, "\nAvailable Commands:\n")
	if !ok {
		return h
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		name, short, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "help" && name != "completion" { // cobra's own
			h.under = append(h.under, name)
			h.shorts[name] = strings.TrimSpace(short)
		}
	}
	return h
}

// leaves are the commands that do something, in the order of the help, with what is said of each in one line.
func (p program) leaves(t *testing.T, path ...string) (all []help, shorts []string) {
	t.Helper()
	h := p.help(t, path...)
	for _, name := range h.under {
		at := append(append([]string{}, path...), name)
		below, said := p.leaves(t, at...)
		if len(below) == 0 {
			below, said = []help{p.help(t, at...)}, []string{h.shorts[name]}
		}
		all, shorts = append(all, below...), append(shorts, said...)
	}
	return all, shorts
}

// TestCommandsPage keeps docs/commands.md in step with the commands themselves: each has its section, which is its help.
func TestCommandsPage(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	intro, rest, ok := strings.Cut(string(raw), "-update -->\n")
	if !ok {
		t.Fatalf("%s has lost the line after which this test writes", path)
	}
	var b strings.Builder
	for _, p := range programs() {
		commands, shorts := p.leaves(t)
		fmt.Fprintf(&b, "\n## %s\n\n| command | does |\n| --- | --- |\n", p.name)
		for i, c := range commands {
			name := strings.Join(c.path, " ")
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), shorts[i])
		}
		for _, c := range commands {
			fmt.Fprintf(&b, "\n### %s\n\n```text\n%s\n```\n", strings.Join(c.path, " "), strings.TrimSpace(c.text))
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(intro+"-update -->\n"+b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(rest, b.String()); diff != "" {
		t.Errorf("docs/commands.md is out of step with the commands (run this test with -update):\n%s", diff)
	}
	for code, name := range []string{"done", "ran and failed", "command line or the configuration is wrong", "refused"} {
		if !regexp.MustCompile(`(?m)^\| ` + strconv.Itoa(code) + ` \| .*` + name).MatchString(intro) {
			t.Errorf("docs/commands.md does not explain exit code %d", code)
		}
	}
}

// TestHelp: every command says what it does, shows an example that it understands, and documents what --json prints.
func TestHelp(t *testing.T) {
	for _, p := range programs() {
		commands, _ := p.leaves(t)
		if len(commands) < 7 {
			t.Errorf("%s has %d commands", p.name, len(commands))
		}
		for _, c := range commands {
			name := strings.Join(c.path, " ")
			bare := regexp.MustCompile(`(?m)^ +--json +print JSON$`).MatchString(c.text)
			if bare && !strings.Contains(strings.ReplaceAll(c.text, "\n", " "), "With --json") {
				t.Errorf("%s does not say what --json prints", name)
			}
			for _, line := range examples(c.text) {
				checkExample(t, line)
			}
		}
	}
}

// examples are the command lines of the section Examples, continued lines joined.
func examples(text string) []string {
	_, section, ok := strings.Cut(text, "\nExamples:\n")
	if !ok {
		return nil
	}
	section, _, _ = strings.Cut(section, "\n\n")
	return strings.Split(strings.ReplaceAll(section, "\\\n", " "), "\n")
}

// checkExample runs the commands of an example with --help, which parses all flags and arguments before it prints.
func checkExample(t *testing.T, line string) {
	t.Helper()
	for part := range strings.SplitSeq(line, " | ") {
		part, _, _ = strings.Cut(part, " #")
		part = regexp.MustCompile(` [<>]+ \S+`).ReplaceAllString(part, "")
		words := strings.Fields(part)
		for _, p := range programs() {
			if len(words) == 0 || words[0] != p.name {
				continue
			}
			for i := range words {
				words[i] = strings.Trim(words[i], `'"`)
			}
			if r := p.run(t, append(words[1:], "--help")...); r.code != cli.ExitOK {
				t.Errorf("the example %q is not understood: %s", line, r.stderr)
			}
			for _, w := range words[1:] {
				name, _, _ := strings.Cut(w, "=")
				if strings.HasPrefix(name, "--") && !strings.Contains(p.run(t, append(commandOf(words[1:]), "--help")...).stdout, name+" ") {
					t.Errorf("the example %q uses %s, which the help does not list", line, name)
				}
			}
		}
	}
}

// commandOf gives the words before the first flag, without what may be an argument: at most two name a command here.
func commandOf(words []string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, "-") || len(out) == 2 {
			break
		}
		out = append(out, w)
	}
	return out
}

func TestCompletionScripts(t *testing.T) {
	for _, p := range programs() {
		for shell, want := range map[string]string{
			"bash": "__start_" + p.name, "zsh": "#compdef " + p.name, "fish": "complete -c " + p.name, "powershell": "Register-ArgumentCompleter",
		} {
			r := p.run(t, "completion", shell)
			if r.code != cli.ExitOK || !strings.Contains(r.stdout, want) || r.stderr != "" {
				t.Errorf("%s completion %s: code %d, %d bytes without %q, %s", p.name, shell, r.code, len(r.stdout), want, r.stderr)
			}
		}
		r := p.run(t, "__complete", "")
		for _, name := range p.help(t).under {
			if !strings.Contains(r.stdout, name+"\t") {
				t.Errorf("%s completes no %s:\n%s", p.name, name, r.stdout)
			}
		}
	}
}
