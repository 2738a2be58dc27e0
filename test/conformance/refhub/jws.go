package refhub

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	_ "crypto/sha256" // the hash functions of the algorithms
	_ "crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"time"
)

// algorithm is an accepted signature algorithm (TOK-03, TOK-06).
type algorithm struct {
	family string
	hash   crypto.Hash
	octets int // of one coordinate, for ES
}

// accepted is the allowlist; everything else is refused, "none" first of all (TOK-04).
func accepted(alg string) (algorithm, bool) {
	switch alg {
	case "HS256", "RS256", "PS256":
		return algorithm{family: alg[:2], hash: crypto.SHA256}, true
	case "HS384", "RS384", "PS384":
		return algorithm{family: alg[:2], hash: crypto.SHA384}, true
	case "HS512", "RS512", "PS512":
		return algorithm{family: alg[:2], hash: crypto.SHA512}, true
	case "ES256":
		return algorithm{family: "ES", hash: crypto.SHA256, octets: 32}, true
	case "ES384":
		return algorithm{family: "ES", hash: crypto.SHA384, octets: 48}, true
	case "ES512":
		return algorithm{family: "ES", hash: crypto.SHA512, octets: 66}, true
	case "EdDSA":
		return algorithm{family: "EdDSA"}, true
	}
	return algorithm{}, false
}

// usable says whether the key material fits the algorithm.
func (k Key) usable() bool {
	a, ok := accepted(k.Alg)
	if !ok {
		return false
	}
	switch v := k.Verify.(type) {
	case []byte:
		return a.family == "HS" && len(v) > 0
	case *rsa.PublicKey:
		return a.family == "RS" || a.family == "PS"
	case *ecdsa.PublicKey:
		return a.family == "ES" && (v.Curve.Params().BitSize+7)/8 == a.octets
	case ed25519.PublicKey:
		return a.family == "EdDSA"
	}
	return false
}

// verify checks a signature with the algorithm of the key, never with one that the token names (TOK-05).
func (k Key) verify(input, signature []byte) bool {
	a, ok := accepted(k.Alg)
	if !ok || !k.usable() {
		return false
	}
	var digest []byte
	if a.hash != 0 {
		sum := a.hash.New()
		sum.Write(input)
		digest = sum.Sum(nil)
	}
	switch v := k.Verify.(type) {
	case []byte:
		mac := hmac.New(a.hash.New, v)
		mac.Write(input)
		return subtle.ConstantTimeCompare(mac.Sum(nil), signature) == 1
	case *rsa.PublicKey:
		if a.family == "PS" {
			return rsa.VerifyPSS(v, a.hash, digest, signature, nil) == nil
		}
		return rsa.VerifyPKCS1v15(v, a.hash, digest, signature) == nil
	case *ecdsa.PublicKey:
		if len(signature) != 2*a.octets {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:a.octets]), new(big.Int).SetBytes(signature[a.octets:])
		return ecdsa.Verify(v, digest, r, s)
	case ed25519.PublicKey:
		return ed25519.Verify(v, input, signature)
	}
	return false
}

// signed looks for a trusted key of the token's issuer and the role that verifies the signature (TOK-08 to TOK-13). The
// kid is not even a hint: there are few keys. Key material in the token is never looked at.
func (h *Hub) signed(header, claims object, input, signature []byte, role role) bool {
	keys, known := h.keysOf(claims["iss"], role)
	if !known {
		return false
	}
	if h.fault("signature-unchecked") {
		return true
	}
	if h.oddlySigned(header, input, signature, keys) {
		return true
	}
	if kid, ok := text(header["kid"]); ok && h.fault("kid-chooses-across-issuers") {
		for _, issuer := range h.opts.Issuers {
			for _, k := range h.roleKeys(issuer, role) {
				if k.Kid == kid {
					keys = append(keys, k)
				}
			}
		}
	}
	alg, ok := text(header["alg"])
	for _, k := range keys {
		switch {
		case h.fault("eddsa-refused") && k.Alg == "EdDSA", h.fault("es256-refused") && k.Alg == "ES256", h.fault("rs256-refused") && k.Alg == "RS256":
			continue
		case h.fault("algorithm-not-compared"),
			h.fault("algorithm-optional") && header["alg"] == nil,
			h.fault("algorithm-of-other-shape-ignored") && header["alg"] != nil && !ok,
			h.fault("empty-algorithm-ignored") && ok && alg == "":
		case ok && h.datum().algorithm.same != nil && h.datum().algorithm.same(alg, k.Alg):
		case !ok || alg != k.Alg:
			continue
		}
		if k.verify(input, signature) {
			return true
		}
	}
	return false
}

