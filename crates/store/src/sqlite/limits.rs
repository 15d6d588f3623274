//! Limits that accounts may be held to, as SQL. What they count is written down only for accounts
//! that are held to them: nobody else's writes pay for it.

use std::fmt::Debug;

use galley_domain::id::{AccountId, TemplateId};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Row, RowIndex, params};

use super::{
    columns::{key, maybe, millis},
    writer::Batch,
};
use crate::{
    AccountLimits, Limit, MAX_CREATES_PER_HOUR, MAX_EDITS_PER_DAY, MAX_EDITS_PER_MONTH, StoreError,
    TemplateChange,
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Reads the column of an account that says whether it is held to limits.
pub(super) fn column(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<Option<AccountLimits>, StoreError> {
    maybe(row, name, |most: i64| Some(AccountLimits { templates: u32::try_from(most).ok()? }))
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

/// The limit that keeps an account from making a template. The hour comes first: it is soon looked
/// at, and an account that has used it up has its templates counted no more.
pub(super) fn of_creations(
    connection: &Connection,
    account: AccountId,
    limits: AccountLimits,
    at: Timestamp,
) -> Result<Option<Limit>, StoreError> {
    let what = Counted { account, template: None };
    if what.reaches(connection, MAX_CREATES_PER_HOUR, at, HOUR)? {
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

/// Counts a template that was made; its event is there already.
pub(super) fn count_creation(
    batch: &mut Batch<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    Counted { account, template: None }.add(batch, MAX_CREATES_PER_HOUR, at)
}

/// The limit that keeps an APPROVED template from being edited. The month comes first: waiting for
/// a day is of no use then.
pub(super) fn of_edits(
    connection: &Connection,
    change: &TemplateChange,
) -> Result<Option<Limit>, StoreError> {
    let what = Counted { account: change.account, template: Some(change.id) };
    if what.reaches(connection, MAX_EDITS_PER_MONTH, change.at, MONTH)? {
        return Ok(Some(Limit::EditsPerMonth));
    }
    let day = what.reaches(connection, MAX_EDITS_PER_DAY, change.at, DAY)?;
    Ok(day.then_some(Limit::EditsPerDay))
}

/// Counts an edit of an APPROVED template; its event is there already.
pub(super) fn count_edit(batch: &mut Batch<'_>, change: &TemplateChange) -> Result<(), StoreError> {
    let what = Counted { account: change.account, template: Some(change.id) };
    what.add(batch, MAX_EDITS_PER_MONTH, change.at)
}

/// Nobody asks for the edits of a template that is gone.
pub(super) fn forget_edits(batch: &Batch<'_>, change: &TemplateChange) -> Result<(), StoreError> {
    batch
        .connection()
        .prepare_cached("DELETE FROM counted WHERE account_id = ?1 AND template_id = ?2")?
        .execute([key(change.account.get()), key(change.id.get())])?;
    Ok(())
}

/// What is counted: the edits of a template, or creations.
struct Counted {
    account: AccountId,
    template: Option<TemplateId>,
}

impl Counted {
    fn template(&self) -> i64 {
        self.template.map_or(0, |id| key(id.get()))
    }

    /// Whether it has happened so often in the time before `at`. Only the last ones can tell.
    fn reaches(
        &self,
        connection: &Connection,
        most: usize,
        at: Timestamp,
        time: SignedDuration,
    ) -> Result<bool, StoreError> {
        let since = at.saturating_sub(time).unwrap_or(Timestamp::MIN);
        let mut query = connection.prepare_cached(
            "SELECT count(*) FROM (SELECT at FROM counted WHERE account_id = ?1 AND \
             template_id = ?2 ORDER BY seq DESC LIMIT ?3) WHERE at > ?4",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let values = [key(self.account.get()), self.template(), most, millis(since)];
        let count: i64 = query.query_row(values, |row| row.get(0))?;
        Ok(count >= most)
    }

    /// Counts one more, under the number of the account's newest event; what no limit asks for any
    /// more is forgotten.
    fn add(&self, batch: &mut Batch<'_>, most: usize, at: Timestamp) -> Result<(), StoreError> {
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
            .execute([account, template, i64::try_from(most).unwrap_or(i64::MAX)])?;
        Ok(())
    }
}
