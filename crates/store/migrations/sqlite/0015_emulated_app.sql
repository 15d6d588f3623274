-- When an event happened on the clock of an emulator account; NULL for other accounts. It is not part
-- of the checksum of the row.
ALTER TABLE event ADD COLUMN emulated_at INTEGER;

-- The app of an emulator account: the secret that signs its webhooks, and the address with which a
-- client of a faithful account wants to override the app's callback.
CREATE TABLE emulated_app (
    account_id        INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    secret            BLOB,
    callback_override TEXT
) STRICT;

CREATE INDEX name_lock_end ON name_lock (account_id, until);
