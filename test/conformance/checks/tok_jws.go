package checks

import (
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// tokSignatureChecks are those of the signature itself.
func tokSignatureChecks() []suite.Check {
	return slices.Concat(
		tokForgeries("TOK-21", tokSignatures([]tokSpoiledSignature{
			{"first-bit-flipped", func(sig []byte) []byte { return tokFlipped(sig, 0) }},
			{"middle-bit-flipped", func(sig []byte) []byte { return tokFlipped(sig, len(sig)/2) }},
			{"last-bit-flipped", func(sig []byte) []byte { return tokFlipped(sig, len(sig)-1) }},
			{"truncated-by-one-octet", func(sig []byte) []byte { return sig[:len(sig)-1] }},
			{"truncated-to-half", func(sig []byte) []byte { return sig[:len(sig)/2] }},
			{"truncated-to-one-octet", func(sig []byte) []byte { return sig[:1] }},
			{"empty", func([]byte) []byte { return []byte{} }},
			{"one-octet-more", func(sig []byte) []byte { return append(sig, 0) }},
			{"one-octet-before", func(sig []byte) []byte { return append([]byte{0}, sig...) }},
			{"doubled", func(sig []byte) []byte { return append(sig, sig...) }},
			{"reversed", func(sig []byte) []byte { slices.Reverse(sig); return sig }},
			{"halves-swapped", func(sig []byte) []byte { return append(slices.Clone(sig[len(sig)/2:]), sig[:len(sig)/2]...) }},
			// ECDSA with r = s = 0 passes where the range of the numbers is not checked.
			{"all-zero", func(sig []byte) []byte { return make([]byte, len(sig)) }},
			{"all-one", func(sig []byte) []byte { return tokFilled(len(sig), 0xff) }},
			{"r-and-s-are-1", func(sig []byte) []byte {
				one := make([]byte, len(sig))
				one[len(sig)/2-1], one[len(sig)-1] = 1, 1
				return one
			}},
		}), 401),
		tokForgeries("TOK-21", []tokForgery{
			{"ES-as-DER", tokDERSignature},
			{"payload-one-letter", tokPayloadKeeping(func(_ *suite.T, token *jose.Token) { token.Claims["sub"] = "bonformance" })},
			{"payload-later-exp", tokPayloadKeeping(func(_ *suite.T, token *jose.Token) { token.Claims["exp"] = 4102444800 })},
			{"payload-without-a-claim", tokPayloadKeeping(tokClaim("sub", nil))},
			{"payload-other-spaces", tokPayloadKeeping(func(t *suite.T, token *jose.Token) {
				token.RawClaims = []byte(strings.Replace(string(tokJSON(t, token.Claims)), ":", ": ", 1))
			})},
			{"header-more", tokPayloadKeeping(tokHeader("x", 1))},
			{"header-other-typ", tokPayloadKeeping(tokHeader("typ", "application/at+jwt"))},
			{"header-other-spaces", func(t *suite.T, key jose.Key, right jose.Token) []string {
				_, payload, signature := tokParts(t, key, right)
				header := " " + string(tokJSON(t, tokHeaderOf(key, right)))
				return []string{jose.Encode([]byte(header)) + "." + payload + "." + signature}
			}},
			{"signature-of-another-token", func(t *suite.T, key jose.Key, right jose.Token) []string {
				_, _, signature := tokParts(t, key, tokAnother(right))
				header, payload, _ := tokParts(t, key, right)
				return []string{header + "." + payload + "." + signature}
			}},
			{"payload-alone-signed", tokSignedAlone(func(_, payload string) string { return payload })},
			{"header-alone-signed", tokSignedAlone(func(header, _ string) string { return header })},
			{"signed-without-the-dot", tokSignedAlone(func(header, payload string) string { return header + payload })},
			{"signature-is-hexadecimal", func(t *suite.T, key jose.Key, right jose.Token) []string {
				header, payload, signature := tokParts(t, key, right)
				return []string{header + "." + payload + "." + hex.EncodeToString(tokDecoded(t, signature))}
			}},
		}, 401),
		[]suite.Check{
			one("TOK-21", "wider-grant", tokWidened),
			one("TOK-21", "other-grant-with-the-same-jti", func(t *suite.T) {
				issuer := t.Target().Issuers[0]
				right := tokRight(t, issuer)
				tokPublish(t, tokRightOf(issuer), t.SignWith(issuer.Publish, right), 200)
				right.Claims["authorization_details"] = suite.Details(suite.CanPublish(suite.Exact(t.Topic())))
				tokPublish(t, "a token for another topic with the jti of the first", t.SignWith(issuer.Publish, right), 403)
				t.Observed("each token was judged by its own details")
			}),
		},
	)
}

// tokWidened puts the claims of a token that may do more before the signature of one that may do less, after the hub
// has seen both.
func tokWidened(t *suite.T) {
	for _, issuer := range t.Target().Issuers {
		narrow, wide := tokRight(t, issuer), tokRight(t, issuer)
		narrow.Claims["authorization_details"] = suite.Details(suite.CanPublish(suite.Exact(t.Topic())))
		tokPublish(t, "a token for another topic", t.SignWith(issuer.Publish, narrow), 403)
		header, _, signature := tokParts(t, issuer.Publish, narrow)
		_, payload, _ := tokParts(t, issuer.Publish, wide)
		forged := header + "." + payload + "." + signature
		tokPublish(t, "claims that the signature does not cover", forged, 401)
		tokPublish(t, "these claims with their own signature", t.SignWith(issuer.Publish, wide), 200)
		tokPublish(t, "these claims, now known, with the other signature", forged, 401)
		t.Observed("%s: refused before and after its claims were known", issuer.Publish.Alg)
	}
}

type tokSpoiledSignature struct {
	name  string
	spoil func(sig []byte) []byte
}

func tokSignatures(cases []tokSpoiledSignature) []tokForgery {
	forgeries := make([]tokForgery, len(cases))
	for i, c := range cases {
		forgeries[i] = tokForgery{c.name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			header, payload, signature := tokParts(t, key, right)
			return []string{header + "." + payload + "." + jose.Encode(c.spoil(tokDecoded(t, signature)))}
		}}
	}
	return forgeries
}

