package checks

import "github.com/cinnabar-hub/cinnabar/test/conformance/suite"

// discChecks: discovery is the duty of publishers and subscribers, except for where the hub stands.
func discChecks() []suite.Check {
	return []suite.Check{
		// The same sentence that recommends the path allows the operator any other.
		one("DISC-01", "path", func(t *suite.T) {
			if path := t.Target().Path(); path != suite.DefaultPath {
				t.Skip("the operator chose %s, which the text allows; only %s needs no configuration", path, suite.DefaultPath)
			}
		}),
	}
}
