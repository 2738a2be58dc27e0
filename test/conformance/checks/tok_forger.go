package checks

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"hash"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// tokForger has keys that no hub trusts. Each is made when it is first needed. Its methods may be called by several checks
// at once.
type tokForger struct {
	keys map[string]func() (jose.Key, error)
}

// tokForged are the algorithms of which a forger has keys, one per family.
func tokForged() []string { return []string{"HS256", "RS256", "PS256", "ES256", "EdDSA"} }

func newTokForger() *tokForger {
	f := &tokForger{keys: map[string]func() (jose.Key, error){}}
	for _, alg := range append(tokForged(), "HS384", "HS512", "RS384", "RS512", "PS384", "PS512", "ES384", "ES512") {
		f.keys[alg] = sync.OnceValues(func() (jose.Key, error) { return jose.Generate(alg) })
	}
	return f
}

// key is an untrusted key of this algorithm that claims to be kid; empty: it says nothing.
func (f *tokForger) key(t *suite.T, alg, kid string) jose.Key {
	k, err := f.keys[alg]()
	if err != nil {
		t.Fail("the suite cannot make a key: %v", err)
	}
	k.Kid = kid
	return k
}

// tokCertificate is a certificate that a key signed for itself, for these addresses, as DER.
func tokCertificate(t *suite.T, key jose.Key, addresses ...net.IP) (der []byte, signer crypto.Signer) {
	raw, err := key.PrivatePEM()
	if err != nil {
		t.Fail("the suite cannot encode a key: %v", err)
	}
	block, _ := pem.Decode(raw)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, ok := parsed.(crypto.Signer)
	if err != nil || !ok {
		t.Fail("the suite cannot read its own key: %v", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "conformance"}, IPAddresses: addresses,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err = x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fail("the suite cannot make a certificate: %v", err)
	}
	return der, signer
}

// tokJWK is a key as a JSON Web Key with the members that its kind requires: the public one, or the secret.
func tokJWK(t *suite.T, key jose.Key) jose.Object {
	if key.Symmetric() {
		return jose.Object{"kty": "oct", "k": jose.Encode(key.Secret())}
	}
	switch p := key.Public().(type) {
	case *rsa.PublicKey:
		return jose.Object{"kty": "RSA", "n": jose.Encode(p.N.Bytes()), "e": jose.Encode(big.NewInt(int64(p.E)).Bytes())}
	case *ecdsa.PublicKey:
		point := tokPoint(t, p)
		half := 1 + (len(point)-1)/2
		return jose.Object{"kty": "EC", "crv": p.Params().Name, "x": jose.Encode(point[1:half]), "y": jose.Encode(point[half:])}
	case ed25519.PublicKey:
		return jose.Object{"kty": "OKP", "crv": "Ed25519", "x": jose.Encode(p)}
	default:
		t.Fail("the suite knows no JSON Web Key for a %T", p)
		return nil
	}
}

// tokPoint is the uncompressed encoding of a point.
func tokPoint(t *suite.T, p *ecdsa.PublicKey) []byte {
	raw, err := p.Bytes()
	if err != nil {
		t.Fail("the suite cannot encode a public key: %v", err)
	}
	return raw
}

// tokUnderSecret signs with HMAC under any secret, even an empty one, which no key could hold.
func tokUnderSecret(t *suite.T, token jose.Token, alg string, secret []byte) string {
	h := map[string]func() hash.Hash{"HS256": sha256.New, "HS384": sha512.New384, "HS512": sha512.New}[alg]
	token = token.Clone()
	token.Header["alg"], token.NoSignature = alg, true
	head, payload, _ := tokParts(t, jose.Key{}, token)
	mac := hmac.New(h, secret)
	mac.Write([]byte(head + "." + payload))
	return head + "." + payload + "." + jose.Encode(mac.Sum(nil))
}
