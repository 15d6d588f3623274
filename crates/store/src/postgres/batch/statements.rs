//! The prepared statements of a batch of creates.

use crate::{
    StoreError,
    engine::account_state_columns,
    postgres::pool::{PgConnection, PgPools},
    template_rows::insert_columns,
};

/// Locks the accounts in the order of their ids, so that two batches never deadlock.
pub(super) const LOCK: &str = concat!(
    "SELECT id, ",
    account_state_columns!("last_template"),
    " FROM account WHERE id = ANY($1) AND deleted_at IS NULL ORDER BY id FOR NO KEY UPDATE"
);

pub(super) const RECORDS: &str = "SELECT key, payload, template_id, category, status, created_at \
     FROM idempotency WHERE key = ANY($1)";

pub(super) const GROUP_CATEGORIES: &str = "SELECT DISTINCT ON (translation_group) translation_group, category \
     FROM template WHERE translation_group = ANY($1) AND unique_key IS NOT NULL \
     ORDER BY translation_group";

pub(super) const KEY_OWNERS: &str =
    "SELECT unique_key, id, account_id FROM template WHERE unique_key = ANY($1)";

/// The templates that accounts with limits (`$1`) have, and have created in the last hour: `$2` is
/// the maximum number of creates, `$3` the start of the hour.
pub(super) const QUOTAS: &str = "SELECT a.id, a.template_limit::int8 AS template_limit, (SELECT count(*) FROM \
     (SELECT at FROM rate_counter WHERE account_id = a.id AND template_id = 0 ORDER BY seq DESC LIMIT $2) AS last \
     WHERE at > $3) AS this_hour, (SELECT count(*) FROM (SELECT 1 FROM template \
     WHERE account_id = a.id AND unique_key IS NOT NULL LIMIT a.template_limit) AS few) AS templates \
     FROM account a WHERE a.id = ANY($1) AND a.template_limit IS NOT NULL";

pub(super) const TEMPLATES: &str =
    concat!("COPY template (", insert_columns!(), ") FROM STDIN BINARY");

pub(super) const EVENTS: &str = "COPY event (account_id, seq, type, template_id, version, at, actor, \
     category, status, trace) FROM STDIN BINARY";

/// Overwrites expired records, which may still exist.
pub(super) const INSERT_RECORDS: &str = "INSERT INTO idempotency (key, payload, template_id, category, status, \
     created_at) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int8[], $4::int2[], \
     $5::int2[], $6::int8[]) ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, \
     template_id = excluded.template_id, category = excluded.category, status = excluded.status, \
     created_at = excluded.created_at";

pub(super) const UPDATE_COUNTERS: &str = "UPDATE account SET last_seq = new.seq, last_template = new.template, \
     template_bytes = template_bytes + new.bytes \
     FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[]) \
     AS new (id, seq, template, bytes) WHERE account.id = new.id";

/// A connection on which all statements of a batch are prepared.
pub(in crate::postgres) async fn connect(pools: &PgPools) -> Result<PgConnection, StoreError> {
    let connection = pools.creates.get().await?;
    let reads = [LOCK, RECORDS, GROUP_CATEGORIES, KEY_OWNERS, QUOTAS];
    for statement in reads.into_iter().chain([TEMPLATES, EVENTS, INSERT_RECORDS, UPDATE_COUNTERS]) {
        connection.prepare(statement).await?;
    }
    Ok(connection)
}
