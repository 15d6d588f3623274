//! The optional limits of an account that a create reaches.

use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::Connection;

use super::columns::key;
use crate::{
    AccountLimits, Limit, StoreError,
    decisions::limits::{RateCounter, RemainingQuota, last_hour},
};

/// The limit that prevents a create, if any.
pub(super) fn reached_by_create(
    connection: &Connection,
    account: AccountId,
    limits: AccountLimits,
    at: Timestamp,
) -> Result<Option<Limit>, StoreError> {
    let counter = RateCounter::of_creates(account);
    let mut query = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT at FROM rate_counter WHERE account_id = ?1 AND \
         template_id = ?2 ORDER BY seq DESC LIMIT ?3) WHERE at > ?4",
    )?;
    let (since, max_creates) = last_hour(at);
    let values = [key(account.get()), counter.template_key(), max_creates, since];
    let this_hour: i64 = query.query_row(values, |row| row.get(0))?;
    // An account that has used up its hour does not need its templates counted.
    let templates =
        if this_hour < max_creates { count_templates(connection, account, limits)? } else { 0 };
    Ok(RemainingQuota::new(limits, this_hour, templates).take())
}

/// The number of the account's templates, up to its limit.
fn count_templates(
    connection: &Connection,
    account: AccountId,
    limits: AccountLimits,
) -> Result<i64, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM template INDEXED BY template_in_bucket \
         WHERE account_id = ?1 AND unique_key IS NOT NULL LIMIT ?2)",
    )?;
    let values = [key(account.get()), i64::from(limits.templates)];
    Ok(query.query_row(values, |row| row.get(0))?)
}
