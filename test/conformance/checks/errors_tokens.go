package checks

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// spoilt gives a token of a role that is right but for what spoil changes.
func spoilt(t *suite.T, role suite.Role, spoil func(token jose.Token), details ...suite.Detail) string {
	token := t.Claims(suite.Details(details...))
	spoil(token)
	return t.Sign(role, token)
}

// expired gives a token that was right an hour ago.
func expired(t *suite.T, role suite.Role, details ...suite.Detail) string {
	return spoilt(t, role, func(token jose.Token) {
		token.Claims["iat"] = time.Now().Add(-2 * time.Hour).Unix()
		token.Claims["exp"] = time.Now().Add(-time.Hour).Unix()
	}, details...)
}

// forged gives a token that is right but for the signature.
func forged(t *suite.T, role suite.Role, details ...suite.Detail) string {
	return tampered(t, t.Sign(role, t.Claims(suite.Details(details...))))
}

// tampered gives a token with another first octet of the signature.
func tampered(t *suite.T, compact string) string {
	dot := strings.LastIndexByte(compact, '.')
	signature, err := base64.RawURLEncoding.DecodeString(compact[dot+1:])
	if err != nil || len(signature) == 0 {
		t.Fail("the suite made no signature")
	}
	signature[0] ^= 0x55
	return compact[:dot+1] + jose.Encode(signature)
}
