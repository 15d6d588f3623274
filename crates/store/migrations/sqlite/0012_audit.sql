-- Names of credentials, who changed what, and accounts that are deleted.

-- The row of a deleted account stays: its events and templates expire like those of others.
ALTER TABLE account ADD COLUMN deleted_at INTEGER;

-- What a key or token is for, and when it was last used, within a minute.
ALTER TABLE credential ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE credential ADD COLUMN last_used_at INTEGER;

-- The trace of the request that caused the event: trace id, span id, flags. Outside the checksum.
ALTER TABLE event ADD COLUMN trace BLOB;

-- Changes of accounts, credentials, phone numbers and endpoints, appended in the transaction of the
-- change, and migrations of the schema, which concern no account. Rows are never changed or
-- deleted. `subject`: the id of what was changed. `details`: a JSON object.
CREATE TABLE audit (
    seq        INTEGER PRIMARY KEY,
    account_id INTEGER,
    at         INTEGER NOT NULL,
    actor      INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    details    TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_of_account ON audit (account_id, seq);

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit feed are never changed');
END;

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit feed are never deleted');
END;
