-- When an event happened on the clock of an emulator account; NULL for other accounts.
ALTER TABLE event ADD COLUMN emulated_at BIGINT;

-- The app of an emulator account: the secret that signs its webhooks, and the address with which a
-- client of a faithful account wants to override the app's callback.
CREATE TABLE emulated_app (
    account_id        BIGINT NOT NULL PRIMARY KEY REFERENCES account (id),
    secret            BYTEA,
    callback_override TEXT
);

CREATE INDEX name_lock_end ON name_lock (account_id, until);
