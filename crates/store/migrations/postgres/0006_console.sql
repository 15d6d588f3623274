-- Sessions of the console, links that start them, reviews by a second person, and the review queue.

-- Whether a version is decided on by another token than the one that created it.
ALTER TABLE account ADD COLUMN four_eyes BOOLEAN NOT NULL DEFAULT false;

-- `hash`: SHA-256 of the secret in the cookie. `last_seen_at`: when the session was last used, within
-- a few minutes.
CREATE TABLE console_session (
    hash          BYTEA  PRIMARY KEY,
    credential_id BIGINT NOT NULL REFERENCES credential (id),
    created_at    BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL
);

CREATE INDEX console_session_of_credential ON console_session (credential_id, created_at);

-- `hash`: SHA-256 of the secret in the link. `name`: that of the token which it creates. The row is
-- deleted when the link is used.
CREATE TABLE console_link (
    hash       BYTEA  PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES account (id),
    name       TEXT   NOT NULL,
    scopes     TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
);

-- The templates on which a reviewer can decide, also while they are paused.
CREATE INDEX template_awaiting_review ON template (account_id, id)
    WHERE claim IS NOT NULL AND status = 'PENDING' AND hold IS DISTINCT FROM 'DISABLED';
