//! How many bytes the templates of an account take, and whether one more version fits.

use crate::{
    DEFAULT_STORED_BYTES, Limit, Quota, StoreError, VERSION_OVERHEAD_BYTES, encoding::quota,
    stored_row::StoredRow,
};

/// The columns that [`StoredBytes::read`] reads.
macro_rules! stored_bytes_columns {
    () => {
        "template_bytes, stored_bytes_limit"
    };
}
pub(crate) use stored_bytes_columns;

/// What the log says when a count finds that an account uses more than its limit.
pub(crate) const EXCESS: &str = "the templates of the account take more bytes than its limit: \
     creates and edits are refused until templates are deleted and their events expire, or `galley \
     account limit ACCOUNT --stored-bytes` sets another limit";

/// The quota bytes of one stored version.
pub(crate) fn version_bytes(content: &str) -> i64 {
    i64::try_from(content.len() as u64 + VERSION_OVERHEAD_BYTES).unwrap_or(i64::MAX)
}

/// What an account stores, with the changes of the current transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBytes {
    /// The total. It can be negative while the bytes are counted again.
    total: i64,
    /// What the transaction adds to the stored total.
    change: i64,
    /// `None` without a limit.
    max: Option<u64>,
}

impl StoredBytes {
    fn new(total: i64, quota: Quota) -> Self {
        Self { total, change: 0, max: quota.max(DEFAULT_STORED_BYTES) }
    }

    /// Decodes the row of an account.
    pub(crate) fn read(row: &impl StoredRow) -> Result<Self, StoreError> {
        let max = row.optional("stored_bytes_limit", |max: i64| u64::try_from(max).ok())?;
        Ok(Self::new(row.value("template_bytes")?, quota(max)))
    }

    /// The limit that prevents a change by this many bytes, if any. A change that frees bytes is
    /// never refused.
    pub(crate) fn refusal(&self, change: i64) -> Option<Limit> {
        let max = self.max?;
        let used = u64::try_from(self.total).unwrap_or(0);
        let exceeds = used.saturating_add_signed(change) > max;
        (change > 0 && exceeds).then_some(Limit::StoredBytes { used, max })
    }

    /// The use and the limit, if the account uses more than its limit.
    pub(crate) fn excess(&self) -> Option<(u64, u64)> {
        let (used, max) = (u64::try_from(self.total).unwrap_or(0), self.max?);
        (used > max).then_some((used, max))
    }

    /// Takes the limit of a row that was read later.
    pub(crate) fn set_max_of(&mut self, later: &Self) {
        self.max = later.max;
    }

    /// Counts a change.
    pub(crate) fn add(&mut self, change: i64) {
        self.total += change;
        self.change += change;
    }

    /// What the transaction adds to the stored total.
    pub(crate) fn change(&self) -> i64 {
        self.change
    }
}

/// Maximum number of deleted templates whose rows one transaction deletes.
pub(crate) const MAX_PURGE_TEMPLATES: i64 = 200;

/// Maximum number of versions that one transaction deletes.
const MAX_PURGE_VERSIONS: u64 = 1_000;

/// Maximum number of quota bytes that one transaction deletes: few enough that no write waits long.
const MAX_PURGE_BYTES: i64 = 8 << 20;

/// A deleted template whose last event has expired.
pub(crate) struct DeletedTemplate {
    /// The number of that event.
    seq: u64,
    id: i64,
    /// How many former versions it has.
    former: u64,
    /// The quota bytes of all its versions.
    bytes: i64,
}

impl DeletedTemplate {
    /// The template in a row.
    pub(crate) fn read(row: &impl StoredRow) -> Result<Self, StoreError> {
        Ok(Self {
            seq: row.number("seq")?,
            id: row.value("id")?,
            former: row.number("former")?,
            bytes: row.value("bytes")?,
        })
    }
}

/// What a step of retention deletes: events, and the rows of templates that no event is about any
/// more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PurgePlan {
    /// The last of the events.
    pub(crate) last: u64,
    /// The ids of the templates.
    pub(crate) templates: Vec<i64>,
    /// Their quota bytes.
    pub(crate) bytes: i64,
    /// The id of a template that is too large for one transaction: only its oldest former versions
    /// are deleted, and the next steps continue with it.
    pub(crate) partial: Option<i64>,
}

impl PurgePlan {
    /// Plans the deletion of the expired events up to `last`; `deleted` are the first
    /// [`MAX_PURGE_TEMPLATES`] of the templates whose deletion is among them. The last event moves
    /// back to the last template for which there is room.
    pub(crate) fn new(last: u64, deleted: &[DeletedTemplate]) -> Self {
        let mut plan = Self { last, templates: Vec::new(), bytes: 0, partial: None };
        let mut versions = 0;
        for template in deleted {
            versions += template.former + 1;
            let has_room =
                versions <= MAX_PURGE_VERSIONS && plan.bytes + template.bytes <= MAX_PURGE_BYTES;
            let is_first = plan.templates.is_empty();
            if !has_room && (!is_first || template.former > 0) {
                plan.last = template.seq - 1;
                plan.partial = is_first.then_some(template.id);
                return plan;
            }
            plan.templates.push(template.id);
            plan.bytes += template.bytes;
        }
        // There may be more of them.
        if let Some(newest) = deleted.last()
            && i64::try_from(deleted.len()).is_ok_and(|read| read >= MAX_PURGE_TEMPLATES)
        {
            plan.last = newest.seq;
        }
        plan
    }
}

