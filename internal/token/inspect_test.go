package token_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// statuses writes the verdicts as one line each.
func statuses(in token.Inspection) map[token.Check]token.Status {
	all := make(map[token.Check]token.Status, len(in.Verdicts))
	for _, v := range in.Verdicts {
		all[v.Check] = v.Status
	}
	return all
}

func TestInspect_Order(t *testing.T) {
	t.Parallel()
	in := newVerifier(t, options(t)).Inspect(t.Context(), good(), rar.Subscribe)
	var names []token.Check
	for _, v := range in.Verdicts {
		names = append(names, v.Check)
		if v.Status != token.StatusOK || v.Detail == "" {
			t.Errorf("verdict %+v of a good token, want ok with a detail", v)
		}
	}
	want := []token.Check{
		"size", "form", "header", "typ", "alg", "crit", "payload", "iss", "key", "signature",
		"exp", "nbf", "iat", "aud", "cnf", "details", "key_actions", "revocation",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("order of checks differs (-want +got):\n%s", diff)
	}
	if !in.Valid || len(in.Warnings) != 0 {
		t.Errorf("Inspect(good) = valid %v with warnings %q, want true and none", in.Valid, in.Warnings)
	}
	if string(in.Payload) != claims().String() || string(in.Header) != header().String() {
		t.Errorf("Inspect(good) shows header %s and payload %s, want those of the token", in.Header, in.Payload)
	}
}

func TestInspect_GoesOnAfterFailures(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, options(t))
	h := header().with(object{"typ": `"JWT"`})
	c := claims().with(object{"exp": seconds(start.Add(-90 * time.Second)), "aud": `"https://other.example"`, "iss": `"https://evil.example"`})
	in := v.Inspect(t.Context(), compact(h.String(), c.String(), "ES256", ecKey()), rar.Subscribe)
	want := map[token.Check]token.Status{
		"size": "ok", "form": "ok", "header": "ok", "typ": "failed", "alg": "ok", "crit": "ok", "payload": "ok", "iss": "failed",
		"key": "skipped", "signature": "skipped", "exp": "failed", "nbf": "ok", "iat": "ok", "aud": "failed", "cnf": "ok",
		"details": "ok", "key_actions": "skipped", "revocation": "skipped",
	}
	if diff := cmp.Diff(want, statuses(in)); diff != "" {
		t.Errorf("verdicts differ (-want +got):\n%s", diff)
	}
	reasons := map[token.Check]string{
		"typ": "at+jwt", "iss": "https://evil.example", "exp": "expired 1m30s ago", "aud": hubURL,
		"key": "iss did not pass", "signature": "key did not pass",
	}
	for _, v := range in.Verdicts {
		if !strings.Contains(v.Detail, reasons[v.Check]) {
			t.Errorf("%s: detail %q does not mention %q", v.Check, v.Detail, reasons[v.Check])
		}
	}
	if in.Valid {
		t.Error("Inspect() = valid, want not valid")
	}
}

func TestInspect_Unreadable(t *testing.T) {
	t.Parallel()
	in := newVerifier(t, options(t)).Inspect(t.Context(), "no token", rar.Subscribe)
	for _, v := range in.Verdicts[2:] {
		if v.Status != token.StatusSkipped {
			t.Errorf("%s of an unreadable token is %s, want skipped", v.Check, v.Status)
		}
	}
	if in.Valid || in.Header != nil || in.Payload != nil {
		t.Errorf("Inspect() = %+v, want nothing shown", in)
	}
}

func TestInspect_Warns(t *testing.T) {
	t.Parallel()
	c := claims().with(object{"sub": "", "client_id": "", "iat": "", "jti": "", "authorization_details": "", "mercure": `{"publish":["*"]}`})
	in := newVerifier(t, options(t)).Inspect(t.Context(), compact(header().String(), c.String(), "ES256", ecKey()), rar.Subscribe)
	if !in.Valid {
		t.Errorf("TOK-20 Inspect() = not valid: %+v", in.Verdicts)
	}
	for i, word := range []string{"sub", "client_id", "iat", "jti", "mercure"} {
		if len(in.Warnings) != 5 || !strings.Contains(in.Warnings[i], word) {
			t.Fatalf("TOK-20 warnings are %q, want one about each missing claim and the old one", in.Warnings)
		}
	}
}

// TestInspect_AgreesWithVerify runs both over tokens that fail at each check.
func TestInspect_AgreesWithVerify(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Revocations = revoked{"t9"}
	v := newVerifier(t, o)
	seen := make(map[token.Check]bool)
	for _, c := range []tokenCase{
		{},
		{claims: object{"x": quoted(strings.Repeat("x", 9000))}},
		{header: object{"typ": "1"}},
		{header: object{"alg": "1"}},
		{header: object{"crit": "1"}},
		{header: object{"x": "1 2"}},
		{claims: object{"sub": "1"}},
		{claims: object{"iss": "1"}},
		{header: object{"kid": "1"}},
		{header: object{"kid": `"as2"`}},
		{claims: object{"exp": ""}},
		{claims: object{"nbf": "null"}},
		{claims: object{"iat": "null"}},
		{claims: object{"aud": "null"}},
		{claims: object{"cnf": "null"}},
		{claims: object{"authorization_details": "null"}},
		{claims: object{"jti": `"t9"`}},
		{claims: object{"jti": `"t9"`, "exp": "", "aud": "1"}},
	} {
		compact := compact(header().with(c.header).String(), claims().with(c.claims).String(), "ES256", ecKey())
		_, err := v.Verify(t.Context(), compact, rar.Subscribe)
		in := v.Inspect(t.Context(), compact, rar.Subscribe)
		if in.Valid != (err == nil) {
			t.Errorf("%v: Inspect() = valid %v, Verify() = %v", c, in.Valid, err)
		}
		for _, verdict := range in.Verdicts {
			if verdict.Status == token.StatusOK {
				continue
			}
			var invalid *token.InvalidError
			if !errors.As(err, &invalid) || invalid.Check != verdict.Check || invalid.Reason != verdict.Detail {
				t.Errorf("first failed verdict is %+v, Verify() = %v", verdict, err)
			}
			seen[verdict.Check] = true
			break
		}
	}
	if len(seen) < 13 {
		t.Errorf("the tokens fail at %d checks only: %v", len(seen), seen)
	}
}

// revoked is a set of revoked jti.
type revoked []string

func (r revoked) Revoked(c *token.Claims) bool {
	return slices.Contains(r, c.ID)
}

// noKeys is a source that cannot be reached.
type noKeys struct{ err error }

func (n noKeys) Keys(context.Context, string) ([]token.Key, error) { return nil, n.err }

func TestVerify_Unavailable(t *testing.T) {
	t.Parallel()
	o := options(t)
	cause := errors.New("no route")
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: noKeys{cause}}}
	v := newVerifier(t, o)
	_, err := v.Verify(t.Context(), good(), rar.Subscribe)
	var invalid *token.InvalidError
	if !errors.Is(err, token.ErrUnavailable) || !errors.Is(err, cause) || errors.As(err, &invalid) {
		t.Errorf("Verify() = %v, want ErrUnavailable with its cause", err)
	}
	in := v.Inspect(t.Context(), good(), rar.Subscribe)
	if got := statuses(in); got["key"] != "failed" || got["signature"] != "skipped" || got["exp"] != "ok" {
		t.Errorf("verdicts = %v, want key failed, signature skipped, exp ok", got)
	}
}
