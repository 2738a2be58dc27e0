package jose

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
)

// Object is a JSON object.
type Object = map[string]any

// Token is a JWS in the making: what a check changes before it is signed, and after.
type Token struct {
	Header Object // alg and kid are set from the key unless present; a nil value removes the member
	Claims Object // a nil value removes the claim; use Null for a null

	// Bytes that stand in for the encoded header or payload, when set.
	RawHeader, RawClaims []byte
	// Signature replaces the real one, when set; NoSignature leaves it empty.
	Signature   []byte
	NoSignature bool
}

// Null is the JSON null, which Object's nil is not.
const Null = nullType(0)

type nullType int

// MarshalJSON gives null.
func (nullType) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Clone gives a copy whose header and claims can be changed.
func (t Token) Clone() Token {
	t.Header, t.Claims = maps.Clone(t.Header), maps.Clone(t.Claims)
	return t
}

// Parts gives the three parts of the compact serialisation.
func (t Token) Parts(k Key) (header, payload, signature string, err error) {
	h := Object{"alg": k.Alg}
	if k.Kid != "" {
		h["kid"] = k.Kid
	}
	maps.Copy(h, t.Header)
	if header, err = part(h, t.RawHeader); err != nil {
		return "", "", "", err
	}
	if payload, err = part(t.Claims, t.RawClaims); err != nil {
		return "", "", "", err
	}
	sig := t.Signature
	if sig == nil && !t.NoSignature {
		if sig, err = k.Sign([]byte(header + "." + payload)); err != nil {
			return "", "", "", err
		}
	}
	return header, payload, Encode(sig), nil
}

// Compact gives the compact serialisation.
func (t Token) Compact(k Key) (string, error) {
	h, p, s, err := t.Parts(k)
	return h + "." + p + "." + s, err
}

func part(o Object, raw []byte) (string, error) {
	if raw == nil {
		kept := make(Object, len(o))
		for name, v := range o {
			if v != nil {
				kept[name] = v
			}
		}
		var err error
		if raw, err = json.Marshal(kept); err != nil {
			return "", fmt.Errorf("jose: encode: %w", err)
		}
	}
	return Encode(raw), nil
}

// Encode is base64url without padding.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Basic is the value of an Authorization field with a user and a password (RFC 7617).
func Basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
