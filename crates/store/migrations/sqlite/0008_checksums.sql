-- Checksums of rows with content, so that damage on the disk is detected. The program provides the
-- function `row_checksum`; each table lists its columns in the order of the expressions in
-- `sqlite/checksum.rs`.

ALTER TABLE template ADD COLUMN checksum INTEGER;

UPDATE template SET checksum = row_checksum(id, account_id, phone_id, name, language, category,
    allow_category_change, content, version, status, live_version, hold, previous_category, reason,
    revision, created_at, updated_at, actor, version_at, decided_at, decided_by);

ALTER TABLE former_version ADD COLUMN checksum INTEGER;

UPDATE former_version SET checksum = row_checksum(template_id, version, category, status,
    created_at, actor, content, previous_category, reason, decided_at, decided_by);

ALTER TABLE event ADD COLUMN checksum INTEGER;

UPDATE event SET checksum = row_checksum(account_id, seq, type, template_id, version, at, actor,
    category, status, reason, webhook_id, origin);

ALTER TABLE upload_chunk ADD COLUMN checksum INTEGER;

UPDATE upload_chunk SET checksum = row_checksum(upload, place, bytes);

-- A value that a readiness check changes to find out whether writes succeed.
CREATE TABLE write_probe (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    probes   INTEGER NOT NULL
) STRICT;

INSERT INTO write_probe VALUES (1, 0);
