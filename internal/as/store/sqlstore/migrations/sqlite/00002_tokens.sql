-- Refresh tokens, pushed requests, and what a revocation has to find quickly.

-- +goose Up

-- The hash of a client secret is sealed now. No client of version 1 could authenticate with a secret.
ALTER TABLE clients DROP COLUMN secret_hash;
ALTER TABLE clients ADD COLUMN secret_sealed BLOB;
ALTER TABLE clients ADD COLUMN broker INTEGER NOT NULL DEFAULT 0;

ALTER TABLE interactions ADD COLUMN pushed_hash TEXT NOT NULL DEFAULT '';
CREATE INDEX interactions_pushed_hash ON interactions (pushed_hash);

CREATE TABLE pushed_requests (
    id_hash      TEXT PRIMARY KEY, -- of the request URI
    issuer       TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    request      TEXT NOT NULL,
    binding_hash TEXT NOT NULL, -- empty: no browser has used it
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX pushed_requests_expires_at ON pushed_requests (expires_at);

CREATE TABLE refresh_tokens (
    id           TEXT PRIMARY KEY, -- SHA-256 of the token
    issuer       TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    grant_id     TEXT NOT NULL REFERENCES grants (id),
    request      TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER NOT NULL, -- of a rotated one
    successor_id TEXT NOT NULL
) STRICT;
CREATE INDEX refresh_tokens_grant_id ON refresh_tokens (grant_id);
CREATE INDEX refresh_tokens_expires_at ON refresh_tokens (expires_at);

-- Login sessions that ended, kept until no request can be under way that began before.
CREATE TABLE ended_sessions (
    key_hash BLOB PRIMARY KEY, -- SHA-256 of issuer and session id
    sweep_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ended_sessions_sweep_at ON ended_sessions (sweep_at);

-- Clients that were deleted or disabled, kept also until all their grants are marked revoked.
CREATE TABLE ended_clients (
    client_id TEXT PRIMARY KEY,
    sweep_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX ended_clients_sweep_at ON ended_clients (sweep_at);

CREATE INDEX browser_sessions_session_id ON browser_sessions (session_id);

-- sweep_at is when to look whether a grant can go: what refers to it may have to stay longer. 0: not before it is revoked.
ALTER TABLE grants ADD COLUMN sweep_at INTEGER NOT NULL DEFAULT 0;
UPDATE grants SET sweep_at = expires_at + 86400000 WHERE expires_at <> 0;
UPDATE grants SET sweep_at = revoked_at + 86400000 WHERE revoked_at <> 0;
CREATE INDEX grants_sweep_at ON grants (sweep_at) WHERE sweep_at <> 0;
DROP INDEX grants_expires_at;
DROP INDEX grants_revoked_at;
DROP INDEX grants_client_id;
CREATE INDEX grants_client_id ON grants (client_id, revoked_at);
CREATE INDEX grants_session_id ON grants (session_id);

ALTER TABLE issued_tokens ADD COLUMN revoked_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX issued_tokens_session_id ON issued_tokens (session_id);
CREATE INDEX issued_tokens_subject ON issued_tokens (subject);
CREATE INDEX issued_tokens_client_id ON issued_tokens (client_id, issued_at);

-- The last number given in the revocation log.
INSERT INTO meta (name, number) SELECT 'revocation_seq', coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'revocations';

UPDATE meta SET number = 2 WHERE name = 'schema_version';
