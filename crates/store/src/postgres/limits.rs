//! Account limits, as SQL. Rate counters are written only for accounts that have limits, so that
//! other accounts' writes do not pay for them.

use galley_domain::id::AccountId;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    accounts,
    columns::{get, key, millis},
    pool::{PgConnection, Values},
    transaction::Transaction,
};
use crate::{
    Limit, StoreError, TemplateChange,
    decisions::{
        self,
        limits::{RateCounter, RemainingQuota, last_hour},
    },
};

/// The templates that accounts with limits (`$1`) have, and have created in the last hour: `$2` is
/// the maximum number of creates, `$3` the start of the hour.
pub(super) const REMAINING_QUOTA: &str = "SELECT a.id, a.template_limit, (SELECT count(*) FROM \
     (SELECT at FROM rate_counter WHERE account_id = a.id AND template_id = 0 ORDER BY seq DESC LIMIT $2) AS last \
     WHERE at > $3) AS this_hour, (SELECT count(*) FROM (SELECT 1 FROM template \
     WHERE account_id = a.id AND unique_key IS NOT NULL LIMIT a.template_limit) AS few) AS templates \
     FROM account a WHERE a.id = ANY($1) AND a.template_limit IS NOT NULL";

/// Reads the quota of one account; `None` if it has no limits.
pub(super) async fn read_quota(
    connection: &PgConnection,
    account: AccountId,
    at: Timestamp,
) -> Result<Option<RemainingQuota>, StoreError> {
    let (since, max_creates) = last_hour(at);
    let accounts: &[i64] = &[key(account.get())];
    let rows = connection.query(REMAINING_QUOTA, &[&accounts, &max_creates, &since]).await?;
    rows.first().map_or(Ok(None), remaining_quota)
}

/// Decodes a row of [`REMAINING_QUOTA`].
pub(super) fn remaining_quota(row: &Row) -> Result<Option<RemainingQuota>, StoreError> {
    let Some(limits) = accounts::limits(row)? else { return Ok(None) };
    let (this_hour, templates) = (get(row, "this_hour")?, get(row, "templates")?);
    Ok(Some(RemainingQuota::new(limits, this_hour, templates)))
}

/// Counts a create, under the number of its event.
pub(super) async fn count_create(
    connection: &PgConnection,
    account: AccountId,
    seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    add(connection, RateCounter::of_creates(account), seq, at).await
}

/// The limit that prevents an edit of an APPROVED template, if any.
pub(super) async fn reached_by_edit(
    transaction: &Transaction,
    change: &TemplateChange,
    at: Timestamp,
) -> Result<Option<Limit>, StoreError> {
    let counter = RateCounter::of_edits(change);
    let statement = "SELECT at FROM rate_counter WHERE account_id = $1 AND template_id = $2 \
                     ORDER BY seq DESC LIMIT $3";
    let values: Values<'_> =
        &[&key(change.account.get()), &counter.template_key(), &counter.max_entries()];
    let rows = transaction.query(statement, values).await?;
    let edits: Vec<i64> = rows.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
    Ok(decisions::limits::reached_by_edit(&edits, at))
}

/// Counts an edit of an APPROVED template, after its event was appended.
pub(super) async fn count_edit(
    transaction: &Transaction,
    change: &TemplateChange,
    at: Timestamp,
) -> Result<(), StoreError> {
    let seq = key(transaction.newest_seq(change.account));
    add(transaction.connection(), RateCounter::of_edits(change), seq, at).await
}

/// Deletes the edit counters of a deleted template.
pub(super) async fn delete_edit_counts(
    transaction: &Transaction,
    change: &TemplateChange,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM rate_counter WHERE account_id = $1 AND template_id = $2";
    let values: Values<'_> = &[&key(change.account.get()), &key(change.id.get())];
    transaction.execute(delete, values).await.map(drop)
}

/// Counts one more, and deletes entries that no limit needs any more.
async fn add(
    connection: &PgConnection,
    counter: RateCounter,
    seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (account, template) = (key(counter.account.get()), counter.template_key());
    let insert =
        "INSERT INTO rate_counter (account_id, template_id, seq, at) VALUES ($1, $2, $3, $4)";
    connection.execute(insert, &[&account, &template, &seq, &millis(at)]).await?;
    let delete = "DELETE FROM rate_counter WHERE account_id = $1 AND template_id = $2 AND seq <= \
                  (SELECT seq FROM rate_counter WHERE account_id = $1 AND template_id = $2 \
                  ORDER BY seq DESC LIMIT 1 OFFSET $3)";
    connection.execute(delete, &[&account, &template, &counter.max_entries()]).await.map(drop)
}
