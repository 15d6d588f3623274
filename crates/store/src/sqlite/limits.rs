//! SQL for the optional limits of an account. Creates and edits are counted only for accounts that
//! have limits, so that other accounts do not pay for the counters.

use std::fmt::Debug;

use galley_domain::id::{AccountId, TemplateId};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Row, RowIndex, params};

use super::{
    columns::{key, millis, optional},
    writer::Batch,
};
use crate::{
    AccountLimits, Limit, MAX_CREATES_PER_HOUR, MAX_EDITS_PER_DAY, MAX_EDITS_PER_MONTH, StoreError,
    TemplateChange,
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Reads the limits of an account from its row.
pub(super) fn column(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<Option<AccountLimits>, StoreError> {
    optional(row, name, |limit: i64| Some(AccountLimits { templates: u32::try_from(limit).ok()? }))
}

pub(super) fn set(
    batch: &mut Batch<'_>,
    account: AccountId,
    limits: Option<AccountLimits>,
) -> Result<bool, StoreError> {
    let changed = batch.connection().execute(
        "UPDATE account SET template_limit = ?2 WHERE id = ?1",
        params![key(account.get()), limits.map(|limits| limits.templates)],
    )?;
    batch.limits_changed(account, limits);
    batch.credentials_changed();
    Ok(changed > 0)
}

/// The limit that prevents a create, if any. The hourly limit is checked first: it is cheap, and an
/// account that has reached it does not need its templates counted.
pub(super) fn reached_by_create(
    connection: &Connection,
    account: AccountId,
    limits: AccountLimits,
    at: Timestamp,
) -> Result<Option<Limit>, StoreError> {
    let counter = RateCounter { account, template: None };
    if counter.reaches(connection, MAX_CREATES_PER_HOUR, at, HOUR)? {
        return Ok(Some(Limit::CreationsPerHour));
    }
    let mut query = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM template INDEXED BY template_on_shelf \
         WHERE account_id = ?1 AND claim IS NOT NULL LIMIT ?2)",
    )?;
    let values = [key(account.get()), i64::from(limits.templates)];
    let templates: i64 = query.query_row(values, |row| row.get(0))?;
    Ok((templates >= i64::from(limits.templates)).then_some(Limit::Templates))
}

/// Counts a create, after its event was appended.
pub(super) fn count_create(
    batch: &mut Batch<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    RateCounter { account, template: None }.add(batch, MAX_CREATES_PER_HOUR, at)
}

/// The limit that prevents an edit of an APPROVED template, if any. The monthly limit is checked
/// first: if it is reached, waiting a day does not help.
pub(super) fn reached_by_edit(
    connection: &Connection,
    change: &TemplateChange,
) -> Result<Option<Limit>, StoreError> {
    let counter = RateCounter { account: change.account, template: Some(change.id) };
    if counter.reaches(connection, MAX_EDITS_PER_MONTH, change.at, MONTH)? {
        return Ok(Some(Limit::EditsPerMonth));
    }
    let day = counter.reaches(connection, MAX_EDITS_PER_DAY, change.at, DAY)?;
    Ok(day.then_some(Limit::EditsPerDay))
}

/// Counts an edit of an APPROVED template, after its event was appended.
pub(super) fn count_edit(batch: &mut Batch<'_>, change: &TemplateChange) -> Result<(), StoreError> {
    let counter = RateCounter { account: change.account, template: Some(change.id) };
    counter.add(batch, MAX_EDITS_PER_MONTH, change.at)
}

/// Deletes the edit counter of a deleted template.
pub(super) fn delete_edit_counter(
    batch: &Batch<'_>,
    change: &TemplateChange,
) -> Result<(), StoreError> {
    batch
        .connection()
        .prepare_cached("DELETE FROM counted WHERE account_id = ?1 AND template_id = ?2")?
        .execute([key(change.account.get()), key(change.id.get())])?;
    Ok(())
}

/// Counts the edits of one template, or the creates of an account.
struct RateCounter {
    account: AccountId,
    template: Option<TemplateId>,
}

impl RateCounter {
    fn template(&self) -> i64 {
        self.template.map_or(0, |id| key(id.get()))
    }

    /// Whether at least `max` events were counted in the `window` before `at`. Reads only the last
    /// `max` of them.
    fn reaches(
        &self,
        connection: &Connection,
        max: usize,
        at: Timestamp,
        window: SignedDuration,
    ) -> Result<bool, StoreError> {
        let since = at.saturating_sub(window).unwrap_or(Timestamp::MIN);
        let mut query = connection.prepare_cached(
            "SELECT count(*) FROM (SELECT at FROM counted WHERE account_id = ?1 AND \
             template_id = ?2 ORDER BY seq DESC LIMIT ?3) WHERE at > ?4",
        )?;
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let values = [key(self.account.get()), self.template(), max, millis(since)];
        let count: i64 = query.query_row(values, |row| row.get(0))?;
        Ok(count >= max)
    }

    /// Counts one more, with the sequence number of the account's newest event, and deletes all but
    /// the last `max`.
    fn add(&self, batch: &mut Batch<'_>, max: usize, at: Timestamp) -> Result<(), StoreError> {
        let seq = key(batch.newest_seq(self.account)?);
        let (account, template) = (key(self.account.get()), self.template());
        let connection = batch.connection();
        connection.prepare_cached("INSERT INTO counted VALUES (?1, ?2, ?3, ?4)")?.execute([
            account,
            template,
            seq,
            millis(at),
        ])?;
        connection
            .prepare_cached(
                "DELETE FROM counted WHERE account_id = ?1 AND template_id = ?2 AND seq <= \
                 (SELECT seq FROM counted WHERE account_id = ?1 AND template_id = ?2 \
                 ORDER BY seq DESC LIMIT 1 OFFSET ?3)",
            )?
            .execute([account, template, i64::try_from(max).unwrap_or(i64::MAX)])?;
        Ok(())
    }
}
