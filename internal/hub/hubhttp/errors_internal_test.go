package hubhttp

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	tokens "github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// variables returns the names of the package variables in dir that start with prefix.
func variables(t *testing.T, dir, prefix string) []string {
	t.Helper()
	var names []string
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				names = append(names, namesOf(g, prefix)...)
			}
		}
	}
	return names
}

func namesOf(g *ast.GenDecl, prefix string) []string {
	var names []string
	for _, s := range g.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, n := range v.Names {
			if strings.HasPrefix(n.Name, prefix) {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// TestTable_knowsEverySentinel fails when the engine, the verifier or the compiler gains an error that this edge would
// answer with 500.
func TestTable_knowsEverySentinel(t *testing.T) {
	a := &api{rules: table()}
	for _, p := range []struct {
		dir      string
		answered map[string]error  // what requests can meet
		unmet    map[string]string // what they cannot, and why
	}{
		{
			dir: "..",
			answered: map[string]error{
				"ErrReserved": hub.ErrReserved, "ErrForbidden": hub.ErrForbidden, "ErrTooLarge": hub.ErrTooLarge,
				"ErrUnavailable": hub.ErrUnavailable, "ErrDraining": hub.ErrDraining,
				"ErrTooManySubscribers": hub.ErrTooManySubscribers, "ErrNoMatcher": hub.ErrNoMatcher, "ErrRevoked": hub.ErrRevoked,
			},
			unmet: map[string]string{"ErrRunning": "comes from Run"},
		},
		{dir: "../sink", answered: map[string]error{"ErrClosed": sink.ErrClosed}},
		{
			dir:      "../../token",
			answered: map[string]error{"ErrUnavailable": tokens.ErrUnavailable},
			unmet: map[string]string{
				"ErrKey": "comes from reading keys", "ErrTooLarge": "comes from minting", "ErrIncomplete": "comes from minting",
			},
		},
		{
			dir: "../../topic",
			answered: map[string]error{
				"ErrPattern": topic.ErrPattern, "ErrPatternTooLong": topic.ErrPatternTooLong, "ErrUnsupportedType": topic.ErrUnsupportedType,
			},
			unmet: map[string]string{
				"ErrHubURL": "comes from NewCompiler", "ErrNotUTF8": "comes from Check, whose errors package mercure turns into its own",
				"ErrForbiddenCharacter": "as ErrNotUTF8",
			},
		},
	} {
		for _, name := range variables(t, p.dir, "Err") {
			if p.unmet[name] != "" {
				continue
			}
			err, ok := p.answered[name]
			if !ok {
				t.Errorf("%s.%s is new: give it an answer in the table, or say here why no request meets it", p.dir, name)
				continue
			}
			if got := a.classify(fmt.Errorf("operation: %w", err)); got.reason == "internal" {
				t.Errorf("%s.%s has no answer in the table", p.dir, name)
			}
		}
	}
}

func TestTable_knowsOurOwnErrors(t *testing.T) {
	ours := 0
	for _, r := range table() {
		if strings.HasPrefix(r.target.Error(), "hubhttp: ") {
			ours++
		}
	}
	if declared := variables(t, ".", "err"); ours != len(declared) {
		t.Errorf("%d errors of this package are in the table, declared are %v", ours, declared)
	}
}

func TestTable_isSound(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range table() {
		ans := r.answer
		if ans.status < 400 || ans.status > 599 || ans.reason == "" {
			t.Errorf("%v: status %d, reason %q", r.target, ans.status, ans.reason)
		}
		if ans.reason == "internal" || seen[fmt.Sprint(ans.reason, ans.status)] && ans.reason != "field" {
			t.Errorf("%v: the reason %q is taken", r.target, ans.reason)
		}
		seen[fmt.Sprint(ans.reason, ans.status)] = true
		if (ans.status == http.StatusUnauthorized) != (ans.challenge == challengeBare || ans.challenge == challengeInvalidToken) {
			t.Errorf("ERR-09 %v: status %d with challenge %d", r.target, ans.status, ans.challenge)
		}
		if (ans.status == 429 || ans.status == 503) != (ans.retryAfter > 0) {
			t.Errorf("%v: status %d with Retry-After %v", r.target, ans.status, ans.retryAfter)
		}
		for _, code := range []string{"invalid_token", "invalid_request", "insufficient_scope"} {
			if strings.Contains(ans.detail+ans.hint, code) {
				t.Errorf("ERR-12 %v: the body repeats %s", r.target, code)
			}
		}
	}
}

func TestClassify(t *testing.T) {
	invalid := &tokens.InvalidError{Check: tokens.CheckExp, Reason: "expired at noon"}
	for _, tc := range []struct {
		name   string
		err    error
		hints  bool
		status int
		reason string
		hinted bool
	}{
		{"ERR-04 invalid token", fmt.Errorf("verify: %w", invalid), false, 401, "invalid_token", false},
		{"invalid token in development", invalid, true, 401, "invalid_token", true},
		{"revoked meanwhile", fmt.Errorf("subscribe: %w", hub.ErrRevoked), false, 401, "invalid_token", false},
		{"revoked meanwhile, in development", hub.ErrRevoked, true, 401, "invalid_token", true},
		{"ERR-07 broken rule", &mercure.FieldError{Field: "topic", Rule: "is required"}, false, 400, "field", false},
		{"LIM-08 exceeded limit", &mercure.FieldError{Field: "topic", TooLarge: true}, false, 413, "field_too_large", false},
		{"client gone", context.Canceled, false, 503, "cancelled", false},
		{"unknown", errors.New("surprise"), false, 500, "internal", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &api{rules: table(), options: Options{DevHints: tc.hints}}
			got := a.classify(tc.err)
			if got.status != tc.status || got.reason != tc.reason || (got.hint != "") != tc.hinted {
				t.Errorf("classify = %+v, want %d %q hinted %v", got, tc.status, tc.reason, tc.hinted)
			}
			if strings.Contains(got.detail+got.hint, "noon") || strings.Contains(got.detail, "surprise") {
				t.Errorf("classify = %+v tells what belongs in the log", got)
			}
		})
	}
}

func TestAnswer_level(t *testing.T) {
	a := &api{rules: table()}
	for _, tc := range []struct {
		err   error
		level slog.Level
		close bool
	}{
		{errNoToken, slog.LevelInfo, false},
		{errTooManyConnections, slog.LevelInfo, false},
		{context.Canceled, slog.LevelDebug, false},
		{hub.ErrDraining, slog.LevelInfo, true},
		{hub.ErrUnavailable, slog.LevelInfo, false},
		{sink.ErrClosed, slog.LevelWarn, false},
		{tokens.ErrUnavailable, slog.LevelWarn, false},
		{errors.New("surprise"), slog.LevelError, false},
	} {
		ans := a.classify(fmt.Errorf("operation: %w", tc.err))
		if ans.level() != tc.level || ans.closeConnection != tc.close {
			t.Errorf("%v: level %v, closes the connection %v, want %v, %v", tc.err, ans.level(), ans.closeConnection, tc.level, tc.close)
		}
	}
}

func TestTokenHint_knowsEveryCheck(t *testing.T) {
	for _, check := range []tokens.Check{
		tokens.CheckSize, tokens.CheckForm, tokens.CheckHeader, tokens.CheckTyp, tokens.CheckAlg, tokens.CheckCrit,
		tokens.CheckPayload, tokens.CheckIss, tokens.CheckKey, tokens.CheckSignature, tokens.CheckExp, tokens.CheckNbf,
		tokens.CheckIat, tokens.CheckAud, tokens.CheckCnf, tokens.CheckDetails, tokens.CheckKeyActions, tokens.CheckRevocation,
	} {
		if tokenHint(check) == "" {
			t.Errorf("no hint for the check %q", check)
		}
	}
	if tokenHint("new") != "" {
		t.Error("a hint for a check that does not exist")
	}
}
