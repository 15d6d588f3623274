-- Unique names and idempotency keys in indexes that are written in the order of their keys.

-- A unique column changes a random page of its index with every create. The hash of the unique key
-- stays in the row, without an index of its own: `template_name` has those of all templates up to
-- `buffered_index.merged_id`, and the service knows the newer ones. The content is the last column,
-- so that the others are read without it.
CREATE TABLE new_template (
    id                    INTEGER PRIMARY KEY,
    account_id            INTEGER NOT NULL,
    phone_id              TEXT,
    claim                 BLOB,
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
    actor                 INTEGER NOT NULL,
    version_at            INTEGER,
    previous_category     TEXT,
    reason                TEXT,
    decided_at            INTEGER,
    decided_by            INTEGER,
    family                BLOB,
    wording               BLOB,
    checksum              INTEGER,
    content               TEXT    NOT NULL,
    shelf                 TEXT
        AS (coalesce(hold, status) || ' ' || category || ' ' || language) VIRTUAL
) STRICT;

INSERT INTO new_template
SELECT
    id, account_id, phone_id, claim, name, language, category, allow_category_change, status, hold,
    version, live_version, revision, created_at, updated_at, actor, version_at, previous_category,
    reason, decided_at, decided_by, family, wording, checksum, content
FROM template
ORDER BY id;

CREATE TABLE template_name (
    claim       BLOB    PRIMARY KEY,
    template_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO template_name
SELECT claim, id FROM template WHERE claim IS NOT NULL ORDER BY claim;

DROP TABLE template;
ALTER TABLE new_template RENAME TO template;

CREATE INDEX template_on_shelf ON template (account_id, shelf, id) WHERE claim IS NOT NULL;
CREATE INDEX template_of_family ON template (family)
    WHERE family IS NOT NULL AND claim IS NOT NULL;
CREATE INDEX template_of_wording ON template (wording)
    WHERE wording IS NOT NULL AND claim IS NOT NULL;

-- Records in the order of the creates, and therefore of their expiry.
CREATE TABLE new_idempotency (
    template_id INTEGER PRIMARY KEY,
    key         BLOB    NOT NULL,
    payload     BLOB    NOT NULL,
    category    INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

INSERT OR REPLACE INTO new_idempotency
SELECT template_id, key, payload, category, status, created_at FROM idempotency
ORDER BY template_id, created_at;

CREATE TABLE idempotency_key (
    key         BLOB    PRIMARY KEY,
    template_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO idempotency_key
SELECT key, template_id FROM new_idempotency ORDER BY key;

DROP TABLE idempotency;
ALTER TABLE new_idempotency RENAME TO idempotency;

-- Rows with higher ids than `merged_id` are not in their index yet, except those up to `merging_id`
-- whose hashes are at most `merged_hash`.
CREATE TABLE buffered_index (
    name        TEXT    PRIMARY KEY,
    merged_id   INTEGER NOT NULL,
    merging_id  INTEGER,
    merged_hash BLOB
) STRICT, WITHOUT ROWID;

INSERT INTO buffered_index (name, merged_id) VALUES
    ('template_name', (SELECT coalesce(max(id), 0) FROM template)),
    ('idempotency_key', (SELECT coalesce(max(template_id), 0) FROM idempotency));
