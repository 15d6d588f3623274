-- Names of credentials, who changed what, and accounts that are deleted.

-- The row of a deleted account stays: its events and templates expire like those of others.
ALTER TABLE account ADD COLUMN deleted_at BIGINT;

-- `name`: what a key or token is for. `last_used_at`: when it was last used, within a minute.
ALTER TABLE credential
    ADD COLUMN name TEXT NOT NULL DEFAULT '',
    ADD COLUMN last_used_at BIGINT;

-- The trace of the request that caused the event: trace id, span id, flags.
ALTER TABLE event ADD COLUMN trace BYTEA;

-- Changes of accounts, credentials, phone numbers and endpoints, appended in the transaction of the
-- change, and migrations of the schema, which concern no account. Rows are never changed or
-- deleted. `subject`: the id of what was changed. `details`: a JSON object. A transaction that
-- appends holds an advisory lock until its end, so that a row is never committed after one with a
-- higher number.
CREATE TABLE audit (
    seq        BIGINT PRIMARY KEY,
    account_id BIGINT,
    at         BIGINT NOT NULL,
    actor      BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    subject    TEXT   NOT NULL,
    details    TEXT   NOT NULL
);

CREATE INDEX audit_of_account ON audit (account_id, seq);

CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries of the audit feed are never changed or deleted';
END
$$;

CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
