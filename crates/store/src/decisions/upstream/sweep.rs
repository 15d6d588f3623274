//! The progress of a sweep, and what its end means.

use galley_domain::upstream::{
    SweepProgress, SweepVerdict,
    sweep::{self, PageCounts, SWEEPS_UNTIL_GONE},
};

use crate::{PageRecord, Sweep, SweepPosition, SweepReport, UpstreamConnection};

/// The rows whose absence a read has to confirm, as an SQL condition.
pub(crate) const MISSING: &str = "gone_at IS NULL AND missing >= 2";

/// The rows that the last sweep which has walked to the last page did not see, as an SQL condition; `$1`
/// is the account.
pub(crate) const UNSEEN: &str = "account_id = $1 AND gone_at IS NULL AND sweep < \
     (SELECT u.walked_sweep FROM upstream u WHERE u.account_id = $1)";

const _: () = assert!(SWEEPS_UNTIL_GONE == 2, "as in the SQL");

/// The sweep that runs after one more page.
pub(crate) struct RecordedPage {
    pub(crate) position: SweepPosition,
    pub(crate) progress: SweepProgress,
    pub(crate) changed: u64,
}

impl RecordedPage {
    /// `counts` are those of its templates, `changed` is the number of those that were new or changed.
    pub(crate) fn after(
        sweep: &Sweep,
        page: &PageRecord,
        counts: PageCounts,
        changed: u64,
    ) -> Self {
        let counts = PageCounts { unreadable: page.unreadable, total: page.total, ..counts };
        Self {
            position: page.after.clone().map_or(SweepPosition::End, SweepPosition::After),
            progress: sweep.progress.after_page(counts),
            changed: sweep.changed.saturating_add(changed),
        }
    }
}

impl Sweep {
    /// The sweep that a page belongs to. If its cursor had expired, the walk begins again, under a
    /// number of its own, so that the templates of its pages are new once more.
    #[must_use]
    pub(crate) fn of_page(self, page: &PageRecord) -> Self {
        if !page.restarted {
            return self;
        }
        let progress = SweepProgress { restarted: true, ..SweepProgress::default() };
        Self { number: self.number + 1, progress, ..self }
    }
}

impl SweepPosition {
    /// The stored cursor.
    pub(crate) fn stored(&self) -> Option<&str> {
        match self {
            Self::Start => None,
            Self::After(cursor) => Some(cursor),
            Self::End => Some(""),
        }
    }

    /// The position with this stored cursor.
    pub(crate) fn restored(cursor: Option<String>) -> Self {
        match cursor {
            None => Self::Start,
            Some(cursor) if cursor.is_empty() => Self::End,
            Some(cursor) => Self::After(cursor),
        }
    }
}

/// What the end of a sweep changes.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a write of its own")]
pub(crate) struct FinishedSweep {
    pub(crate) report: SweepReport,
    /// Whether the templates that it did not see are missing once more.
    pub(crate) counts_missing: bool,
    /// Whether the connection becomes suspicious by it.
    pub(crate) is_newly_suspicious: bool,
    /// Whether it read all templates with components.
    pub(crate) has_read_all: bool,
    /// Whether it walked to the last page.
    pub(crate) is_walked: bool,
}

impl FinishedSweep {
    /// Whether the sweep counts.
    pub(crate) fn is_counted(&self) -> bool {
        self.report.verdict == SweepVerdict::Counted
    }

    /// `known` is the number of templates that the mirror shows as present, `missing` of those of
    /// them that neither the sweep nor a read during it saw.
    pub(crate) fn new(
        connection: &UpstreamConnection,
        sweep: &Sweep,
        known: u32,
        missing: u32,
    ) -> Self {
        let is_walked = sweep.position == SweepPosition::End;
        let failed = sweep.progress.failed || !is_walked;
        let progress = SweepProgress { failed, ..sweep.progress };
        let verdict = sweep::verdict(known, missing, progress);
        let was_suspicious = connection.suspicious_at.is_some();
        let is_suspicious = verdict == SweepVerdict::Suspicious;
        let is_counted = verdict == SweepVerdict::Counted;
        let report = SweepReport {
            verdict,
            seen: progress.seen,
            changed: sweep.changed,
            missing,
            suspicious: was_suspicious || is_suspicious,
        };
        Self {
            report,
            counts_missing: is_counted && !was_suspicious,
            is_newly_suspicious: is_suspicious && !was_suspicious,
            has_read_all: is_counted && sweep.full,
            is_walked,
        }
    }
}
