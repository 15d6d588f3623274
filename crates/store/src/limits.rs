//! The optional limits of an account: which of them prevents a create or an edit, and the counters. Creates
//! and edits are counted only for accounts that have limits, so that other accounts do not pay for the
//! counters.

use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};

use crate::{
    AccountLimits, Limit, MAX_CREATES_PER_HOUR, StoreError, TemplateChange,
    encoding::millis,
    engine::{Tx, values},
    stored_row::StoredRow,
};

/// How often an account with limits may edit an APPROVED template within 24 hours.
pub const MAX_EDITS_PER_DAY: usize = 1;

/// How often an account with limits may edit an APPROVED template within 30 days.
pub const MAX_EDITS_PER_MONTH: usize = 10;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Counts the creates of an account, as an entry with the id of a template counts its edits. It is no
/// template's id.
pub(crate) const CREATES: i64 = 0;

/// Counts one more (`$1` account, `$2` template or [`CREATES`], `$3` number of its event, `$4` time).
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
    let statement = "SELECT at FROM rate_counter WHERE account_id = $1 AND template_id = $2 \
                     ORDER BY seq DESC LIMIT $3";
    let values = values![change.account, change.id, sql_count(MAX_EDITS_PER_MONTH)];
    let edits: Vec<i64> = tx.query(statement, &values, |row| row.value("at")).await?;
    Ok(reached_edits(&edits, at))
}

/// Counts an edit of an APPROVED template, under the number of its event, which is the newest one.
pub(crate) fn count_edit(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    at: Timestamp,
) -> Result<(), StoreError> {
    let TemplateChange { account, id, .. } = *change;
    let seq = tx.account(account)?.newest_event();
    tx.defer(COUNT, &values![account, id, seq, at])?;
    tx.defer(FORGET, &values![account, id, sql_count(MAX_EDITS_PER_MONTH)])
}

/// Counts a create, under the number of its event, which is the newest one.
pub(crate) async fn count_create(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let seq = tx.account(account)?.newest_event();
    // The next create of the same transaction reads it.
    tx.execute(COUNT, &values![account, CREATES, seq, at]).await?;
    tx.defer(FORGET, &values![account, CREATES, sql_count(MAX_CREATES_PER_HOUR)])
}

/// How many templates a locked account may still create, if it has limits.
pub(crate) async fn remaining_quota(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<Option<RemainingQuota>, StoreError> {
    let Some(limits) = tx.account(account)?.limits else { return Ok(None) };
    let (since, max_creates) = last_hour(at);
    let statement = format!(
        "SELECT (SELECT count(*) FROM (SELECT at FROM rate_counter WHERE account_id = $1 AND \
         template_id = $2 ORDER BY seq DESC LIMIT $3) AS newest WHERE at > $4) AS this_hour, \
         (SELECT count(*) FROM (SELECT 1 FROM template{} WHERE account_id = $1 AND \
         unique_key IS NOT NULL LIMIT $5) AS existing) AS templates",
        tx.dialect().either(" INDEXED BY template_in_bucket", "")
    );
    let values = values![account, CREATES, max_creates, since, limits.templates];
    let found = tx.query_one(&statement, &values, |row| TemplateCounts::read(row)).await?;
    Ok(found.map(|counts| RemainingQuota::new(limits, counts)))
}

/// The start of the hour before `at`, as it is stored, and how many creates an hour may contain.
pub(crate) fn last_hour(at: Timestamp) -> (i64, i64) {
    (start_of(HOUR, at), sql_count(MAX_CREATES_PER_HOUR))
}

/// A count as an SQL parameter.
pub(crate) fn sql_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn start_of(window: SignedDuration, end: Timestamp) -> i64 {
    millis(end.saturating_sub(window).unwrap_or(Timestamp::MIN))
}

/// The limit that prevents an edit of an APPROVED template, from the times of its last edits,
/// newest first. The monthly limit is checked first: waiting a day does not help once it is
/// reached.
fn reached_edits(newest_edits: &[i64], at: Timestamp) -> Option<Limit> {
    let reaches = |max: usize, window| {
        let since = start_of(window, at);
        newest_edits.iter().take(max).filter(|edited_at| **edited_at > since).count() >= max
    };
    if reaches(MAX_EDITS_PER_MONTH, MONTH) {
        return Some(Limit::EditsPerMonth);
    }
    reaches(MAX_EDITS_PER_DAY, DAY).then_some(Limit::EditsPerDay)
}

/// How many templates an account has.
#[derive(Clone, Copy)]
pub(crate) struct TemplateCounts {
    /// Those that it created in the last hour.
    this_hour: i64,
    templates: i64,
}

impl TemplateCounts {
    pub(crate) fn read(row: &impl StoredRow) -> Result<Self, StoreError> {
        Ok(Self { this_hour: row.value("this_hour")?, templates: row.value("templates")? })
    }
}

/// How many templates an account may still create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemainingQuota {
    this_hour: i64,
    templates: i64,
}

