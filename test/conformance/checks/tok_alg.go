package checks

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// tokAlgorithmChecks are those of the algorithms on the list. Where alg is wrong, the signature is a right one all the
// same, made by the trusted key: a hub that asks the key alone accepts it.
func tokAlgorithmChecks(f *tokForger) []suite.Check {
	return slices.Concat(
		tokRefused("TOK-03", []tokCase{
			{"unknown", tokHeader("alg", "XX256")},
			{"absent", tokHeader("alg", nil)},
			{"empty", tokHeader("alg", "")},
			{"null", tokHeader("alg", jose.Null)},
			{"number", tokHeader("alg", 256)},
			{"bool", tokHeader("alg", true)},
			{"object", tokHeader("alg", jose.Object{})},
			{"family-alone", tokHeader("alg", "HS")},
			{"HS1", tokHeader("alg", "HS1")},
			{"RS1", tokHeader("alg", "RS1")},
			{"JWE-algorithm", tokHeader("alg", "RSA-OAEP-256")},
			{"wildcard", tokHeader("alg", "*")},
		}),
		tokForgeries("TOK-03", []tokForgery{
			{"array", tokSaying(func(alg string) any { return []string{alg} })},
			{"lower-case", tokSaying(func(alg string) any { return strings.ToLower(alg) })},
			{"upper-case", tokSaying(func(alg string) any {
				if up := strings.ToUpper(alg); up != alg {
					return up
				}
				return strings.ToLower(alg) // all letters are upper-case but those of EdDSA
			})},
			{"space-after", tokSaying(func(alg string) any { return alg + " " })},
			{"space-before", tokSaying(func(alg string) any { return " " + alg })},
			{"U+0000-after", tokSaying(func(alg string) any { return alg + "\x00" })},
			{"two-in-one", tokSaying(func(alg string) any { return alg + ",none" })},
			{"prefix", tokSaying(func(alg string) any { return alg[:len(alg)-1] })},
			{"Alg", func(t *suite.T, key jose.Key, right jose.Token) []string {
				right.Header["alg"], right.Header["Alg"] = nil, key.Alg
				return []string{t.SignWith(key, right)}
			}},
			{"as-claim", func(t *suite.T, key jose.Key, right jose.Token) []string {
				right.Header["alg"], right.Claims["alg"] = nil, key.Alg
				return []string{t.SignWith(key, right)}
			}},
		}, 401),
		tokNoneChecks(),
		[]suite.Check{
			one("TOK-06", "EdDSA", tokListed("EdDSA")),
			one("TOK-06", "ES256", tokListed("ES256")),
			one("TOK-06", "RS256", tokListed("RS256")),
		},
		tokForgeries("TOK-08", []tokForgery{
			{"same-algorithm", func(t *suite.T, key jose.Key, right jose.Token) []string { return f.signed(t, key, right, key.Alg) }},
			{"HS256", func(t *suite.T, key jose.Key, right jose.Token) []string { return f.signed(t, key, right, "HS256") }},
			{"RS256", func(t *suite.T, key jose.Key, right jose.Token) []string { return f.signed(t, key, right, "RS256") }},
			{"PS256", func(t *suite.T, key jose.Key, right jose.Token) []string { return f.signed(t, key, right, "PS256") }},
			{"ES256", func(t *suite.T, key jose.Key, right jose.Token) []string { return f.signed(t, key, right, "ES256") }},
			{"EdDSA", func(t *suite.T, key jose.Key, right jose.Token) []string { return f.signed(t, key, right, "EdDSA") }},
		}, 401),
	)
}

// tokSaying makes alg say something else of the right algorithm.
func tokSaying(of func(alg string) any) func(t *suite.T, key jose.Key, right jose.Token) []string {
	return func(t *suite.T, key jose.Key, right jose.Token) []string {
		right.Header["alg"] = of(key.Alg)
		return []string{t.SignWith(key, right)}
	}
}

