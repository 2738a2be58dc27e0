// Package checks is what the conformance suite asks of a hub: for every requirement that can be seen from outside, one
// check for each case that the matrix names.
//
// It owns nothing: a check is a function that speaks to the hub through its suite.T alone, so checks can run together
// and in any order. It depends on no package of the product, and holds no copy of the product's rules: what is expected
// stands in the check, taken from the protocol text.
//
// A check that would be right for several answers accepts exactly those that the text, or a reading in the matrix,
// leaves open.
package checks

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// All gives the checks in the order of the matrix.
func All() []suite.Check {
	return slices.Concat(
		topicChecks(),
		subChecks(),
		sseChecks(),
		corsChecks(),
		matchChecks(),
		exactChecks(),
		urlpChecks(),
		pubChecks(),
		nsChecks(),
		authChecks(),
		cookieChecks(),
		errorsChecks(),
		tokChecks(),
		rarChecks(),
		privChecks(),
		payChecks(),
		recChecks(),
		actChecks(),
		discChecks(),
		prmChecks(),
		encChecks(),
		limChecks(),
		secChecks(),
		stressChecks(),
	)
}

// one is a check with the features that it needs.
func one(id, name string, run func(t *suite.T), needs ...suite.Feature) suite.Check {
	return suite.Check{ID: id, Case: name, Run: run, Needs: needs}
}

// quiet marks checks that must run alone.
func quiet(c suite.Check) suite.Check { c.Quiet = true; return c }
