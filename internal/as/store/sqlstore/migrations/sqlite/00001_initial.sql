-- Times are whole milliseconds since 1970 in UTC; 0 is "not set". Lists and maps are JSON text.
-- Every later migration ends with an update of meta.schema_version in the same transaction.

-- +goose Up
CREATE TABLE meta (
    name   TEXT PRIMARY KEY,
    number INTEGER NOT NULL DEFAULT 0,
    data   BLOB
) STRICT;
INSERT INTO meta (name, number) VALUES ('schema_version', 1), ('change_version', 1);

CREATE TABLE clients (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    auth_method   TEXT NOT NULL,
    secret_hash   BLOB,
    jwks          TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    grant_types   TEXT NOT NULL,
    origins       TEXT NOT NULL,
    skip_consent  INTEGER NOT NULL,
    static        INTEGER NOT NULL,
    disabled      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE assertions (
    key_hash   BLOB PRIMARY KEY, -- SHA-256 of client id and jti
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX assertions_expires_at ON assertions (expires_at);

CREATE TABLE accounts (
    id            TEXT PRIMARY KEY,
    username      TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    roles         TEXT NOT NULL,
    attributes    TEXT NOT NULL,
    demo          INTEGER NOT NULL,
    disabled      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    revision      INTEGER NOT NULL
) STRICT;

CREATE TABLE browser_sessions (
    id_hash    TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    issuer     TEXT NOT NULL,
    auth_time  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX browser_sessions_account_id ON browser_sessions (account_id);
CREATE INDEX browser_sessions_expires_at ON browser_sessions (expires_at);

CREATE TABLE interactions (
    id_hash      TEXT PRIMARY KEY,
    binding_hash TEXT NOT NULL,
    issuer       TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    request      TEXT NOT NULL,
    account_id   TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    auth_time    INTEGER NOT NULL,
    consented_at INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX interactions_expires_at ON interactions (expires_at);

CREATE TABLE grants (
    id         TEXT PRIMARY KEY,
    issuer     TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    account_id TEXT NOT NULL, -- empty: the client acts for itself
    session_id TEXT NOT NULL,
    resource   TEXT NOT NULL,
    details    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX grants_account_id ON grants (account_id);
CREATE INDEX grants_client_id ON grants (client_id);
CREATE INDEX grants_expires_at ON grants (expires_at) WHERE expires_at <> 0;
CREATE INDEX grants_revoked_at ON grants (revoked_at) WHERE revoked_at <> 0;

CREATE TABLE codes (
    signature  TEXT PRIMARY KEY,
    issuer     TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    grant_id   TEXT NOT NULL REFERENCES grants (id),
    request    TEXT NOT NULL,
    pkce       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX codes_grant_id ON codes (grant_id);
CREATE INDEX codes_expires_at ON codes (expires_at);

CREATE TABLE issued_tokens (
    id         TEXT PRIMARY KEY,
    issuer     TEXT NOT NULL,
    grant_id   TEXT REFERENCES grants (id), -- NULL: a token without a grant
    session_id TEXT NOT NULL,
    subject    TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    issued_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX issued_tokens_grant_id ON issued_tokens (grant_id);
CREATE INDEX issued_tokens_expires_at ON issued_tokens (expires_at);

CREATE TABLE key_sets (
    issuer  TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT;

CREATE TABLE signing_keys (
    issuer         TEXT NOT NULL REFERENCES key_sets (issuer),
    id             TEXT NOT NULL,
    algorithm      TEXT NOT NULL,
    actions        INTEGER NOT NULL,
    state          TEXT NOT NULL,
    private_sealed BLOB NOT NULL,
    created_at     INTEGER NOT NULL,
    activates_at   INTEGER NOT NULL,
    retires_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    PRIMARY KEY (issuer, id)
) STRICT;

-- AUTOINCREMENT: a sequence number is never given twice, even when the newest entries have been deleted.
CREATE TABLE revocations (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    issuer        TEXT NOT NULL,
    kind          TEXT NOT NULL,
    value         TEXT NOT NULL,
    issued_before INTEGER NOT NULL,
    until         INTEGER NOT NULL
) STRICT;
CREATE INDEX revocations_until ON revocations (until);

CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    event   TEXT NOT NULL,
    actor   TEXT NOT NULL,
    subject TEXT NOT NULL,
    client  TEXT NOT NULL,
    issuer  TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at);