// tokListed uses every key of an algorithm for what it is meant.
func tokListed(alg string) func(t *suite.T) {
	return func(t *suite.T) {
		used := 0
		for _, issuer := range t.Target().Issuers {
			if issuer.Publish.Alg == alg {
				tokPublish(t, tokRightOf(issuer), t.SignWith(issuer.Publish, tokRight(t, issuer)), 200)
				used++
			}
			if issuer.Subscribe.Alg == alg {
				tokSubscribe(t, tokRightOf(issuer), t.SignWith(issuer.Subscribe, tokReader(t, issuer)), 200)
				used++
			}
		}
		if used == 0 {
			t.Skip("the suite was given no key of this algorithm (-issuer): it can sign nothing with it that the hub would accept")
		}
		t.Observed("accepted for publishing or subscribing (%d)", used)
	}
}

// signed are tokens that an untrusted key signed, with and without the kid of a trusted one.
func (f *tokForger) signed(t *suite.T, trusted jose.Key, right jose.Token, alg string) []string {
	var made []string
	for _, token := range tokKids(right, trusted) {
		made = append(made, t.SignWith(f.key(t, alg, ""), token))
	}
	return made
}

// tokNoneChecks are the unsigned tokens: without a signature, with that of a right token, and with a right one that
// covers the header which says none.
func tokNoneChecks() []suite.Check {
	var forgeries []tokForgery
	for _, none := range []string{"none", "None", "NONE", "nOnE"} {
		forgeries = append(
			forgeries,
			tokForgery{none + "-empty-signature", func(t *suite.T, key jose.Key, right jose.Token) []string {
				var made []string
				right.Header["alg"], right.NoSignature = none, true
				for _, token := range tokKids(right, key) {
					made = append(made, t.SignWith(key, token))
				}
				return made
			}},
			tokForgery{none + "-copied-signature", func(t *suite.T, key jose.Key, right jose.Token) []string {
				_, _, signature := tokParts(t, key, right)
				right.Header["alg"] = none
				header, payload, _ := tokParts(t, key, right)
				return []string{header + "." + payload + "." + signature}
			}},
			tokForgery{none + "-signed", func(t *suite.T, key jose.Key, right jose.Token) []string {
				right.Header["alg"] = none
				return []string{t.SignWith(key, right)}
			}},
		)
	}
	return slices.Concat(
		tokForgeries("TOK-04", forgeries, 401),
		tokForgeries("TOK-04", []tokForgery{{"none-two-parts", func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.Header["alg"] = "none"
			header, payload, _ := tokParts(t, key, right)
			return []string{header + "." + payload}
		}}}, 400, 401), // no JWS at all (reading 17)
		tokForgeries("TOK-04", []tokForgery{{"none-space", func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.Header["alg"], right.NoSignature = "none ", true
			return []string{t.SignWith(key, right)}
		}}}, 401),
	)
}

// tokConfusionChecks are those of algorithms that do not fit the key. A public key is known to everybody: a hub that
// takes one for a shared secret lets everybody in.
func tokConfusionChecks(f *tokForger) []suite.Check {
	confused := func(name, alg string, secrets func(t *suite.T, key jose.Key) [][]byte) tokForgery {
		return tokForgery{name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			if key.Symmetric() {
				return nil
			}
			var made []string
			for _, token := range tokKids(right, key) {
				for _, secret := range secrets(t, key) {
					made = append(made, tokUnderSecret(t, token, alg, secret))
				}
			}
			return made
		}}
	}
	return slices.Concat(
		tokForgeries("TOK-05", []tokForgery{
			confused("HS256-of-PEM", "HS256", tokPEMs),
			confused("HS384-of-PEM", "HS384", tokPEMs),
			confused("HS512-of-PEM", "HS512", tokPEMs),
			confused("HS256-of-DER", "HS256", tokDERs),
			confused("HS384-of-DER", "HS384", tokDERs),
			confused("HS512-of-DER", "HS512", tokDERs),
			confused("HS256-of-JWK", "HS256", tokJWKs),
			confused("HS256-of-numbers", "HS256", tokNumbers),
			confused("HS256-of-encoded-numbers", "HS256", tokEncodedNumbers),
			confused("HS256-of-nothing", "HS256", func(*suite.T, jose.Key) [][]byte { return [][]byte{{}, make([]byte, 32)} }),
			confused("HS256-of-kid", "HS256", func(_ *suite.T, key jose.Key) [][]byte { return [][]byte{[]byte(key.Kid)} }),
		}, 401),
		tokSwapChecks(f),
	)
}

