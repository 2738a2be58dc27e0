package as

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// clientProofSteps is the budget of all proofs about one request whose sender has proven nothing; what is not proved within it
// is refused. Ordinary requests take a few thousand steps.
const clientProofSteps = 1 << 21

// hubResource is a resource with the compiler that resolves its relative patterns. It is immutable.
type hubResource struct {
	Resource
	compiler *topic.Compiler
}

// resource finds a resource by its identifier, byte for byte.
func (s *Server) resource(id string) (hubResource, bool) {
	for _, r := range s.resources {
		if r.ID == id {
			return r, true
		}
	}
	return hubResource{}, false
}

// ceiling is what an account may have through a client at a resource.
type ceiling struct {
	// details is everything.
	details []rar.Detail
	// unasked is what a request gets that asks for nothing in particular.
	unasked []rar.Detail
	// excess is what happens to wishes beyond details.
	excess rar.Excess
}

// ceiling unites the policies that apply. A detail whose template has no value for this account grants nothing.
func (s *Server) ceiling(ctx context.Context, client store.Client, account store.Account, hub hubResource) ceiling {
	c := ceiling{excess: rar.Trim}
	v := variables(client, account)
	itself := account.ID == client.ID // no client's identifier is an account's
	applies := false
	for _, p := range s.options.Policies {
		if !p.When.client(client, hub.ID) || !p.When.account(account) {
			continue
		}
		applies = true
		details := s.expand(ctx, p.Grant, v, slog.String("policy", p.ID))
		c.details = append(c.details, details...)
		if p.missing(client, itself) == MissingGrantAll {
			c.unasked = append(c.unasked, details...)
		}
		if p.OnExcess != ExcessTrim || itself { // which has nobody's rights but its own, and knows them
			c.excess = rar.Deny
		}
	}
	if !applies {
		c.excess = rar.Deny
	}
	return c
}

// expand fills in a template, leaving out the details that have no value for a variable or an unsafe one.
func (s *Server) expand(ctx context.Context, template []rar.Detail, v rar.Variables, of slog.Attr) []rar.Detail {
	var out []rar.Detail
	for i := range template {
		expanded, err := rar.Expand(template[i:i+1], v)
		if err != nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "detail left out", of,
				slog.Int("detail", i), slog.String("error", err.Error()))
			continue
		}
		out = append(out, expanded...)
	}
	return out
}

func variables(client store.Client, account store.Account) rar.Variables {
	v := rar.Variables{"sub": account.ID, "client_id": client.ID, "user.name": account.Username}
	for name, value := range account.Attributes {
		if name != "name" {
			v["user."+name] = value
		}
	}
	return v
}

func (w When) client(c store.Client, resource string) bool {
	return (len(w.Clients) == 0 || slices.Contains(w.Clients, c.ID)) &&
		(len(w.Resources) == 0 || slices.Contains(w.Resources, resource))
}

func (w When) account(a store.Account) bool {
	hasRole := func(role string) bool { return slices.Contains(a.Roles, role) }
	return (len(w.Roles) == 0 || slices.ContainsFunc(w.Roles, hasRole)) &&
		(len(w.Users) == 0 || slices.Contains(w.Users, a.Username))
}

func (p Policy) missing(c store.Client, itself bool) Missing {
	if p.OnMissingRequest != "" {
		return p.OnMissingRequest
	}
	if c.SkipConsent || itself {
		return MissingGrantAll
	}
	return MissingDeny
}

// clientMayHave says whether every wish of a request lies within what the client may have for some account. It is asked
// before sign-in, so template variables stand for anything; what it lets through, the ceiling judges again.
func (s *Server) clientMayHave(client store.Client, hub hubResource, wanted []rar.Detail) bool {
	var allowed []allowance
	prover := topic.NewProver(clientProofSteps)
	for _, p := range s.options.Policies {
		if p.When.client(client, hub.ID) {
			allowed = append(allowed, allowances(p.Grant, hub.compiler)...)
		}
	}
	for _, d := range wanted {
		for _, t := range d.Topics {
			m, err := hub.compiler.Compile(t.MatchType, t.Match)
			if err != nil {
				return false
			}
			missing := d.ActionSet()
			for _, w := range allowed {
				if w.actions&missing != 0 && w.covers(m, prover) {
					missing &^= w.actions
				}
			}
			if missing != 0 {
				return false
			}
		}
	}
	return true
}

