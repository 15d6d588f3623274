-- Sessions of the console, links that start them, reviews by a second person, and the review queue.

-- Whether a version is decided on by another token than the one that created it.
ALTER TABLE account ADD COLUMN four_eyes INTEGER NOT NULL DEFAULT 0;

-- `hash`: SHA-256 of the secret in the cookie. `last_seen_at`: when the session was last used, within
-- a few minutes.
CREATE TABLE console_session (
    hash          BLOB    NOT NULL PRIMARY KEY,
    credential_id INTEGER NOT NULL REFERENCES credential (id),
    created_at    INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_session_of_credential ON console_session (credential_id, created_at);

-- `hash`: SHA-256 of the secret in the link. `name`: that of the token which it creates. The row is
-- deleted when the link is used.
CREATE TABLE console_link (
    hash       BLOB    NOT NULL PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES account (id),
    name       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The templates on which a reviewer can decide, also while they are paused.
CREATE INDEX template_awaiting_review ON template (account_id, id)
    WHERE claim IS NOT NULL AND status = 'PENDING' AND hold IS NOT 'DISABLED';
