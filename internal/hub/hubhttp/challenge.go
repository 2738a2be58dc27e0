package hubhttp

// challenge selects a WWW-Authenticate field.
type challenge uint8

const (
	_ challenge = iota // none
	// challengeBare asks for a token without an error code, since none was presented (ERR-02).
	challengeBare
	challengeInvalidRequest
	challengeInvalidToken
	challengeInsufficientScope
)

// challenges holds the fields, which are the same for every request (RFC 6750 section 3, RFC 9728 section 5.1).
type challenges [challengeInsufficientScope + 1]string

func newChallenges(metadataURL string) challenges {
	link := `resource_metadata="` + metadataURL + `"`
	return challenges{
		challengeBare:              "Bearer " + link,
		challengeInvalidRequest:    `Bearer error="invalid_request", ` + link,
		challengeInvalidToken:      `Bearer error="invalid_token", ` + link,
		challengeInsufficientScope: `Bearer error="insufficient_scope", ` + link,
	}
}

func (c *challenges) value(which challenge) string { return c[which] }
