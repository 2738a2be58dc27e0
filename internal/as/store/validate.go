package store

import (
	"fmt"
	"strings"
	"time"
)

// secretMethods starts the names of the authentication methods that need a secret (RFC 7591 section 2).
const secretMethods = "client_secret_"

// Validate returns ErrInvalid, naming the field, for a client without an id, with an id that could be taken for an account's, or
// that authenticates with a secret and has none.
func (c Client) Validate() error {
	if strings.HasPrefix(c.ID, AccountIDPrefix) {
		return fmt.Errorf("%w: client: id starts with %q", ErrInvalid, AccountIDPrefix)
	}
	if strings.HasPrefix(c.AuthMethod, secretMethods) && len(c.SecretHash) == 0 {
		return fmt.Errorf("%w: client: %s without a secret", ErrInvalid, c.AuthMethod)
	}
	return required("client", field{"id", c.ID})
}

// Validate returns ErrInvalid, naming the field, for an account without user name, or whose id does not start with AccountIDPrefix.
func (a Account) Validate() error {
	if !strings.HasPrefix(a.ID, AccountIDPrefix) || a.ID == AccountIDPrefix {
		return fmt.Errorf("%w: account: id does not start with %q", ErrInvalid, AccountIDPrefix)
	}
	return required("account", field{"username", a.Username})
}

// Validate returns ErrInvalid, naming the field, for a session that lacks an identifier or an end.
func (s BrowserSession) Validate() error {
	return requiredUntil("browser session", s.ExpiresAt, field{"id hash", s.IDHash}, field{"session id", s.SessionID},
		field{"account id", s.AccountID}, field{"issuer", s.Issuer})
}

// Validate returns ErrInvalid, naming the field, for an interaction that lacks an identifier or an end.
func (i Interaction) Validate() error {
	return requiredUntil("interaction", i.ExpiresAt, field{"id hash", i.IDHash}, field{"issuer", i.Issuer},
		field{"client id", i.ClientID})
}

// Validate returns ErrInvalid, naming the field, for a pushed request that lacks an identifier or an end.
func (p PushedRequest) Validate() error {
	return requiredUntil("pushed request", p.ExpiresAt, field{"id hash", p.IDHash}, field{"issuer", p.Issuer},
		field{"client id", p.ClientID})
}

// Validate returns ErrInvalid, naming the field, for a code that lacks an identifier or an end.
func (c Code) Validate() error {
	return requiredUntil("code", c.ExpiresAt, field{"signature", c.Signature}, field{"grant id", c.GrantID},
		field{"client id", c.ClientID}, field{"issuer", c.Issuer})
}

// Validate returns ErrInvalid, naming the field, for a grant that lacks an identifier.
func (g Grant) Validate() error {
	return required("grant", field{"id", g.ID}, field{"issuer", g.Issuer}, field{"client id", g.ClientID})
}

// Validate returns ErrInvalid, naming the field, for a token that lacks an identifier or an end.
func (t IssuedToken) Validate() error {
	return requiredUntil("token", t.ExpiresAt, field{"id", t.ID}, field{"issuer", t.Issuer})
}

// Validate returns ErrInvalid, naming the field, for a refresh token that lacks an identifier or an end.
func (t RefreshToken) Validate() error {
	return requiredUntil("refresh token", t.ExpiresAt, field{"id", t.ID}, field{"grant id", t.GrantID},
		field{"client id", t.ClientID}, field{"issuer", t.Issuer})
}

// Validate returns ErrInvalid, naming the field, for a key that lacks an identifier or its private part.
func (k Key) Validate() error {
	if len(k.Private) == 0 {
		return fmt.Errorf("%w: key: no private part", ErrInvalid)
	}
	return required("key", field{"id", k.ID}, field{"issuer", k.Issuer}, field{"algorithm", k.Algorithm})
}

// Validate returns ErrInvalid, naming the field, for an entry of unknown kind or without issuer, value or times: an entry that
// revokes everything or nothing by accident.
func (r Revocation) Validate() error {
	if !r.Kind.Valid() {
		return fmt.Errorf("%w: revocation: unknown kind", ErrInvalid)
	}
	if r.IssuedBefore.IsZero() {
		return fmt.Errorf("%w: revocation: no issued-before", ErrInvalid)
	}
	return requiredUntil("revocation", r.Until, field{"issuer", r.Issuer}, field{"value", r.Value})
}

// Validate returns ErrInvalid, naming the field, for a record without event or time.
func (r AuditRecord) Validate() error {
	return requiredUntil("audit record", r.At, field{"event", r.Event})
}

type field struct{ name, value string }

func required(record string, fields ...field) error {
	for _, f := range fields {
		if f.value == "" {
			return fmt.Errorf("%w: %s: no %s", ErrInvalid, record, f.name)
		}
	}
	return nil
}

func requiredUntil(record string, t time.Time, fields ...field) error {
	if t.IsZero() {
		return fmt.Errorf("%w: %s: no time", ErrInvalid, record)
	}
	return required(record, fields...)
}
