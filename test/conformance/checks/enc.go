package checks

import (
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// encChecks send what a publisher that encrypts would send. The hub cannot tell, so no keys are needed: the parts are
// random octets of the right sizes (RFC 7516).
func encChecks() []suite.Check {
	arrives := func(name string, data func() (string, error), pairs ...string) suite.Check {
		return one("ENC-01", name, func(t *suite.T) {
			sent, err := data()
			if err != nil {
				t.Fail("the suite cannot encode: %v", err)
			}
			topic := t.Topic()
			s := t.ListenTo(topic)
			id := t.Publish(append([]string{"topic", topic, "data", sent}, pairs...)...)
			if e := s.Want(id)[0]; e.Data != sent {
				t.Fail("data of %d bytes arrived as other %d bytes", len(sent), len(e.Data))
			}
		})
	}
	return []suite.Check{
		arrives("compact", func() (string, error) { return encCompact(200) }),
		arrives("compact-32KiB", func() (string, error) { return encCompact(24 << 10) }),
		arrives("compact-private", func() (string, error) { return encCompact(200) }, "private", "on"),
		arrives("compact-with-type", func() (string, error) { return encCompact(200) }, "type", "encrypted"),
		arrives("json-serialisation", encJSON),
	}
}

// encParts gives the five parts of a JWE.
func encParts(size int) ([5]string, error) {
	header, err := json.Marshal(jose.Object{"alg": "ECDH-ES+A256KW", "enc": "A256GCM"})
	if err != nil {
		return [5]string{}, err
	}
	parts := [5]string{jose.Encode(header)}
	for i, n := range []int{40, 12, size, 16} { // encrypted key, initialisation vector, ciphertext, tag
		octets := make([]byte, n)
		if _, err := rand.Read(octets); err != nil {
			return parts, err
		}
		parts[i+1] = jose.Encode(octets)
	}
	return parts, nil
}

func encCompact(size int) (string, error) {
	p, err := encParts(size)
	return fmt.Sprintf("%s.%s.%s.%s.%s", p[0], p[1], p[2], p[3], p[4]), err
}

func encJSON() (string, error) {
	p, err := encParts(200)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(jose.Object{"protected": p[0], "encrypted_key": p[1], "iv": p[2], "ciphertext": p[3], "tag": p[4]})
	return string(raw), err
}
