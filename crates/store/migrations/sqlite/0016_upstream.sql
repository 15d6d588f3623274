-- Accounts that are connected to a provider. `token` and `app_secret` are sealed by the service.
CREATE TABLE upstream (
    account_id       INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    base_url         TEXT NOT NULL,
    waba             TEXT NOT NULL,
    app_id           TEXT,
    token            BLOB NOT NULL,
    token_expires_at INTEGER,
    app_secret       BLOB,
    -- The SHA-256 of the secret in the path of its webhook.
    hook_hash        BLOB NOT NULL UNIQUE,
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
    calls            TEXT NOT NULL DEFAULT '',
    sweep_calls      TEXT NOT NULL DEFAULT '',
    creates          TEXT NOT NULL DEFAULT '',
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
    -- A webhook named a template that is not mirrored.
    sweep_wanted     INTEGER NOT NULL DEFAULT 0,
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
    remote_id         TEXT NOT NULL,
    template_id       INTEGER,
    name              TEXT NOT NULL,
    language          TEXT NOT NULL,
    status            TEXT NOT NULL,
    category          TEXT NOT NULL,
    correct_category  TEXT,
    quality           TEXT,
    reason            TEXT,
    remote_updated_at INTEGER,
    document          TEXT,
    content_key       BLOB,
    version           INTEGER,
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

-- Creates, edits and deletes to make at the provider.
CREATE TABLE upstream_operation (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id   INTEGER NOT NULL REFERENCES account (id),
    template_id  INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    state        TEXT NOT NULL,
    held_reason  TEXT,
    held_until   INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0,
    error        TEXT,
    created_at   INTEGER NOT NULL,
    sent_at      INTEGER,
    updated_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX upstream_operation_template ON upstream_operation (account_id, template_id);
CREATE INDEX upstream_operation_open ON upstream_operation (account_id)
    WHERE state IN ('queued', 'sending', 'unknown', 'probing', 'held');
