-- The schema of Galley 0.1.0. Builds before it had schemas 1 to 18, which no program reads any more.
--
-- Times are milliseconds since 1970. Enums are stored as the API shows them. Tables to which every
-- create writes have no references, which SQLite would look up each time; rows of accounts are never
-- removed.

-- Accounts ----------------------------------------------------------------------------------------

-- A tenant. `last_seq` numbers its events 1, 2, 3 … The row of a deleted account stays: its events
-- and templates expire like those of others.
CREATE TABLE account (
    id                  INTEGER PRIMARY KEY,
    name                TEXT    NOT NULL UNIQUE,
    rulebook            TEXT    NOT NULL,
    review              TEXT    NOT NULL,
    -- Whether a version is decided on by another token than the one that created it.
    four_eyes           INTEGER NOT NULL DEFAULT 0,
    takes_any_phone     INTEGER NOT NULL,
    -- 'standard' or 'faithful' for an emulator account, which keeps its kind permanently.
    emulator            TEXT,
    created_at          INTEGER NOT NULL,
    disabled_at         INTEGER,
    deleted_at          INTEGER,
    last_seq            INTEGER NOT NULL DEFAULT 0,
    -- How many templates it may have, and how many requests it may send in a second. NULL: no limit.
    template_limit      INTEGER,
    requests_per_second INTEGER,
    -- Bytes of templates that it may store, and phone numbers that it may claim. NULL: the default of
    -- the program; 0: no limit.
    stored_bytes_limit  INTEGER,
    phone_limit         INTEGER,
    -- Quota bytes of all stored versions of its templates. While they are counted again in the
    -- background, `counting` is not NULL.
    template_bytes      INTEGER NOT NULL DEFAULT 0,
    counting            INTEGER,
    -- Quota bytes of its uploads: for each, what was received in whole blocks of 4 KiB, at least one,
    -- and the bytes of its file name.
    media_bytes         INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Phone numbers that accounts own.
CREATE TABLE phone (
    id         TEXT    PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES account (id),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX phone_of_account ON phone (account_id);

-- API keys and access tokens. `hash`: the SHA-256 of the secret. `last_used_at` is accurate to a
-- minute.
CREATE TABLE credential (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id   INTEGER NOT NULL REFERENCES account (id),
    kind         TEXT    NOT NULL,
    name         TEXT    NOT NULL DEFAULT '',
    hash         BLOB    NOT NULL,
    scopes       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    UNIQUE (kind, hash)
) STRICT;

CREATE INDEX credential_of_account ON credential (account_id);

-- Raised by every change that takes rights from a credential or an account; caches watch it. New
-- credentials do not raise it, because caches do not remember what is missing.
CREATE TABLE credential_epoch (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch    INTEGER NOT NULL
) STRICT;

INSERT INTO credential_epoch VALUES (1, 1);

-- Sessions of the console. `hash`: the SHA-256 of the secret in the cookie. `last_seen_at` is
-- accurate to a few minutes.
CREATE TABLE console_session (
    hash          BLOB    NOT NULL PRIMARY KEY,
    credential_id INTEGER NOT NULL REFERENCES credential (id),
    created_at    INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_session_of_credential ON console_session (credential_id, created_at);

-- Links that start a session. `hash`: the SHA-256 of the secret in the link. `name`: that of the
-- token which it creates. The row is deleted when the link is used.
CREATE TABLE console_link (
    hash       BLOB    NOT NULL PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES account (id),
    name       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Changes of accounts, credentials, phone numbers and endpoints, appended in the transaction of the
-- change, and migrations of the schema, which concern no account. `subject`: the id of what was
-- changed. `details`: a JSON object.
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

-- Decisions with four eyes read which tokens replaced which.
CREATE INDEX audit_of_rotations ON audit (account_id) WHERE kind = 'credential.rotated';

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit feed are never changed');
END;

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit feed are never deleted');
END;

-- Templates ---------------------------------------------------------------------------------------
--
-- Rows with content have a checksum, so that damage on the disk is detected. The program provides
-- the function `row_checksum`; `sqlite/checksum.rs` lists the columns that it covers, in their order.

-- A template with its newest version. `actor`, `decided_by`: the id of a token, 0 for the operator,
-- -1 for the service.
CREATE TABLE template (
    id                    INTEGER PRIMARY KEY,
    account_id            INTEGER NOT NULL,
    phone_id              TEXT,
    -- A hash of what makes the name unique; NULL once the template is deleted. It has no index of its
    -- own, because a unique column changes a random page of its index with every create:
    -- `template_name` has the rows up to `buffered_index.merged_id`, and the service knows the newer
    -- ones.
    unique_key            BLOB,
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
    -- The newest version: its creator and its time (NULL: that of the template), the category that it
    -- replaced, and the decision of the reviewer.
    actor                 INTEGER NOT NULL,
    version_at            INTEGER,
    previous_category     TEXT,
    reason                TEXT,
    decided_at            INTEGER,
    decided_by            INTEGER,
    -- A hash of account and name where several languages share a name, and a hash of account, body
    -- and footer where templates are compared with the others of their account; otherwise NULL, so
    -- that their indexes cost nothing.
    translation_group     BLOB,
    message_text          BLOB,
    -- What a review script sets: the quality, and the category that it announced. Not in the checksum.
    quality               TEXT,
    announced_category    TEXT,
    checksum              INTEGER,
    -- The last stored column, so that the others are read without it.
    content               TEXT    NOT NULL,
    -- The list bucket. Lists are read bucket by bucket: one index serves every filter, alone or
    -- combined, and costs a create less than an index for each would. An account has few buckets and
    -- many templates.
    bucket                TEXT
        AS (coalesce(hold, status) || ' ' || category || ' ' || language) VIRTUAL
) STRICT;

CREATE INDEX template_in_bucket ON template (account_id, bucket, id) WHERE unique_key IS NOT NULL;
CREATE INDEX template_of_translation_group ON template (translation_group)
    WHERE translation_group IS NOT NULL AND unique_key IS NOT NULL;
CREATE INDEX template_with_message_text ON template (message_text)
    WHERE message_text IS NOT NULL AND unique_key IS NOT NULL;

-- The templates on which a reviewer can decide, also while they are paused.
CREATE INDEX template_awaiting_review ON template (account_id, id)
    WHERE unique_key IS NOT NULL AND status = 'PENDING' AND hold IS NOT 'DISABLED';

-- Versions that a newer one has replaced.
CREATE TABLE former_version (
    template_id       INTEGER NOT NULL REFERENCES template (id),
    version           INTEGER NOT NULL,
    category          TEXT    NOT NULL,
    status            TEXT    NOT NULL,
    created_at        INTEGER NOT NULL,
    actor             INTEGER NOT NULL,
    previous_category TEXT,
    reason            TEXT,
    decided_at        INTEGER,
    decided_by        INTEGER,
    checksum          INTEGER,
    content           TEXT    NOT NULL,
    PRIMARY KEY (template_id, version)
) STRICT, WITHOUT ROWID;

-- One fact each, appended in the transaction of the change. An event is about a template, or about
-- an endpoint or the account: then `template_id` is 0. Name and language never change and are read
-- from the template.
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
    webhook_id  INTEGER,
    origin      TEXT,
    checksum    INTEGER,
    -- The trace of the request that caused the event: trace id, span id, flags. Not in the checksum.
    trace       BLOB,
    -- The time on the clock of an emulator account. Not in the checksum.
    emulated_at INTEGER,
    PRIMARY KEY (account_id, seq)
) STRICT, WITHOUT ROWID;

-- The responses to creates with an Idempotency-Key, in the order of the creates and therefore of
-- their expiry. `key`: a hash of account and key. `payload`: a hash of the request. `category` and
-- `status` are their numbers in the enums of the program.
CREATE TABLE idempotency (
    template_id INTEGER PRIMARY KEY,
    key         BLOB    NOT NULL,
    payload     BLOB    NOT NULL,
    category    INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

-- The indexes of unique names and of idempotency keys, which are written in the order of their keys:
-- see `sqlite/buffered_index.rs`.
CREATE TABLE template_name (
    unique_key  BLOB    PRIMARY KEY,
    template_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_key (
    key         BLOB    PRIMARY KEY,
    template_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rows with higher ids than `merged_id` are not in their index yet, except those up to `merging_id`
-- whose hashes are at most `merged_hash`.
CREATE TABLE buffered_index (
    name        TEXT    PRIMARY KEY,
    merged_id   INTEGER NOT NULL,
    merging_id  INTEGER,
    merged_hash BLOB
) STRICT, WITHOUT ROWID;

INSERT INTO buffered_index (name, merged_id) VALUES ('template_name', 0), ('idempotency_key', 0);

-- What rate limits count, for accounts that have them: creates (with template 0) and edits of
-- APPROVED templates. No more rows are kept than the largest limit needs.
CREATE TABLE rate_counter (
    account_id  INTEGER NOT NULL,
    template_id INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (account_id, template_id, seq)
) STRICT, WITHOUT ROWID;

-- Media samples ------------------------------------------------------------------------------------

-- A media sample, which arrives in chunks: `received` bytes of `length` are stored. The uploader
-- knows `id`; `handle` finds the complete sample. `sniffed`: the type that its first bytes show.
CREATE TABLE upload (
    number      INTEGER PRIMARY KEY,
    account_id  INTEGER NOT NULL REFERENCES account (id),
    id          TEXT    NOT NULL UNIQUE,
    handle      TEXT    NOT NULL UNIQUE,
    file_name   TEXT    NOT NULL,
    file_type   TEXT    NOT NULL,
    length      INTEGER NOT NULL,
    received    INTEGER NOT NULL DEFAULT 0,
    sniffed     TEXT,
    created_at  INTEGER NOT NULL,
    -- When the upload began, on the clock of an emulator account.
    emulated_at INTEGER,
    finished_at INTEGER,
    -- When a template named it first. It is kept from then on, because versions are.
    used_at     INTEGER
) STRICT;

CREATE INDEX upload_unfinished ON upload (account_id, created_at) WHERE received < length;
CREATE INDEX upload_unused ON upload (finished_at)
    WHERE used_at IS NULL AND finished_at IS NOT NULL;

-- Its bytes. `place`: the offset of the chunk. The table has row ids, which suits large values.
CREATE TABLE upload_chunk (
    upload   INTEGER NOT NULL REFERENCES upload (number),
    place    INTEGER NOT NULL,
    bytes    BLOB    NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (upload, place)
) STRICT;

-- Webhooks ----------------------------------------------------------------------------------------

-- Endpoints that events are delivered to. `events`: the wanted types, divided by commas; empty: all.
CREATE TABLE webhook (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id       INTEGER NOT NULL REFERENCES account (id),
    url              TEXT    NOT NULL,
    -- The format of the payload: that of the feed, or Meta's.
    format           TEXT    NOT NULL,
    events           TEXT    NOT NULL,
    -- Whether it was made through the Graph API, where an account has one endpoint.
    subscribed       INTEGER NOT NULL,
    secret           BLOB    NOT NULL,
    former_secret    BLOB,
    former_until     INTEGER,
    -- Every event up to here has its delivery or needs none, so that an event writes nothing here.
    cursor           INTEGER NOT NULL,
    failing_since    INTEGER,
    failed_at        INTEGER,
    failures         INTEGER NOT NULL DEFAULT 0,
    resting_until    INTEGER,
    disabled_at      INTEGER,
    disabled_because TEXT,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX webhook_of_account ON webhook (account_id);
CREATE UNIQUE INDEX webhook_subscribed ON webhook (account_id) WHERE subscribed = 1;

-- Deleted endpoints whose deliveries are not all deleted yet.
CREATE TABLE former_webhook (
    id INTEGER PRIMARY KEY
) STRICT;

-- One event on its way to one endpoint. `due_at`: when it is sent next. Only the first unfinished
-- event of each template has it, so that they are delivered in order. `leased_until`: a worker is
-- sending. `template_id` is 0 when the event is about none.
CREATE TABLE delivery (
    webhook_id      INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    template_id     INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    attempts        INTEGER NOT NULL,
    due_at          INTEGER,
    leased_until    INTEGER,
    attempted_at    INTEGER,
    response_status INTEGER,
    failure         TEXT,
    PRIMARY KEY (webhook_id, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_due ON delivery (webhook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_in_line ON delivery (webhook_id, template_id, seq) WHERE status = 'waiting';
CREATE INDEX delivery_by_status ON delivery (webhook_id, status, seq);

-- Emulator accounts -------------------------------------------------------------------------------
--
-- Times named `due_at`, `until`, `sent_at`, `last_sent_at` and `emulated_at` are times of the
-- account's clock; all others are real.

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

-- The app of an emulator account: the secret that signs its webhooks, and the address with which a
-- client of a faithful account wants to override the app's callback.
CREATE TABLE emulated_app (
    account_id        INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    secret            BLOB,
    callback_override TEXT
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

-- Names of deleted templates that cannot be used again in this language until then.
CREATE TABLE name_lock (
    account_id INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    language   TEXT    NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (account_id, name, language)
) STRICT, WITHOUT ROWID;

CREATE INDEX name_lock_end ON name_lock (account_id, until);

-- Faults to inject. `call` repeats that of the document; `spent`: it is never injected again.
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

-- Up to which message an endpoint has received each status. An endpoint without a row starts with
-- the first message that is younger than itself. `leased_until`: a worker is sending.
CREATE TABLE status_cursor (
    webhook_id   INTEGER NOT NULL PRIMARY KEY,
    sent         INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    read         INTEGER NOT NULL,
    leased_until INTEGER
) STRICT;

-- Connections to a provider ------------------------------------------------------------------------

-- Accounts that are connected to a provider. The service seals `token` and `app_secret`.
CREATE TABLE upstream (
    account_id       INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    base_url         TEXT    NOT NULL,
    waba             TEXT    NOT NULL,
    app_id           TEXT,
    token            BLOB    NOT NULL,
    token_expires_at INTEGER,
    app_secret       BLOB,
    -- The SHA-256 of the secret in the path of its webhook.
    hook_hash        BLOB    NOT NULL UNIQUE,
    connected_at     INTEGER NOT NULL,
    paused_at        INTEGER,
    -- Since then nothing is marked as missing: a sweep did not see too many templates.
    suspicious_at    INTEGER,
    -- Why calls fail, since when, and until when none is made.
    degraded         TEXT,
    degraded_since   INTEGER,
    degraded_until   INTEGER,
    error            TEXT,
    -- The calls of the last hour by minute: all, those of sweeps, and creates.
    calls            TEXT    NOT NULL DEFAULT '',
    sweep_calls      TEXT    NOT NULL DEFAULT '',
    creates          TEXT    NOT NULL DEFAULT '',
    rest_until       INTEGER,
    -- The number of the last sweep. It runs while `sweep_began_at` is set. Its cursor is NULL before
    -- the first page and empty after the last one.
    sweep            INTEGER NOT NULL DEFAULT 0,
    sweep_began_at   INTEGER,
    sweep_full       INTEGER NOT NULL DEFAULT 0,
    sweep_cursor     TEXT,
    sweep_seen       INTEGER NOT NULL DEFAULT 0,
    sweep_changed    INTEGER NOT NULL DEFAULT 0,
    sweep_total      INTEGER,
    sweep_restarted  INTEGER NOT NULL DEFAULT 0,
    -- What it has seen: generated templates, and pages in a row without a new one.
    sweep_generated  INTEGER NOT NULL DEFAULT 0,
    sweep_idle       INTEGER NOT NULL DEFAULT 0,
    -- A webhook named a template that is not mirrored.
    sweep_wanted     INTEGER NOT NULL DEFAULT 0,
    -- The number of the last sweep that reached the last page.
    complete_sweep   INTEGER NOT NULL DEFAULT 0,
    -- When the last sweep ended, the last one that counted, and the last one of those that read
    -- components.
    sweep_ended_at   INTEGER,
    swept_at         INTEGER,
    read_all_at      INTEGER,
    template_limit   INTEGER,
    fence            INTEGER NOT NULL DEFAULT 0,
    leased_until     INTEGER
) STRICT;

-- The mirror: templates as the provider shows them. `document` is what was received, byte for byte;
-- `content_key` is the fingerprint of its comparable content, and `version` the version of the local
-- template with the same one.
CREATE TABLE upstream_template (
    account_id        INTEGER NOT NULL REFERENCES account (id),
    remote_id         TEXT    NOT NULL,
    template_id       INTEGER,
    name              TEXT    NOT NULL,
    language          TEXT    NOT NULL,
    status            TEXT    NOT NULL,
    category          TEXT    NOT NULL,
    correct_category  TEXT,
    quality           TEXT,
    reason            TEXT,
    -- How the template came into being, in the word of the provider: AUTO_GENERATED if it made it.
    source            TEXT,
    remote_updated_at INTEGER,
    document          TEXT,
    content_key       BLOB,
    version           INTEGER,
    -- The version that the last call has given the provider, until a read shows that one.
    sent_version      INTEGER,
    drifted           INTEGER NOT NULL DEFAULT 0,
    observed_at       INTEGER NOT NULL,
    changed_at        INTEGER NOT NULL,
    -- The last sweep that saw it, and how many counted ones since did not.
    sweep             INTEGER NOT NULL,
    missing           INTEGER NOT NULL DEFAULT 0,
    gone_at           INTEGER,
    -- It has to be read. Each reason to read it sets a later time.
    dirty_at          INTEGER,
    -- What only webhooks say, as JSON.
    info              TEXT,
    PRIMARY KEY (account_id, remote_id)
) STRICT;

CREATE INDEX upstream_template_local ON upstream_template (account_id, template_id);
CREATE INDEX upstream_template_name ON upstream_template (account_id, name, language);
CREATE INDEX upstream_template_dirty ON upstream_template (account_id, dirty_at)
    WHERE dirty_at IS NOT NULL;
CREATE INDEX upstream_template_missing ON upstream_template (account_id)
    WHERE missing > 0 AND gone_at IS NULL;

-- Changes to make at the provider.
CREATE TABLE upstream_operation (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    INTEGER NOT NULL REFERENCES account (id),
    template_id   INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    held_reason   TEXT,
    held_until    INTEGER,
    attempts      INTEGER NOT NULL DEFAULT 0,
    -- How many of its calls had an unknown outcome since it was queued.
    unknown_calls INTEGER NOT NULL DEFAULT 0,
    error         TEXT,
    -- The fingerprint of the content at the provider that a person has decided to replace.
    replaces      BLOB,
    created_at    INTEGER NOT NULL,
    sent_at       INTEGER,
    updated_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX upstream_operation_template ON upstream_operation (account_id, template_id);
CREATE INDEX upstream_operation_open ON upstream_operation (account_id)
    WHERE state IN ('queued', 'sending', 'unknown', 'probing', 'held');

-- The service --------------------------------------------------------------------------------------

-- A value that a readiness check changes to find out whether writes succeed.
CREATE TABLE write_probe (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    probes   INTEGER NOT NULL
) STRICT;

INSERT INTO write_probe VALUES (1, 0);

-- The time that retention trusts (position 0), and times beyond a jump that are not confirmed yet.
-- `observed_ms`: for how long such a time has lasted. See `src/clock_guard.rs`.
CREATE TABLE clock_guard (
    position    INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    observed_ms INTEGER NOT NULL
) STRICT;
