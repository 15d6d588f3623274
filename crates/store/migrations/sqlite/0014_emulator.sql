-- Emulator accounts: a virtual clock, review scripts, faults, and a sandbox for messages. Times named
-- `due_at`, `until`, `sent_at`, `last_sent_at` and `emulated_at` are times of the account's clock;
-- all others are real.

-- 'standard' or 'faithful' for an emulator account, which keeps its kind for ever.
ALTER TABLE account ADD COLUMN emulator TEXT;

-- What a review script sets: the quality, and the category that it announced. NULL: unknown, none.
-- They are not part of the checksum of the row.
ALTER TABLE template ADD COLUMN quality TEXT;
ALTER TABLE template ADD COLUMN announced_category TEXT;

-- When the upload began, for an emulator account.
ALTER TABLE upload ADD COLUMN emulated_at INTEGER;

-- One row for each emulator account. The clock shows `at`, plus the real time since `since` unless
-- that is NULL. `last_message` is the number of the newest message and `last_sent_at` its time: no
-- message is sent before it. `last_fault` is the number of the newest fault.
CREATE TABLE emulator_clock (
    account_id   INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    at           INTEGER NOT NULL,
    since        INTEGER,
    last_message INTEGER NOT NULL DEFAULT 0,
    last_sent_at INTEGER,
    last_fault   INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The review rules of an account, as JSON; without a row it has none.
CREATE TABLE review_rules (
    account_id INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    document   TEXT    NOT NULL
) STRICT;

-- The steps of review scripts that are not due yet, applied in the order of `due_at` and `id`.
CREATE TABLE script_step (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  INTEGER NOT NULL,
    template_id INTEGER NOT NULL,
    due_at      INTEGER NOT NULL,
    action      TEXT    NOT NULL,
    argument    TEXT
) STRICT;

CREATE INDEX script_step_due ON script_step (account_id, due_at, id);
CREATE INDEX script_step_of_template ON script_step (template_id);

-- Names that cannot be used again in this language for some time, because a template was deleted.
CREATE TABLE name_lock (
    account_id INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    language   TEXT    NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (account_id, name, language)
) STRICT, WITHOUT ROWID;

-- Faults. `call` repeats that of the document; `spent`: it never strikes again.
CREATE TABLE fault (
    account_id INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    call       TEXT    NOT NULL,
    document   TEXT    NOT NULL,
    matched    INTEGER NOT NULL,
    spent      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, number)
) STRICT, WITHOUT ROWID;

-- Messages of the sandbox. The statuses of a message follow from `sent_at` and `failure`.
CREATE TABLE message (
    account_id    INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    sent_at       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    template_id   INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    failure       INTEGER,
    phone_id      TEXT    NOT NULL,
    recipient     TEXT    NOT NULL,
    category      TEXT    NOT NULL,
    callback_data TEXT,
    texts         TEXT    NOT NULL,
    PRIMARY KEY (account_id, number)
) STRICT, WITHOUT ROWID;

-- Up to which message an endpoint has got each status. An endpoint without a row starts with the
-- first message that is younger than itself. `leased_until`: a worker is sending.
CREATE TABLE status_cursor (
    webhook_id   INTEGER NOT NULL PRIMARY KEY,
    sent         INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    read         INTEGER NOT NULL,
    leased_until INTEGER
) STRICT;
