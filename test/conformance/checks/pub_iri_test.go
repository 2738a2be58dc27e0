package checks

import "testing"

func TestIRIOrFragment(t *testing.T) {
	for id, want := range map[string]bool{
		"urn:uuid:5e94c686-2c0b-4f9b-958c-92ccc3bbb4eb": true, "https://example.com/é?q#f": true, "did:example:1": true, "#": true, "#12": true,
		"": false, "5e94c686-2c0b-4f9b-958c-92ccc3bbb4eb": false, "urn:": false, ":x": false, "1a:x": false, "a b:x": false, "urn:a b": false,
		"urn:a%zz": false, "urn:<a>": false, "#a#b": false, "urn:a#b#c": false, "urn:x\n": false, "urn:\uFDD0": false, "/relative": false,
		"urn:\xff": false, "urn:a%4": false, "urn:a%41": true,
	} {
		if got := pubIRIOrFragment(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}
