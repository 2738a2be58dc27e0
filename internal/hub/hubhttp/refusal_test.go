package hubhttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// The ports are satisfied by structure alone; only this test knows both sides.
var (
	_ hub.Metrics      = (*obs.Metrics)(nil)
	_ hubhttp.Metrics  = (*obs.Metrics)(nil)
	_ hubhttp.Verifier = (*token.Verifier)(nil)
)

func TestRefusal_invalidTokensAreAlike(t *testing.T) {
	for _, hints := range []bool{false, true} {
		t.Run(fmt.Sprintf("hints %v", hints), func(t *testing.T) {
			f := start(t, func(s *settings) { s.options.DevHints = hints })
			good := f.subscribeToken("*")
			bodies := make(map[string]string)
			for check, compact := range map[string]string{
				"exp":         f.mintExpired(),
				"aud":         f.mint(f.subscriber, func(c *token.MintClaims) { c.Audience = hubURL + "/" }, grant(rar.Subscribe, "*")),
				"iss":         f.mint(f.subscriber, func(c *token.MintClaims) { c.Issuer = "https://other.example" }, grant(rar.Subscribe, "*")),
				"signature":   good[:len(good)-8] + "AAAAAAAA",
				"form":        "opaque",
				"key_actions": f.publishToken("*"),
			} {
				resp := f.do(request0(f.base+"?match=secret-topic", []string{bearer(compact)}))
				if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token", resource_metadata="`+metadataURL+`"` {
					t.Errorf("ERR-13 %s = %d %q", check, resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
				}
				p := resp.problem(t)
				id := p.RequestID
				if hints && (p.Check != check || p.Hint == "") {
					t.Errorf("problem = %+v, want the check %q and a hint", p, check)
				}
				if !hints {
					bodies[strings.ReplaceAll(resp.body, id, "")] = check
				}
				line := lineWith(f.log.String(), id, "request refused")
				for _, want := range []string{"check=" + check, "status=401", "reason=invalid_token", "endpoint=subscribe"} {
					if !strings.Contains(line, want) {
						t.Errorf("log line = %q, want %q in it", line, want)
					}
				}
			}
			if !hints && len(bodies) != 1 {
				t.Errorf("ERR-13 bodies differ: %v", bodies)
			}
			if got := f.log.String(); strings.Contains(got, "secret-topic") || strings.Contains(got, good[:20]) {
				t.Errorf("the log has a query or a token:\n%s", got)
			}
		})
	}
}

// lineWith returns the log line that has all parts.
func lineWith(log string, parts ...string) string {
	for line := range strings.Lines(log) {
		found := true
		for _, p := range parts {
			found = found && strings.Contains(line, p)
		}
		if found {
			return line
		}
	}
	return ""
}

// verifierFunc is a verifier in any state.
type verifierFunc func() (*token.Claims, error)

func (v verifierFunc) Verify(context.Context, string, rar.Action) (*token.Claims, error) { return v() }

func TestRefusal_keysThatCannotBeHadAreNotTheTokensFault(t *testing.T) {
	f := start(t, func(s *settings) {
		s.verifier = verifierFunc(func() (*token.Claims, error) {
			return nil, fmt.Errorf("fetch keys: %w: dial tcp 10.0.0.1", token.ErrUnavailable)
		})
	})
	resp := f.do(request0(f.base+"?match=T", []string{bearer("a.b.c")}))
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || strings.Contains(resp.body, "10.0.0.1") {
		t.Errorf("GET = %d %q", resp.StatusCode, resp.body)
	}
	if line := lineWith(f.log.String(), resp.problem(t).RequestID, "10.0.0.1"); !strings.Contains(line, "level=WARN") {
		t.Errorf("log line = %q, want the cause as a warning", line)
	}
}

func TestRefusal_defectsAreNotExplained(t *testing.T) {
	f := start(t, func(s *settings) {
		s.verifier = verifierFunc(func() (*token.Claims, error) { return nil, errors.New("inner secret") })
	})
	resp := f.do(request0(f.base+"?match=T", []string{bearer("a.b.c")}))
	if resp.StatusCode != http.StatusInternalServerError || strings.Contains(resp.body, "inner") {
		t.Errorf("GET = %d %q", resp.StatusCode, resp.body)
	}
	if line := lineWith(f.log.String(), resp.problem(t).RequestID, "inner secret"); !strings.Contains(line, "level=ERROR") {
		t.Errorf("log line = %q, want the cause as an error", line)
	}
}

func TestRefusal_countsAndNamesFields(t *testing.T) {
	f := start(t, nil)
	resp := f.do(request0(f.base+"?match_private%2Ftopic=x", nil))
	if p := resp.problem(t); p.Field != "other" || !strings.Contains(p.Detail, "match_private/topic") {
		t.Errorf("problem = %+v, want the parameter's name in the detail", p)
	}
	if got := f.log.String(); strings.Contains(got, "private/topic") {
		t.Errorf("the log has a name that a client made up:\n%s", got)
	}
	resp = f.post("data=x")
	if p := resp.problem(t); p.Field != "topic" || strings.Contains(p.Detail, "mercure:") {
		t.Errorf("problem = %+v", p)
	}
	if got := f.gauge("cinnabar_hub_requests_refused_total"); got < 1 {
		t.Errorf("refused requests = %v", got)
	}
}

func TestRefusal_topicsAreForDebugging(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		f := start(t, func(s *settings) { s.logLevel = level })
		f.open(request0(f.base+"?match=very-private", nil))
		f.publish("topic", "very-private", "data", "payload-of-it")
		f.post("topic=very-private&id=%23", formType, bearer(f.publishToken("*")))
		f.post("topic=very-private", formType, bearer(f.publishToken("x")))
		got := f.log.String()
		if level == slog.LevelInfo && strings.Contains(got, "very-private") || strings.Contains(got, "payload-of-it") {
			t.Errorf("log at %v has a topic or a payload:\n%s", level, got)
		}
	}
}