impl RemainingQuota {
    pub(crate) fn new(limits: AccountLimits, counts: TemplateCounts) -> Self {
        Self {
            this_hour: sql_count(MAX_CREATES_PER_HOUR) - counts.this_hour,
            templates: i64::from(limits.templates) - counts.templates,
        }
    }

    /// The limit that prevents a create. The hourly limit is checked first, because it frees up
    /// sooner.
    pub(crate) fn reached(&self) -> Option<Limit> {
        if self.this_hour <= 0 {
            return Some(Limit::CreationsPerHour);
        }
        (self.templates <= 0).then_some(Limit::Templates)
    }

    /// Uses up one create, or returns the limit that prevents it.
    pub(crate) fn take(&mut self) -> Option<Limit> {
        let reached = self.reached();
        if reached.is_none() {
            self.this_hour -= 1;
            self.templates -= 1;
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MILLIS: i64 = 3_600_000;

    fn quota(counts: TemplateCounts) -> RemainingQuota {
        RemainingQuota::new(AccountLimits { templates: 250 }, counts)
    }

    fn hours(hours: i64) -> i64 {
        hours * HOUR_MILLIS
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millisecond(hours * HOUR_MILLIS).unwrap()
    }

    #[test]
    fn both_limits_reached_reports_the_one_that_frees_up_sooner() {
        let taken = |this_hour| quota(TemplateCounts { this_hour, templates: 250 }).take();
        assert_eq!(taken(100), Some(Limit::CreationsPerHour));
        assert_eq!(taken(99), Some(Limit::Templates));
    }

    #[test]
    fn each_create_of_a_batch_uses_up_the_quota() {
        let mut quota = quota(TemplateCounts { this_hour: 0, templates: 248 });
        let taken: Vec<_> = (0..3).map(|_| quota.take()).collect();
        assert_eq!(taken, [None, None, Some(Limit::Templates)]);
    }

    #[test]
    fn an_edit_is_allowed_again_exactly_a_day_after_the_last_one() {
        let edits = [hours(100), hours(50)];
        let just_before = at(124).saturating_sub(SignedDuration::from_millis(1)).unwrap();
        assert_eq!(reached_edits(&edits, just_before), Some(Limit::EditsPerDay));
        assert_eq!(reached_edits(&edits, at(124)), None);
        assert_eq!(reached_edits(&[], at(124)), None);
    }

    #[test]
    fn the_monthly_limit_is_reported_before_the_daily_one() {
        let edits: Vec<i64> = (0..10).map(|index| hours(1_000 - index)).collect();
        assert_eq!(reached_edits(&edits, at(1_001)), Some(Limit::EditsPerMonth));
        let (first, month) = (991, 30 * 24);
        assert_eq!(reached_edits(&edits, at(first + month - 1)), Some(Limit::EditsPerMonth));
        assert_eq!(reached_edits(&edits, at(first + month)), None, "the oldest edit has aged out");
        assert_eq!(reached_edits(&edits[..9], at(1_001)), Some(Limit::EditsPerDay));
    }
}
