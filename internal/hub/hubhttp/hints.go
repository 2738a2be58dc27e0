package hubhttp

import "github.com/cinnabar-hub/cinnabar/internal/token"

// tokenHint is advice about a failed check of a token, for development listeners. It names what to look at, never a value.
func tokenHint(check token.Check) string {
	switch check {
	case token.CheckSize, token.CheckForm:
		return "The token must be a JWT in compact form, three parts joined by dots, of at most 8 KiB."
	case token.CheckHeader, token.CheckPayload, token.CheckCrit:
		return "The token cannot be read; see `authz token inspect`."
	case token.CheckTyp:
		return `The header member typ must be "at+jwt": ID tokens and plain JWTs are not access tokens.`
	case token.CheckAlg, token.CheckKey, token.CheckSignature:
		return "The token is not signed by a key this hub trusts for its issuer; mint one with `authz token mint`."
	case token.CheckIss:
		return "The issuer is not one of this hub's; the plain and the TLS listener have issuers of their own."
	case token.CheckExp:
		return "The token has expired."
	case token.CheckNbf, token.CheckIat:
		return "The token is not valid yet; compare the clocks."
	case token.CheckAud:
		return "The audience must equal the hub's resource identifier; see its protected resource metadata."
	case token.CheckCnf:
		return "Sender-constrained tokens are not supported."
	case token.CheckDetails:
		return "A Mercure authorization detail is malformed; see `authz token inspect`."
	case token.CheckKeyActions:
		return "The key that signed the token may not serve this endpoint: publishing and subscribing have keys of their own."
	case token.CheckRevocation:
		return "The token was revoked."
	default:
		return ""
	}
}
