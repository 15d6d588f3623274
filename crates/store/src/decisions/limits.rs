//! Which limit of an account prevents a create or an edit.

use galley_domain::id::{AccountId, TemplateId};
use jiff::{SignedDuration, Timestamp};

use crate::{
    AccountLimits, Limit, MAX_CREATES_PER_HOUR, TemplateChange,
    encoding::{key, millis},
};

/// How often an account with limits may edit an APPROVED template within 24 hours.
pub const MAX_EDITS_PER_DAY: usize = 1;

/// How often an account with limits may edit an APPROVED template within 30 days.
pub const MAX_EDITS_PER_MONTH: usize = 10;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Counts the creates of an account, or the edits of one of its APPROVED templates.
#[derive(Clone, Copy)]
pub(crate) struct RateCounter {
    pub(crate) account: AccountId,
    /// `None` for creates.
    template: Option<TemplateId>,
    max: usize,
}

impl RateCounter {
    pub(crate) fn of_creates(account: AccountId) -> Self {
        Self { account, template: None, max: MAX_CREATES_PER_HOUR }
    }

    pub(crate) fn of_edits(change: &TemplateChange) -> Self {
        Self { account: change.account, template: Some(change.id), max: MAX_EDITS_PER_MONTH }
    }

    /// The template as it is stored: creates are counted under 0, which is no template's id.
    pub(crate) fn template_key(&self) -> i64 {
        self.template.map_or(0, |id| key(id.get()))
    }

    /// How many of the newest entries matter; older ones can be deleted.
    pub(crate) fn max_entries(&self) -> i64 {
        sql_count(self.max)
    }
}

/// The start of the hour before `at`, as it is stored, and how many creates an hour may contain.
pub(crate) fn last_hour(at: Timestamp) -> (i64, i64) {
    (start_of(HOUR, at), sql_count(MAX_CREATES_PER_HOUR))
}

/// A count as an SQL parameter.
fn sql_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn start_of(window: SignedDuration, end: Timestamp) -> i64 {
    millis(end.saturating_sub(window).unwrap_or(Timestamp::MIN))
}

/// The limit that prevents an edit of an APPROVED template, from the times of its last edits,
/// newest first. The monthly limit is checked first: waiting a day does not help once it is
/// reached.
pub(crate) fn reached_by_edit(newest_edits: &[i64], at: Timestamp) -> Option<Limit> {
    let reaches = |max: usize, window| {
        let since = start_of(window, at);
        newest_edits.iter().take(max).filter(|edited_at| **edited_at > since).count() >= max
    };
    if reaches(MAX_EDITS_PER_MONTH, MONTH) {
        return Some(Limit::EditsPerMonth);
    }
    reaches(MAX_EDITS_PER_DAY, DAY).then_some(Limit::EditsPerDay)
}

/// How many templates an account may still create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemainingQuota {
    this_hour: i64,
    templates: i64,
}

impl RemainingQuota {
    /// The quota of an account with `templates` templates, `this_hour` of them created in the last
    /// hour.
    pub(crate) fn new(limits: AccountLimits, this_hour: i64, templates: i64) -> Self {
        Self {
            this_hour: sql_count(MAX_CREATES_PER_HOUR) - this_hour,
            templates: i64::from(limits.templates) - templates,
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

    fn hours(hours: i64) -> i64 {
        hours * HOUR_MILLIS
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millisecond(hours * HOUR_MILLIS).unwrap()
    }

    #[test]
    fn both_limits_reached_reports_the_one_that_frees_up_sooner() {
        let limits = AccountLimits { templates: 250 };
        assert_eq!(RemainingQuota::new(limits, 100, 250).take(), Some(Limit::CreationsPerHour));
        assert_eq!(RemainingQuota::new(limits, 99, 250).take(), Some(Limit::Templates));
    }

    #[test]
    fn each_create_of_a_batch_uses_up_the_quota() {
        let mut quota = RemainingQuota::new(AccountLimits { templates: 250 }, 0, 248);
        let taken: Vec<_> = (0..3).map(|_| quota.take()).collect();
        assert_eq!(taken, [None, None, Some(Limit::Templates)]);
    }

    #[test]
    fn an_edit_is_allowed_again_exactly_a_day_after_the_last_one() {
        let edits = [hours(100), hours(50)];
        let just_before = at(124).saturating_sub(SignedDuration::from_millis(1)).unwrap();
        assert_eq!(reached_by_edit(&edits, just_before), Some(Limit::EditsPerDay));
        assert_eq!(reached_by_edit(&edits, at(124)), None);
        assert_eq!(reached_by_edit(&[], at(124)), None);
    }

    #[test]
    fn the_monthly_limit_is_reported_before_the_daily_one() {
        let edits: Vec<i64> = (0..10).map(|index| hours(1_000 - index)).collect();
        assert_eq!(reached_by_edit(&edits, at(1_001)), Some(Limit::EditsPerMonth));
        let (first, month) = (991, 30 * 24);
        assert_eq!(reached_by_edit(&edits, at(first + month - 1)), Some(Limit::EditsPerMonth));
        assert_eq!(
            reached_by_edit(&edits, at(first + month)),
            None,
            "the oldest edit has aged out"
        );
        assert_eq!(reached_by_edit(&edits[..9], at(1_001)), Some(Limit::EditsPerDay));
    }
}