/// The oldest former versions of a template, as many as one transaction deletes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OldestVersions {
    /// The number of the last of them.
    pub(crate) last: i64,
    /// Their quota bytes.
    pub(crate) bytes: i64,
}

impl OldestVersions {
    /// How many versions to read.
    pub(crate) const MAX: i64 = MAX_PURGE_VERSIONS.cast_signed();

    /// Chooses among versions with their quota bytes, oldest first. `None` if there are none.
    pub(crate) fn choose(versions: &[(i64, i64)]) -> Option<Self> {
        let (&(last, bytes), others) = versions.split_first()?;
        let mut chosen = Self { last, bytes };
        for &(version, bytes) in others {
            if chosen.bytes + bytes > MAX_PURGE_BYTES {
                break;
            }
            chosen = Self { last: version, bytes: chosen.bytes + bytes };
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(seq: u64, former: u64) -> DeletedTemplate {
        DeletedTemplate { seq, id: 100 + i64::try_from(seq).unwrap(), former, bytes: 10 }
    }

    #[test]
    fn a_purge_ends_at_the_last_template_that_it_has_room_for() {
        let plan =
            |last, templates: Vec<i64>, bytes| PurgePlan { last, templates, bytes, partial: None };
        assert_eq!(PurgePlan::new(9, &[]), plan(9, vec![], 0));
        let few = [deleted(3, 0), deleted(5, 7)];
        assert_eq!(PurgePlan::new(9, &few), plan(9, vec![103, 105], 20));
        let many = [deleted(3, 600), deleted(5, 600)];
        assert_eq!(PurgePlan::new(9, &many), plan(4, vec![103], 10));
        let large = |seq| DeletedTemplate { bytes: MAX_PURGE_BYTES / 2 + 1, ..deleted(seq, 0) };
        let purge = PurgePlan::new(9, &[large(3), large(5)]);
        assert_eq!(purge, plan(4, vec![103], MAX_PURGE_BYTES / 2 + 1));
        let most: Vec<_> = (1..=200).map(|seq| deleted(seq, 0)).collect();
        assert_eq!(PurgePlan::new(999, &most).last, 200);
    }

    #[test]
    fn a_template_that_is_too_large_for_a_purge_loses_its_oldest_versions_first() {
        let large = DeletedTemplate { bytes: MAX_PURGE_BYTES + 1, ..deleted(3, 1) };
        for template in [large, deleted(3, 1_000)] {
            let expected = PurgePlan { last: 2, templates: vec![], bytes: 0, partial: Some(103) };
            assert_eq!(PurgePlan::new(9, &[template, deleted(5, 0)]), expected);
        }
        // A single version cannot be divided.
        let single = DeletedTemplate { bytes: MAX_PURGE_BYTES + 1, ..deleted(3, 0) };
        assert_eq!(PurgePlan::new(9, &[single]).templates, [103]);

        let choose = |bytes: &[i64]| {
            let versions: Vec<_> = (1..).zip(bytes.iter().copied()).collect();
            OldestVersions::choose(&versions).map(|it| (it.last, it.bytes))
        };
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[1, 2, 3]), Some((3, 6)));
        assert_eq!(choose(&[MAX_PURGE_BYTES + 1, 1]), Some((1, MAX_PURGE_BYTES + 1)));
        assert_eq!(choose(&[MAX_PURGE_BYTES - 1, 1, 1]), Some((2, MAX_PURGE_BYTES)));
    }

    #[test]
    fn a_version_fits_up_to_the_last_byte() {
        let mut stored = StoredBytes::new(900, Quota::Max(1_000));
        assert_eq!(stored.refusal(100), None);
        assert_eq!(stored.refusal(101), Some(Limit::StoredBytes { used: 900, max: 1_000 }));
        stored.add(60);
        assert_eq!(stored.refusal(41), Some(Limit::StoredBytes { used: 960, max: 1_000 }));
        stored.add(-10);
        assert_eq!((stored.refusal(50), stored.change()), (None, 50));
    }

    #[test]
    fn what_frees_bytes_is_never_refused() {
        let stored = StoredBytes::new(5_000, Quota::Max(1_000));
        assert_eq!((stored.refusal(-1), stored.refusal(0)), (None, None));
        assert!(stored.refusal(1).is_some());
    }

    #[test]
    fn an_account_exceeds_its_limit_with_one_byte_more() {
        let excess = |total, quota| StoredBytes::new(total, quota).excess();
        assert_eq!(excess(1_000, Quota::Max(1_000)), None);
        assert_eq!(excess(1_001, Quota::Max(1_000)), Some((1_001, 1_000)));
        assert_eq!(excess(i64::MAX, Quota::Unlimited), None);
        assert_eq!(excess(-5, Quota::Default), None);
    }

    #[test]
    fn an_account_without_a_quota_of_its_own_has_the_default() {
        let default = i64::try_from(DEFAULT_STORED_BYTES).unwrap();
        assert!(StoredBytes::new(default, Quota::Default).refusal(1).is_some());
        assert_eq!(StoredBytes::new(default, Quota::Unlimited).refusal(i64::MAX / 2), None);
        assert_eq!(StoredBytes::new(-5, Quota::Default).refusal(default), None);
    }

    #[test]
    fn a_version_counts_its_content_and_its_row() {
        assert_eq!(version_bytes("ä"), 2 + 512);
    }
}