// clientHasPolicy says whether any policy could apply to somebody who uses the client.
func (s *Server) clientHasPolicy(client store.Client, hub hubResource) bool {
	return slices.ContainsFunc(s.options.Policies, func(p Policy) bool {
		return p.When.client(client, hub.ID) && len(p.Grant) > 0
	})
}

// allowance is an upper bound of what one template grants, whatever the values of its variables.
type allowance struct {
	actions  rar.ActionSet
	matcher  *topic.Matcher // nil: literals decide
	literals []string       // of an exact template, the text around its variables
}

func allowances(template []rar.Detail, c *topic.Compiler) []allowance {
	var out []allowance
	for _, d := range template {
		for _, t := range d.Topics {
			a := allowance{actions: d.ActionSet()}
			literals := splitTemplate(t.Match)
			if t.MatchType != topic.URLPattern && len(literals) > 1 {
				a.literals = literals
				out = append(out, a)
				continue
			}
			m, err := c.Compile(t.MatchType, strings.Join(literals, "*"))
			if err != nil {
				// Somebody's value may make it a pattern; nothing is known before that.
				m, err = c.Compile(topic.Exact, topic.Wildcard)
			}
			if err == nil {
				a.matcher = m
				out = append(out, a)
			}
		}
	}
	return out
}

// covers says whether all that the matcher selects is within the allowance.
func (w allowance) covers(m *topic.Matcher, p *topic.Prover) bool {
	if w.matcher != nil {
		return p.Contains(w.matcher, m)
	}
	if m.Type() != topic.Exact || m.Wildcard() {
		return false
	}
	rest, ok := strings.CutPrefix(m.Pattern(), w.literals[0])
	for i, literal := range w.literals[1:] {
		if !ok {
			return false
		}
		if i == len(w.literals)-2 {
			return strings.HasSuffix(rest, literal)
		}
		_, rest, ok = strings.Cut(rest, literal)
	}
	return ok
}

// splitTemplate returns the text around the {{variables}} of a template.
func splitTemplate(s string) []string {
	var literals []string
	for {
		before, rest, ok := strings.Cut(s, "{{")
		if ok {
			_, rest, ok = strings.Cut(rest, "}}")
		}
		if !ok {
			return append(literals, s)
		}
		literals = append(literals, before)
		s = rest
	}
}

// templateNames returns the names of the variables of a template.
func templateNames(s string) []string {
	var names []string
	for {
		_, rest, ok := strings.Cut(s, "{{")
		if !ok {
			return names
		}
		name, rest, ok := strings.Cut(rest, "}}")
		if !ok {
			return names
		}
		names = append(names, strings.TrimSpace(name))
		s = rest
	}
}

// checkTemplates expands every template with sample values and compiles the result at every resource, so that a mistake is
// found when the server starts.
func checkTemplates(o Options, resources []hubResource) []error {
	var faults []error
	for _, p := range o.Policies {
		if err := checkTemplate(p.Grant, resources); err != nil {
			faults = append(faults, fmt.Errorf("policy %q: %w", p.ID, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Scopes)) {
		if err := checkTemplate(o.Scopes[name], resources); err != nil {
			faults = append(faults, fmt.Errorf("scope %q: %w", name, err))
		}
	}
	return faults
}

func checkTemplate(template []rar.Detail, resources []hubResource) error {
	expanded, err := rar.Expand(template, sampleVariables(template))
	if err != nil {
		return err
	}
	for _, hub := range resources {
		if _, err := rar.Compile(expanded, hub.compiler); err != nil {
			return err
		}
	}
	return nil
}

// sampleVariables has a value for every variable there is: those of an account's attributes are the ones that are used.
func sampleVariables(template []rar.Detail) rar.Variables {
	v := variables(store.Client{ID: "sample"}, store.Account{ID: store.AccountIDPrefix + "sample", Username: "sample"})
	for _, d := range template {
		for _, text := range append(matchesOf(d), string(d.Payload)) {
			for _, name := range templateNames(text) {
				if strings.HasPrefix(name, "user.") {
					v[name] = "sample"
				}
			}
		}
	}
	return v
}

func matchesOf(d rar.Detail) []string {
	matches := make([]string, 0, len(d.Topics)+1)
	for _, t := range d.Topics {
		matches = append(matches, t.Match)
	}
	return matches
}