func tokDecoded(t *suite.T, s string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fail("the suite cannot read its own token: %v", err)
	}
	return raw
}

func tokFlipped(b []byte, at int) []byte { b[at] ^= 1; return b }

func tokFilled(n int, with byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = with
	}
	return b
}

// tokPayloadKeeping changes a token and keeps the signature that it had.
func tokPayloadKeeping(change tokChange) func(t *suite.T, key jose.Key, right jose.Token) []string {
	return func(t *suite.T, key jose.Key, right jose.Token) []string {
		_, _, signature := tokParts(t, key, right)
		change(t, &right)
		header, payload, _ := tokParts(t, key, right)
		return []string{header + "." + payload + "." + signature}
	}
}

// tokSignedAlone signs something else than header, dot, and payload.
func tokSignedAlone(input func(header, payload string) string) func(t *suite.T, key jose.Key, right jose.Token) []string {
	return func(t *suite.T, key jose.Key, right jose.Token) []string {
		header, payload, _ := tokParts(t, key, right)
		return []string{header + "." + payload + "." + jose.Encode(tokSigned(t, key, input(header, payload)))}
	}
}

func tokSigned(t *suite.T, key jose.Key, input string) []byte {
	sig, err := key.Sign([]byte(input))
	if err != nil {
		t.Fail("the suite cannot sign: %v", err)
	}
	return sig
}

// tokDERSignature writes the two numbers of an ECDSA signature as other protocols do (RFC 7518 section 3.4 wants them
// side by side).
func tokDERSignature(t *suite.T, key jose.Key, right jose.Token) []string {
	if !strings.HasPrefix(key.Alg, "ES") {
		return nil
	}
	header, payload, signature := tokParts(t, key, right)
	raw := tokDecoded(t, signature)
	r, s := new(big.Int).SetBytes(raw[:len(raw)/2]), new(big.Int).SetBytes(raw[len(raw)/2:])
	der, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
	if err != nil {
		t.Fail("the suite cannot encode a signature: %v", err)
	}
	return []string{header + "." + payload + "." + jose.Encode(der)}
}
