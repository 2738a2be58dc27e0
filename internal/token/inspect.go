package token

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// Status is the outcome of one check.
type Status string

// The outcomes.
const (
	// StatusOK says that the check passed.
	StatusOK Status = "ok"
	// StatusFailed says that the check refuses the token.
	StatusFailed Status = "failed"
	// StatusSkipped says that the check had nothing to judge, because an earlier one failed.
	StatusSkipped Status = "skipped"
)

// Verdict is what one check found.
type Verdict struct {
	Check  Check  `json:"check"`
	Status Status `json:"status"`
	// Detail says in words what was found, why the token is refused, or what was missing for the check.
	Detail string `json:"detail"`
}

// Inspection is everything there is to say about a token.
type Inspection struct {
	// Valid says that Verify would accept the token now.
	Valid bool `json:"valid"`
	// Verdicts has one entry for every check, in the order of Verify.
	Verdicts []Verdict `json:"verdicts"`
	// Warnings name what is accepted and yet not as it should be.
	Warnings []string `json:"warnings,omitempty"`
	// Header and Payload are the token's JSON as it stands there, nil where it is not even JSON.
	Header  json.RawMessage `json:"header,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// Claims is what could be read. Nothing of it is proved unless Valid.
	Claims *Claims `json:"-"`
}

// Inspect runs the checks of Verify, going on after a failure with those that can still be judged. It neither reads nor
// fills the cache. It is for operators and for those who hold the token: the verdicts tell more than the hub tells strangers.
func (v *Verifier) Inspect(ctx context.Context, compact string, endpoint rar.Action) Inspection {
	e := v.evaluate(compact, endpoint, v.now())
	in := Inspection{Valid: true, Verdicts: make([]Verdict, 0, len(v.checks)), Claims: e.claims}
	passed := make(map[Check]bool, len(v.checks))
	for _, c := range v.checks {
		verdict := Verdict{Check: c.name, Status: StatusOK}
		if need, missing := c.missing(passed); missing {
			verdict.Status, verdict.Detail = StatusSkipped, "cannot be judged: "+string(need)+" did not pass"
		} else if err := c.run(ctx, e); err != nil {
			verdict.Status, verdict.Detail = StatusFailed, reasonOf(err)
		} else {
			passed[c.name] = true
			verdict.Detail = c.passed(e)
		}
		in.Valid = in.Valid && verdict.Status == StatusOK
		in.Verdicts = append(in.Verdicts, verdict)
	}
	if passed[CheckHeader] {
		in.Header = e.header
	}
	if passed[CheckPayload] {
		in.Payload = e.payload
		in.Warnings = e.warnings()
	}
	return in
}

func reasonOf(err error) string {
	if errors.Is(err, ErrUnavailable) {
		return "the keys of the issuer cannot be had at the moment: " + err.Error()
	}
	return err.Error()
}

// warnings names the claims RFC 9068 section 2.2 requires and the hub does without (TOK-20), and the claim that held
// rights in drafts of the protocol.
func (e *evaluation) warnings() []string {
	var all []string
	for _, claim := range []struct {
		name   string
		absent bool
	}{
		{"sub", e.claims.Subject == ""},
		{"client_id", e.claims.ClientID == ""},
		{"iat", e.iat == nil},
		{"jti", e.claims.ID == ""},
	} {
		if claim.absent {
			all = append(all, "the claim "+claim.name+" is missing; access tokens should have it (RFC 9068 section 2.2)")
		}
	}
	if e.legacy && e.details == nil {
		all = append(all, "the claim mercure is ignored: rights are granted by authorization_details")
	}
	return all
}
