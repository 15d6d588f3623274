//! What the deliveries of this engine read and write of webhook endpoints.

use galley_domain::id::{AccountId, WebhookId};

use super::{columns::key, pool::PgPools, transaction::Transaction};
use crate::{
    StoreError, Webhook,
    stored_row::Row,
    webhooks::{select, webhook},
};

/// All columns of an endpoint.
macro_rules! columns {
    () => {
        "w.id, w.account_id, w.url, w.events, w.format, w.subscribed, w.secret, w.former_secret, \
         w.former_until, w.cursor, w.failures, w.failing_since, w.failed_at, w.resting_until, \
         w.disabled_at, w.disabled_because, w.created_at, w.updated_at"
    };
}
pub(super) use columns;

/// Locks an endpoint until the transaction ends, and before any of its deliveries. A statement that
/// follows sees what other transactions committed before.
pub(super) const LOCK: &str = "SELECT 1 FROM webhook WHERE id = $1 FOR NO KEY UPDATE";

pub(super) async fn one(
    pools: &PgPools,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let statement = select("", "WHERE id = $1 AND account_id = $2");
    let row = pools.read_one(&statement, &[&key(id.get()), &key(account.get())]).await?;
    row.as_ref().map(|row| webhook(&Row::Postgres(row))).transpose()
}

/// Locks an endpoint if the account owns it.
pub(super) async fn lock_own(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let statement = select("", "WHERE id = $1 AND account_id = $2 FOR NO KEY UPDATE OF w");
    let values: [i64; 2] = [key(id.get()), key(account.get())];
    let row = transaction.query_one(&statement, &[&values[0], &values[1]]).await?;
    row.as_ref().map(|row| webhook(&Row::Postgres(row))).transpose()
}