// tokSwapChecks let alg name another family than the key's: with the signature that the trusted key makes, and with that
// of an untrusted key of the family named.
func tokSwapChecks(f *tokForger) []suite.Check {
	var forgeries []tokForgery
	for _, alg := range append(tokForged(), "ES384") {
		forgeries = append(forgeries, tokForgery{"says-" + alg, func(t *suite.T, key jose.Key, right jose.Token) []string {
			if tokFits(key, alg) {
				return nil
			}
			var made []string
			for _, token := range tokKids(right, key) {
				token.Header["alg"] = alg
				made = append(made, t.SignWith(key, token), t.SignWith(f.key(t, alg, ""), token))
			}
			return made
		}})
	}
	return tokForgeries("TOK-05", forgeries, 401)
}

// tokFits says whether a key could serve an algorithm: then it is the hub's list alone that decides, of which we know
// the key's own algorithm only.
func tokFits(key jose.Key, alg string) bool {
	family := func(alg string) string { return strings.NewReplacer("PS", "RS").Replace(alg[:2]) }
	if family(alg) == "ES" {
		return key.Alg == alg // each has a curve of its own
	}
	return family(key.Alg) == family(alg)
}

func tokPEMs(t *suite.T, key jose.Key) [][]byte {
	text, err := key.PublicPEM()
	if err != nil {
		t.Fail("the suite cannot encode a public key: %v", err)
	}
	all := [][]byte{text, []byte(strings.TrimSpace(string(text))), []byte(strings.ReplaceAll(string(text), "\n", "\r\n")), append(slices.Clone(text), '\n')}
	if p, ok := key.Public().(*rsa.PublicKey); ok {
		pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(p)})
		all = append(all, pkcs1, []byte(strings.TrimSpace(string(pkcs1))))
	}
	return all
}

func tokDERs(t *suite.T, key jose.Key) [][]byte {
	der, err := key.PublicDER()
	if err != nil {
		t.Fail("the suite cannot encode a public key: %v", err)
	}
	all := [][]byte{der, []byte(base64.StdEncoding.EncodeToString(der)), []byte(jose.Encode(der)), []byte(hex.EncodeToString(der))}
	if p, ok := key.Public().(*rsa.PublicKey); ok {
		pkcs1 := x509.MarshalPKCS1PublicKey(p)
		all = append(all, pkcs1, []byte(base64.StdEncoding.EncodeToString(pkcs1)))
	}
	return all
}

// tokJWKs are spellings of the public key as a JSON Web Key: the one of thumbprints (RFC 7638), and those that key sets
// have.
func tokJWKs(t *suite.T, key jose.Key) [][]byte {
	public := tokJWK(t, key)
	var all [][]byte
	for _, more := range []jose.Object{{}, {"alg": key.Alg}, {"kid": key.Kid}, {"kid": key.Kid, "alg": key.Alg}, {"kid": key.Kid, "alg": key.Alg, "use": "sig"}} {
		o := maps.Clone(public)
		maps.Copy(o, more)
		all = append(all, tokJSON(t, o))
	}
	return all
}

// tokNumbers are the numbers that make a public key: modulus, point, coordinates.
func tokNumbers(t *suite.T, key jose.Key) [][]byte {
	switch p := key.Public().(type) {
	case *rsa.PublicKey:
		n := p.N.Bytes()
		return [][]byte{n, append([]byte{0}, n...), []byte(p.N.String()), []byte(p.N.Text(16))}
	case *ecdsa.PublicKey:
		point := tokPoint(t, p)
		half := 1 + (len(point)-1)/2
		compressed := append([]byte{2 + point[len(point)-1]&1}, point[1:half]...)
		return [][]byte{point, point[1:], point[1:half], point[half:], compressed}
	case ed25519.PublicKey:
		return [][]byte{p}
	default:
		return nil
	}
}

func tokEncodedNumbers(t *suite.T, key jose.Key) [][]byte {
	var all [][]byte
	for _, n := range tokNumbers(t, key) {
		all = append(all, []byte(jose.Encode(n)), []byte(base64.StdEncoding.EncodeToString(n)), []byte(hex.EncodeToString(n)))
	}
	return all
}
