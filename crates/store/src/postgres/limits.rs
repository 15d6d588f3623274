//! The optional limits of an account that a create reaches, and its counter.

use galley_domain::id::AccountId;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    columns::{get, key, millis},
    pool::PgConnection,
};
use crate::{
    StoreError,
    decisions::limits::{RateCounter, RemainingQuota, last_hour},
    limits::{COUNT, FORGET},
    stored_row::StoredRow as _,
};

/// The templates that accounts with limits (`$1`) have, and have created in the last hour: `$2` is
/// the maximum number of creates, `$3` the start of the hour.
pub(super) const REMAINING_QUOTA: &str = "SELECT a.id, \
     a.template_limit::int8 AS template_limit, (SELECT count(*) FROM \
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
    let Some(limits) = row.account_limits()? else { return Ok(None) };
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
    let counter = RateCounter::of_creates(account);
    let (account, template) = (key(account.get()), counter.template_key());
    connection.execute(COUNT, &[&account, &template, &seq, &millis(at)]).await?;
    connection.execute(FORGET, &[&account, &template, &counter.max_entries()]).await.map(drop)
}
