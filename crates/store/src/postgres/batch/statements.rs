//! The statements of a batch of creations.

use tokio_postgres::Statement;

use crate::{
    StoreError,
    postgres::{limits, pool::Link},
};

/// Locks the accounts in the order of their ids, so that two batches never wait for one another.
const LOCK: &str = "SELECT id, last_seq, last_template, template_limit FROM account \
     WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";

const RECORDS: &str = "SELECT key, payload, template_id, category, status, created_at \
     FROM idempotency WHERE key = ANY($1)";

const FAMILIES: &str = "SELECT DISTINCT ON (family) family, category FROM template \
     WHERE family = ANY($1) AND claim IS NOT NULL ORDER BY family";

const TAKEN: &str = "SELECT claim, id, account_id FROM template WHERE claim = ANY($1)";

const TEMPLATES: &str = "COPY template (id, account_id, phone_id, claim, name, language, category, \
     allow_category_change, status, version, live_version, revision, created_at, updated_at, \
     content, actor, family, wording) FROM STDIN BINARY";

const EVENTS: &str = "COPY event (account_id, seq, type, template_id, version, at, actor, \
     category, status) FROM STDIN BINARY";

/// One that has run out may still be there.
const KEEP_RECORDS: &str = "INSERT INTO idempotency (key, payload, template_id, category, status, \
     created_at) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int8[], $4::int2[], \
     $5::int2[], $6::int8[]) ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, \
     template_id = excluded.template_id, category = excluded.category, status = excluded.status, \
     created_at = excluded.created_at";

const RAISE: &str = "UPDATE account SET last_seq = new.seq, last_template = new.template \
     FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS new (id, seq, template) \
     WHERE account.id = new.id";

/// A connection with the statements that its server has read beforehand.
pub(in crate::postgres) struct Seat {
    pub(in crate::postgres) link: Link,
    pub(super) prepared: Prepared,
}

impl Seat {
    pub(in crate::postgres) async fn on(link: Link) -> Result<Self, StoreError> {
        let prepared = Prepared::on(&link).await?;
        Ok(Self { link, prepared })
    }
}

pub(super) struct Prepared {
    pub(super) lock: Statement,
    pub(super) records: Statement,
    pub(super) families: Statement,
    pub(super) taken: Statement,
    pub(super) rooms: Statement,
    pub(super) templates: Statement,
    pub(super) events: Statement,
    pub(super) keep_records: Statement,
    pub(super) raise: Statement,
}

impl Prepared {
    async fn on(link: &Link) -> Result<Self, StoreError> {
        Ok(Self {
            lock: link.prepare(LOCK).await?,
            records: link.prepare(RECORDS).await?,
            families: link.prepare(FAMILIES).await?,
            taken: link.prepare(TAKEN).await?,
            rooms: link.prepare(limits::ROOMS).await?,
            templates: link.prepare(TEMPLATES).await?,
            events: link.prepare(EVENTS).await?,
            keep_records: link.prepare(KEEP_RECORDS).await?,
            raise: link.prepare(RAISE).await?,
        })
    }
}
