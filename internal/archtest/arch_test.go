package archtest_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/cinnabar-hub/cinnabar/"

// pkg is what 'go list -json' says of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// rule forbids packages to depend on others.
type rule struct {
	of     []string // packages, by path in the module; a final slash means all below
	except []string
	bad    []string // import paths or prefixes of them
	direct bool     // only direct imports count
	why    string
}

func rules() []rule {
	drivers := []string{"modernc.org/sqlite", "database/sql", "github.com/pressly/goose", "go.etcd.io/bbolt"}
	return []rule{
		{
			of: []string{"internal/hub/"}, bad: []string{module + "internal/as"},
			why: "the hub and the authorization server meet in formats (rar, token) and in configuration, never in code",
		},
		{
			of: []string{"internal/as/"}, bad: []string{module + "internal/hub", module + "internal/history"},
			why: "the hub and the authorization server meet in formats (rar, token) and in configuration, never in code",
		},
		{
			of: []string{"internal/session/"}, bad: []string{module + "internal/hub", module + "internal/as"},
			why: "the session broker is a client of both, over HTTP",
		},
		{
			of: []string{""}, except: []string{"internal/hub/hubhttp", "internal/as/ashttp", "internal/session", "internal/httpserver", "internal/demo", "internal/app/"},
			bad: []string{"github.com/labstack/echo"}, direct: true,
			why: "the HTTP framework stays at the edge",
		},
		{
			of: []string{""}, except: []string{"internal/as", "internal/as/"}, bad: []string{"github.com/ory/fosite"}, direct: true,
			why: "fosite stays behind the authorization server",
		},
		{
			of: []string{"internal/hub"}, bad: append([]string{
				"github.com/labstack/echo", "github.com/lestrrat-go/jwx", "github.com/ory", module + "internal/token",
				module + "internal/revocation", module + "internal/clientassertion", module + "internal/presence/local",
			}, drivers...),
			why: "the engine gets a Principal, not a token, and writes to sinks, not to a framework",
		},
		{
			of: []string{"internal/topic", "internal/sse"}, bad: []string{module},
			why: "leaves know nobody",
		},
		{of: []string{"internal/mercure"}, bad: not("internal/topic", "internal/sse"), why: "the protocol's vocabulary stands on the leaves alone"},
		{of: []string{"internal/rar"}, bad: not("internal/topic"), why: "authorization details are about topics alone"},
		{of: []string{"internal/token"}, bad: not("internal/topic", "internal/rar"), why: "both sides mint and verify with it, so it knows neither"},
		{of: []string{"internal/keyring"}, bad: not("internal/topic", "internal/rar", "internal/token"), why: "keys know neither side"},
		{of: []string{"internal/revocation"}, bad: []string{module}, why: "what was revoked is told by a port; who asks and who tells are not its business"},
		{of: []string{"internal/clientassertion"}, bad: []string{module}, why: "how a client proves itself concerns neither side alone"},
		{of: []string{"internal/control"}, bad: not("internal/history", "internal/history/backup", "internal/private", "internal/shell"), why: "the socket serves a history, whatever hub it belongs to"},
		{
			of: []string{"client"}, bad: append(not("internal/sse", "internal/mercure", "internal/topic"), "github.com/labstack/echo", "github.com/lestrrat-go", "github.com/ory", "github.com/prometheus"),
			why: "who imports the client gets a client, and not a server",
		},
		{of: []string{"internal/history", "internal/presence"}, bad: []string{module}, why: "a port knows no adapter and no user"},
		{of: []string{"internal/presence/presencetest"}, bad: not("internal/presence"), why: "a contract is that of its port, whoever keeps it"},
		{
			of: []string{"internal/presence/local"}, bad: not("internal/presence", "internal/private", "internal/shell"),
			why: "adapters know their port, never the engine, nor the history whose folder they are in",
		},
		{
			of:  []string{"internal/history/memory", "internal/history/segments", "internal/history/bolt"},
			bad: []string{module + "internal/hub", module + "internal/as"}, why: "adapters know their port, never the engine",
		},
		{of: []string{"internal/history/calls", "internal/history/feed"}, bad: not("internal/history"), why: "what adapters share knows their port alone"},
		{
			of: []string{"internal/history/durable"}, bad: not("internal/history", "internal/private", "internal/shell"),
			why: "what adapters share knows their port, and whose folder it is, alone",
		},
		{
			of: []string{""}, except: []string{"internal/history/bolt", "internal/presence/local"}, bad: []string{"go.etcd.io/bbolt"}, direct: true,
			why: "a port has one adapter for each database, and nobody else speaks to it",
		},
		{
			of: []string{""}, except: []string{
				"internal/app/", "internal/history/memory", "internal/history/segments", "internal/history/bolt", "internal/presence/local", "internal/as/store/",
			},
			bad: []string{
				module + "internal/history/memory", module + "internal/history/segments", module + "internal/history/bolt",
				module + "internal/presence/local", module + "internal/as/store/sqlstore",
			},
			direct: true, why: "only the composition roots choose adapters",
		},
		{
			of: []string{"cmd/authz"}, bad: []string{module + "internal/hub", module + "internal/history"},
			why: "the authorization server's binary does not carry the hub",
		},
		{of: []string{"internal/", "cmd/"}, except: []string{"internal/history/historytest"}, bad: []string{module + "test"}, why: "what tests share is no part of the product"},
		{
			of: []string{"test/conformance/"}, except: []string{"test/conformance/ownhub"}, bad: []string{module + "internal", module + "client", module + "cmd", module + "test/harness"},
			why: "the conformance suite judges every hub from outside, ours among them",
		},
		{of: []string{""}, bad: []string{"github.com/stretchr/testify", "github.com/pkg/errors", "math/rand", "!math/rand/v2", "github.com/lestrrat-go/jwx/v3"}, direct: true, why: "one way of doing each thing"},
	}
}

