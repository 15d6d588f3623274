-- The first schema. Moments are milliseconds since 1970; words are kept as they are shown.

-- A tenant. `last_seq` numbers its events 1, 2, 3 …
CREATE TABLE account (
    id              INTEGER PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    rulebook        TEXT    NOT NULL,
    review          TEXT    NOT NULL,
    takes_any_phone INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    disabled_at     INTEGER,
    last_seq        INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE phone (
    id         TEXT    PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES account (id),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX phone_of_account ON phone (account_id);

-- Keys and tokens, kept only as SHA-256.
CREATE TABLE credential (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES account (id),
    kind       TEXT    NOT NULL,
    hash       BLOB    NOT NULL,
    scopes     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    UNIQUE (kind, hash)
) STRICT;

CREATE INDEX credential_of_account ON credential (account_id);

-- Raised by whatever makes a known credential or account worth less; caches watch it. Additions
-- do not raise it, since nothing is ever remembered as missing.
CREATE TABLE credential_epoch (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch    INTEGER NOT NULL
) STRICT;

INSERT INTO credential_epoch VALUES (1, 1);

-- A template with its newest version. `claim` is what makes the name unique (a hash of its scope
-- and name), empty once the template is deleted. Accounts are never removed, so that the tables
-- every create writes to do without a reference that would be looked up each time.
CREATE TABLE template (
    id                    INTEGER PRIMARY KEY,
    account_id            INTEGER NOT NULL,
    phone_id              TEXT,
    claim                 BLOB    UNIQUE,
    name                  TEXT    NOT NULL,
    language              TEXT    NOT NULL,
    category              TEXT    NOT NULL,
    allow_category_change INTEGER NOT NULL,
    status                TEXT    NOT NULL,
    hold                  TEXT,
    version               INTEGER NOT NULL,
    live_version          INTEGER,
    revision              INTEGER NOT NULL,
    created_at            INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL,
    content               TEXT    NOT NULL
) STRICT;

-- Versions that a newer one has taken the place of.
CREATE TABLE former_version (
    template_id INTEGER NOT NULL REFERENCES template (id),
    version     INTEGER NOT NULL,
    category    TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    actor       INTEGER NOT NULL,
    content     TEXT    NOT NULL,
    PRIMARY KEY (template_id, version)
) STRICT, WITHOUT ROWID;

-- One fact each, appended in the transaction of the change. Name and language never change and
-- are read from the template.
CREATE TABLE event (
    account_id  INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    type        TEXT    NOT NULL,
    template_id INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    actor       INTEGER NOT NULL,
    category    TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    reason      TEXT,
    PRIMARY KEY (account_id, seq)
) STRICT, WITHOUT ROWID;

-- What an Idempotency-Key made: enough to give the first answer again. Keys are random and every
-- row lands on another page, so the rows are as small as they can be: `key` is a hash of account
-- and key, `payload` a hash of the request, category and status are their numbers in the lists of
-- words that the program has.
CREATE TABLE idempotency (
    key         BLOB    PRIMARY KEY,
    payload     BLOB    NOT NULL,
    template_id INTEGER NOT NULL,
    category    INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
