//! SQL for the optional limits of an account. Creates and edits are counted only for accounts that
//! have limits, so that other accounts do not pay for the counters.

use std::fmt::Debug;

use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::{Connection, Row, RowIndex, params};

use super::{
    columns::{key, millis, optional},
    writer::Batch,
};
use crate::{
    AccountLimits, Limit, StoreError, TemplateChange,
    decisions::{
        self,
        limits::{RateCounter, RemainingQuota, last_hour},
    },
};

/// Reads the limits of an account from its row.
pub(super) fn column(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<Option<AccountLimits>, StoreError> {
    optional(row, name, |limit: i64| Some(AccountLimits { templates: u32::try_from(limit).ok()? }))
}

/// Sets the limits of an account.
pub(super) fn set(
    batch: &mut Batch,
    account: AccountId,
    limits: Option<AccountLimits>,
) -> Result<(), StoreError> {
    batch.connection().execute(
        "UPDATE account SET template_limit = ?2 WHERE id = ?1",
        params![key(account.get()), limits.map(|limits| limits.templates)],
    )?;
    batch.limits_changed(account, limits);
    Ok(())
}

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

/// Counts a create, after its event was appended.
pub(super) fn count_create(
    batch: &mut Batch,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    add(batch, RateCounter::of_creates(account), at)
}

/// The limit that prevents an edit of an APPROVED template, if any.
pub(super) fn reached_by_edit(
    connection: &Connection,
    change: &TemplateChange,
    at: Timestamp,
) -> Result<Option<Limit>, StoreError> {
    let counter = RateCounter::of_edits(change);
    let mut query = connection.prepare_cached(
        "SELECT at FROM rate_counter WHERE account_id = ?1 AND template_id = ?2 \
         ORDER BY seq DESC LIMIT ?3",
    )?;
    let values = [key(change.account.get()), counter.template_key(), counter.max_entries()];
    let edits: Vec<i64> = query.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(decisions::limits::reached_by_edit(&edits, at))
}

/// Counts an edit of an APPROVED template, after its event was appended.
pub(super) fn count_edit(
    batch: &mut Batch,
    change: &TemplateChange,
    at: Timestamp,
) -> Result<(), StoreError> {
    add(batch, RateCounter::of_edits(change), at)
}

/// Deletes the edit counter of a deleted template.
pub(super) fn delete_edit_counts(batch: &Batch, change: &TemplateChange) -> Result<(), StoreError> {
    batch
        .connection()
        .prepare_cached("DELETE FROM rate_counter WHERE account_id = ?1 AND template_id = ?2")?
        .execute([key(change.account.get()), key(change.id.get())])?;
    Ok(())
}

/// Counts one more, with the sequence number of the account's newest event, and deletes entries
/// that no limit needs any more.
fn add(batch: &mut Batch, counter: RateCounter, at: Timestamp) -> Result<(), StoreError> {
    let seq = key(batch.newest_seq(counter.account)?);
    let (account, template) = (key(counter.account.get()), counter.template_key());
    let connection = batch.connection();
    let mut insert =
        connection.prepare_cached("INSERT INTO rate_counter VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute([account, template, seq, millis(at)])?;
    let mut delete = connection.prepare_cached(
        "DELETE FROM rate_counter WHERE account_id = ?1 AND template_id = ?2 AND seq <= \
         (SELECT seq FROM rate_counter WHERE account_id = ?1 AND template_id = ?2 \
         ORDER BY seq DESC LIMIT 1 OFFSET ?3)",
    )?;
    delete.execute([account, template, counter.max_entries()])?;
    Ok(())
}
