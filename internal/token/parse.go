package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// ParseKey reads one trusted key. For the HS algorithms data is the secret itself, byte for byte (a line end that a file
// adds is the caller's to remove), or a JWK of type "oct". For all others it is PEM (PKIX, PKCS#1, or a private key in
// PKCS#8, PKCS#1 or SEC 1 form, of which only the public part is kept) or a JWK. An empty alg is taken from the key: its
// JWK alg member, else the algorithm of its curve, else RS256. Errors wrap ErrKey and say what to do.
func ParseKey(alg string, data []byte) (Key, error) {
	want := algorithm{}
	if alg != "" {
		var ok bool
		if want, ok = algorithmByName(alg); !ok {
			return Key{}, fmt.Errorf("%w: the algorithm %s is not one of HS256, HS384, HS512, RS256, RS384, RS512, "+
				"PS256, PS384, PS512, ES256, ES384, ES512, EdDSA", ErrKey, shown(alg))
		}
	}
	text := bytes.TrimSpace(data)
	switch {
	case isPEM(text):
		if want.family == familyHMAC {
			return Key{}, fmt.Errorf("%w: %s needs a secret, and this is a PEM file; a public key must never be used as a secret",
				ErrKey, alg)
		}
		material, err := parsePEM(text)
		if err != nil {
			return Key{}, err
		}
		return finishKey(Key{Algorithm: want.name, Material: material})
	case bytes.HasPrefix(text, []byte("{")) && (want.family != familyHMAC || looksLikeJWK(text)):
		k, err := parseJWK(text)
		if err != nil {
			return Key{}, err
		}
		if want.name != "" && k.Algorithm != "" && k.Algorithm != want.name {
			return Key{}, fmt.Errorf("%w: the JWK is for %s, the configuration says %s", ErrKey, k.Algorithm, want.name)
		}
		if want.name != "" {
			k.Algorithm = want.name
		}
		return finishKey(k)
	case want.family == familyHMAC:
		return finishKey(Key{Algorithm: want.name, Material: bytes.Clone(data)})
	default:
		return Key{}, fmt.Errorf("%w: neither PEM nor a JWK", ErrKey)
	}
}

// finishKey fills in the algorithm where the key determines it, and checks that key and algorithm fit.
func finishKey(k Key) (Key, error) {
	if k.Algorithm == "" {
		k.Algorithm = algorithmOf(k.Material)
	}
	a, ok := algorithmByName(k.Algorithm)
	if !ok {
		return Key{}, fmt.Errorf("%w: the key does not say its algorithm", ErrKey)
	}
	return k, a.fits(k.Material)
}

func isPEM(text []byte) bool { return bytes.HasPrefix(text, []byte("-----BEGIN ")) }

// parsePEM returns the public key of the only key in text.
func parsePEM(text []byte) (any, error) {
	var found *pem.Block
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "EC PARAMETERS" { // openssl writes the name of the curve before the key
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: the PEM file holds more than one object; configure one key per file", ErrKey)
		}
		found = block
	}
	if found == nil {
		return nil, fmt.Errorf("%w: the PEM file cannot be decoded", ErrKey)
	}
	parsed, err := parseBlock(found)
	if err != nil {
		return nil, err
	}
	switch key := parsed.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return key, nil
	}
	if public := publicOf(parsed); public != nil {
		return public, nil
	}
	return nil, fmt.Errorf("%w: the PEM file holds a kind of key that signs no tokens; use RSA, EC (P-256, P-384, P-521) or Ed25519", ErrKey)
}

func parseBlock(block *pem.Block) (any, error) {
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE":
		return nil, fmt.Errorf("%w: this is a certificate, not a key; certificates are not checked here, so take its key out: "+
			"openssl x509 -in FILE -noout -pubkey", ErrKey)
	case "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST":
		return nil, fmt.Errorf("%w: this is a certificate request, not a key; take its key out: openssl req -in FILE -noout -pubkey", ErrKey)
	case "ENCRYPTED PRIVATE KEY":
		return nil, fmt.Errorf("%w: this is an encrypted private key; write its public part to a file: openssl pkey -in FILE -pubout", ErrKey)
	case "OPENSSH PRIVATE KEY":
		return nil, fmt.Errorf("%w: this is an OpenSSH private key; write its public part as PEM: ssh-keygen -f FILE -e -m PKCS8", ErrKey)
	default:
		return nil, fmt.Errorf("%w: the PEM type %s is not a key", ErrKey, shown(block.Type))
	}
	if err != nil { // the text of crypto/x509 names the mismatch and never quotes the key
		return nil, fmt.Errorf("%w: PEM %s: %w", ErrKey, block.Type, err)
	}
	return key, nil
}
