//! Counters for the optional limits of an account. Creates and edits are counted only for accounts
//! that have limits, so that other accounts do not pay for the counters.

use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{
    Limit, StoreError, TemplateChange,
    decisions::limits::{self, RateCounter, RemainingQuota, last_hour},
    engine::{Tx, values},
    stored_row::{Row, StoredRow as _},
};

/// Counts one more (`$1` account, `$2` template, `$3` number of its event, `$4` time).
pub(crate) const COUNT: &str =
    "INSERT INTO rate_counter (account_id, template_id, seq, at) VALUES ($1, $2, $3, $4)";

/// Deletes entries that no limit needs any more: all but the newest `$3`.
pub(crate) const FORGET: &str = "DELETE FROM rate_counter WHERE account_id = $1 AND \
     template_id = $2 AND seq <= (SELECT seq FROM rate_counter WHERE account_id = $1 AND \
     template_id = $2 ORDER BY seq DESC LIMIT 1 OFFSET $3)";

/// The limit that prevents an edit of an APPROVED template, if any.
pub(crate) async fn reached_by_edit(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    at: Timestamp,
) -> Result<Option<Limit>, StoreError> {
    let counter = RateCounter::of_edits(change);
    let statement = "SELECT at FROM rate_counter WHERE account_id = $1 AND template_id = $2 \
                     ORDER BY seq DESC LIMIT $3";
    let values = values![change.account, counter.template_key(), counter.max_entries()];
    let edits = tx.query(statement, &values, |row| row.value("at")).await?;
    Ok(limits::reached_by_edit(&edits, at))
}

/// Counts an edit of an APPROVED template, under the number of its event, which is the newest one.
pub(crate) fn count_edit(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    at: Timestamp,
) -> Result<(), StoreError> {
    count(tx, RateCounter::of_edits(change), at)
}

/// Counts a create, under the number of its event, which is the newest one.
pub(crate) async fn count_create(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let counter = RateCounter::of_creates(account);
    let seq = tx.account(account)?.newest_event();
    // The next create of the same transaction reads it.
    tx.execute(COUNT, &values![account, counter.template_key(), seq, at]).await?;
    tx.defer(FORGET, &values![account, counter.template_key(), counter.max_entries()])
}

/// How many templates a locked account may still create, if it has limits.
pub(crate) async fn remaining_quota(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<Option<RemainingQuota>, StoreError> {
    let Some(limits) = tx.account(account)?.limits else { return Ok(None) };
    let (counter, (since, max_creates)) = (RateCounter::of_creates(account), last_hour(at));
    let statement = format!(
        "SELECT (SELECT count(*) FROM (SELECT at FROM rate_counter WHERE account_id = $1 AND \
         template_id = $2 ORDER BY seq DESC LIMIT $3) AS newest WHERE at > $4) AS this_hour, \
         (SELECT count(*) FROM (SELECT 1 FROM template{} WHERE account_id = $1 AND \
         unique_key IS NOT NULL LIMIT $5) AS existing) AS templates",
        tx.dialect().either(" INDEXED BY template_in_bucket", "")
    );
    let values = values![account, counter.template_key(), max_creates, since, limits.templates];
    let counts = |row: &Row<'_>| Ok((row.value("this_hour")?, row.value("templates")?));
    let found = tx.query_one(&statement, &values, counts).await?;
    Ok(found.map(|(this_hour, templates)| RemainingQuota::new(limits, this_hour, templates)))
}

fn count(tx: &mut Tx<'_>, counter: RateCounter, at: Timestamp) -> Result<(), StoreError> {
    let (account, template) = (counter.account, counter.template_key());
    let seq = tx.account(account)?.newest_event();
    tx.defer(COUNT, &values![account, template, seq, at])?;
    tx.defer(FORGET, &values![account, template, counter.max_entries()])
}

/// Deletes the edit counter of a deleted template.
pub(crate) fn delete_edit_counts(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM rate_counter WHERE account_id = $1 AND template_id = $2";
    tx.defer(delete, &values![change.account, change.id])
}
