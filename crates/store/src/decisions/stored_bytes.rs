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

#[cfg(test)]
mod tests {
    use super::*;

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
