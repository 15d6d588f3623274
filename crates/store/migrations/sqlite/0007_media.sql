-- Media samples: how much each account keeps, and which of them templates name.

-- What the account's uploads take of its room: for each what is there of it in whole 4 KiB, one at
-- least, and the bytes of its name.
ALTER TABLE account ADD COLUMN media_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE account SET media_bytes = kept.bytes
FROM (
    SELECT
        account_id,
        sum((max(received, 1) + 4095) / 4096 * 4096 + octet_length(file_name)) AS bytes
    FROM upload
    GROUP BY account_id
) AS kept
WHERE kept.account_id = account.id;

-- When all of it was there.
ALTER TABLE upload ADD COLUMN finished_at INTEGER;

-- When a template named it first. It is kept from then on: versions are history, and history stays.
ALTER TABLE upload ADD COLUMN used_at INTEGER;

-- What was finished before was to be kept for good.
UPDATE upload SET finished_at = created_at, used_at = created_at WHERE received = length;

CREATE INDEX upload_unused ON upload (finished_at)
    WHERE used_at IS NULL AND finished_at IS NOT NULL;