// oddlySigned is where faults accept what is not signed by a trusted key.
func (h *Hub) oddlySigned(header object, input, signature []byte, keys []Key) bool {
	alg, _ := text(header["alg"])
	switch {
	case h.fault("none-accepted"):
		return alg == "none"
	case h.fault("none-of-other-case-accepted"):
		return alg != "none" && strings.EqualFold(alg, "none")
	case h.fault("unknown-algorithm-accepted"):
		_, ok := accepted(alg)
		return alg != "" && !ok && !strings.EqualFold(alg, "none")
	case h.fault("empty-signature-accepted"):
		return len(signature) == 0 && !strings.EqualFold(alg, "none")
	case h.fault("signature-length-only"):
		return rightLength(input, signature, keys)
	case h.fault("truncated-signature-accepted"):
		return truncated(keys, alg, input, signature)
	case h.fault("embedded-key-used"):
		k, ok := keyOfJWK(header["jwk"], alg)
		return ok && k.verify(input, signature)
	case h.fault("embedded-certificate-used"):
		return signedByCertificate(header, alg, input, signature)
	case h.fault("key-url-fetched"):
		fetch(header["jku"])
	case h.fault("certificate-url-fetched"):
		fetch(header["x5u"])
	case h.fault("unknown-kid-unchecked"):
		kid, ok := text(header["kid"])
		return ok && !hasKid(keys, kid) && len(signature) > 0
	case h.fault("empty-secret-accepted"):
		return alg == "HS256" && (Key{Alg: alg, Verify: []byte{0}}).withoutSecret(input, signature)
	case h.fault("kid-is-secret"):
		kid, _ := text(header["kid"])
		return alg == "HS256" && kid != "" && (Key{Alg: alg, Verify: []byte(kid)}).verify(input, signature)
	case h.fault("public-key-is-secret"):
		return alg == "HS256" && signedByPublicKey(keys, input, signature)
	}
	return false
}

// withoutSecret verifies with the empty secret.
func (k Key) withoutSecret(input, signature []byte) bool {
	a, _ := accepted(k.Alg)
	mac := hmac.New(a.hash.New, nil)
	mac.Write(input)
	return hmac.Equal(mac.Sum(nil), signature)
}

func hasKid(keys []Key, kid string) bool {
	for _, k := range keys {
		if k.Kid == kid {
			return true
		}
	}
	return false
}

// rightLength is the mistake of looking at the length of the signature alone.
func rightLength(input, signature []byte, keys []Key) bool {
	for _, k := range keys {
		if !k.verify(input, signature) && len(signature) == k.size() {
			return true
		}
	}
	return false
}

func (k Key) size() int {
	a, _ := accepted(k.Alg)
	switch v := k.Verify.(type) {
	case *rsa.PublicKey:
		return v.Size()
	case *ecdsa.PublicKey:
		return 2 * a.octets
	case ed25519.PublicKey:
		return ed25519.SignatureSize
	default:
		return a.hash.Size()
	}
}

// truncated is the mistake of comparing as many octets as the token brings.
func truncated(keys []Key, alg string, input, signature []byte) bool {
	for _, k := range keys {
		if k.Alg != alg || len(signature) == 0 || len(signature) >= k.size() {
			continue
		}
		secret, symmetric := k.Verify.([]byte)
		if !symmetric {
			return true
		}
		a, _ := accepted(k.Alg)
		mac := hmac.New(a.hash.New, secret)
		mac.Write(input)
		if strings.HasPrefix(string(mac.Sum(nil)), string(signature)) {
			return true
		}
	}
	return false
}

// signedByPublicKey is algorithm confusion: the public key, as it is configured, taken for a shared secret.
func signedByPublicKey(keys []Key, input, signature []byte) bool {
	for _, k := range keys {
		if _, symmetric := k.Verify.([]byte); symmetric {
			continue
		}
		der, err := x509.MarshalPKIXPublicKey(k.Verify)
		if err != nil {
			continue
		}
		block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		for _, secret := range [][]byte{der, block, []byte(strings.TrimSpace(string(block)))} {
			if (Key{Alg: "HS256", Verify: secret}).verify(input, signature) {
				return true
			}
		}
	}
	return false
}

func signedByCertificate(header object, alg string, input, signature []byte) bool {
	var chain []string
	if json.Unmarshal(header["x5c"], &chain) != nil || len(chain) == 0 {
		return false
	}
	der, err := base64.StdEncoding.DecodeString(chain[0])
	if err != nil {
		return false
	}
	certificate, err := x509.ParseCertificate(der)
	return err == nil && (Key{Alg: alg, Verify: certificate.PublicKey}).verify(input, signature)
}

// fetch asks a URL that a token names, which a hub never does.
func fetch(raw json.RawMessage) {
	at, ok := text(raw)
	if !ok {
		return
	}
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Get(at); err == nil {
		_ = resp.Body.Close()
	}
}