// not gives the module itself as forbidden but for some packages: a bad prefix with exceptions written as !path.
func not(allowed ...string) []string {
	bad := []string{module}
	for _, a := range allowed {
		bad = append(bad, "!"+module+a)
	}
	return bad
}

func TestBorders(t *testing.T) {
	pkgs := list(t)
	for _, r := range rules() {
		for _, p := range pkgs {
			if !covers(r.of, p.ImportPath) || covers(r.except, p.ImportPath) {
				continue
			}
			deps := p.Deps
			if r.direct {
				deps = p.Imports
			}
			for _, d := range deps {
				if forbidden(r.bad, d, p.ImportPath) {
					t.Errorf("%s must not depend on %s: %s", strings.TrimPrefix(p.ImportPath, module), d, r.why)
				}
			}
		}
	}
}

func TestRulesNamePackagesThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, p := range list(t) {
		known[strings.TrimPrefix(p.ImportPath, module)] = true
	}
	for _, r := range rules() {
		for _, name := range slices.Concat(r.of, r.except) {
			if name != "" && !strings.HasSuffix(name, "/") && !known[name] {
				t.Errorf("a rule names %s, which is no package", name)
			}
		}
	}
}

// maxLines is the longest a production file may be: a longer one holds more than one idea.
const maxLines = 500

func TestFilesStayReadable(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(raw), "\n"); n > maxLines {
			t.Errorf("%s has %d lines, more than %d", strings.TrimPrefix(path, root), n, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// covers says whether one of the patterns names the package.
func covers(patterns []string, importPath string) bool {
	path := strings.TrimPrefix(importPath, module)
	for _, p := range patterns {
		if p == "" || p == path || strings.HasSuffix(p, "/") && (strings.HasPrefix(path, p) || path == strings.TrimSuffix(p, "/")) {
			return true
		}
	}
	return false
}

func forbidden(bad []string, dep, self string) bool {
	if dep == self || slices.Contains(bad, "!"+dep) {
		return false
	}
	for _, b := range bad {
		if dep == b || strings.HasPrefix(dep, strings.TrimSuffix(b, "/")+"/") {
			return true
		}
	}
	return false
}
