//! Counters for the optional limits of an account. Creates and edits are counted only for accounts
//! that have limits, so that other accounts do not pay for the counters.

use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{
    Limit, StoreError, TemplateChange,
    decisions::limits::{self, RateCounter},
    engine::{Tx, values},
    stored_row::StoredRow as _,
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
pub(crate) fn count_create(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    count(tx, RateCounter::of_creates(account), at)
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
