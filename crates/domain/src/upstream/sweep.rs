//! A sweep: the walk over all pages of the list of templates, and what it proves.

/// In so many counted sweeps a template is missing before a read of the template decides that it is
/// gone.
pub const SWEEPS_UNTIL_GONE: u32 = 2;

/// The number of templates to ask for in a page. It halves after the second failure in a row, and
/// doubles after three pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    limit: u32,
    /// Pages since the last failure or change of the size.
    good: u32,
    /// Failures in a row.
    failures: u32,
}

impl PageSize {
    /// The largest page.
    pub const MAX: u32 = 100;

    /// Pages until the size doubles.
    const GOOD_PAGES: u32 = 3;

    /// Failures in a row until the size halves. A single failure is rarely about the size.
    const FAILURES: u32 = 2;

    /// The number.
    pub fn get(self) -> u32 {
        self.limit
    }

    /// After a page.
    #[must_use]
    pub fn after_page(self) -> Self {
        let good = self.good + 1;
        if good < Self::GOOD_PAGES || self.limit >= Self::MAX {
            return Self { good: good.min(Self::GOOD_PAGES), failures: 0, ..self };
        }
        Self { limit: (2 * self.limit).min(Self::MAX), good: 0, failures: 0 }
    }

    /// After a page that was too large for the provider, or whose outcome is unknown.
    #[must_use]
    pub fn after_failure(self) -> Self {
        let failures = self.failures + 1;
        if failures < Self::FAILURES {
            return Self { good: 0, failures, ..self };
        }
        Self { limit: (self.limit / 2).max(1), good: 0, failures: 0 }
    }
}

impl Default for PageSize {
    fn default() -> Self {
        Self { limit: Self::MAX, good: 0, failures: 0 }
    }
}

/// What a sweep has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepProgress {
    /// Templates on its pages, each counted once, readable or not.
    pub seen: u32,
    /// Whether a cursor expired, so that it started again.
    pub restarted: bool,
    /// Whether a page did not answer.
    pub failed: bool,
    /// The number of templates that the provider counts, if it does.
    pub total: Option<u32>,
}

impl SweepProgress {
    /// After a page with this many templates that were not seen before.
    #[must_use]
    pub fn after_page(self, new: u32, total: Option<u32>) -> Self {
        Self { seen: self.seen.saturating_add(new), total: total.or(self.total), ..self }
    }

    /// Whether it walked over every page without a break and saw as many templates as the provider
    /// counts.
    pub fn is_complete(self) -> bool {
        self.is_unbroken() && self.total.is_none_or(|total| total == self.seen)
    }

    fn is_unbroken(self) -> bool {
        !self.restarted && !self.failed
    }
}

/// What the end of a sweep means for the templates that it did not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepVerdict {
    /// They are missing in one more counted sweep.
    Counted,
    /// Nothing: the sweep was not complete.
    Incomplete,
    /// Nothing, and a person should look: so many templates do not disappear by themselves.
    Suspicious,
}

/// What a sweep means. `known` is the number of templates that the mirror shows as present, and
/// `missing` those of them that the sweep did not see.
pub fn verdict(known: u32, missing: u32, progress: SweepProgress) -> SweepVerdict {
    if !progress.is_unbroken() {
        return SweepVerdict::Incomplete;
    }
    let is_empty = progress.seen == 0 && known > 0;
    let is_truncated = missing > 0 && progress.total.is_some_and(|total| total > progress.seen);
    if missing > (known / 5).max(5) || is_empty || is_truncated {
        SweepVerdict::Suspicious
    } else if progress.is_complete() {
        SweepVerdict::Counted
    } else {
        SweepVerdict::Incomplete
    }
}
