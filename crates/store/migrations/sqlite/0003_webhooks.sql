-- Endpoints that events are delivered to.

-- An event is about a template, or about an endpoint: then its template is 0.
ALTER TABLE event ADD COLUMN webhook_id INTEGER;
ALTER TABLE event ADD COLUMN origin TEXT;

-- `events`: the types that are wanted, divided by commas; empty: all. `cursor`: every event up to
-- here has its delivery, or needs none; there is nothing to write for an event when it happens.
CREATE TABLE webhook (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id       INTEGER NOT NULL REFERENCES account (id),
    url              TEXT    NOT NULL,
    events           TEXT    NOT NULL,
    secret           BLOB    NOT NULL,
    former_secret    BLOB,
    former_until     INTEGER,
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

-- Endpoints that are gone and may have left deliveries, which are forgotten bit by bit.
CREATE TABLE former_webhook (
    id INTEGER PRIMARY KEY
) STRICT;

-- One event on its way to one endpoint. `due_at`: when it is tried next; only the first of the
-- events of a template that are not yet done has it, so that they are delivered in their order.
-- `leased_until`: somebody is trying it. The template is 0 when the event is about none.
CREATE TABLE delivery (
    webhook_id   INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    template_id  INTEGER NOT NULL,
    status       TEXT    NOT NULL,
    attempts     INTEGER NOT NULL,
    due_at       INTEGER,
    leased_until INTEGER,
    attempted_at INTEGER,
    answer       INTEGER,
    failure      TEXT,
    PRIMARY KEY (webhook_id, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_due ON delivery (webhook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_in_line ON delivery (webhook_id, template_id, seq) WHERE status = 'waiting';
CREATE INDEX delivery_by_status ON delivery (webhook_id, status, seq);
