//! The progress of a sweep, and what its end means.

use galley_domain::upstream::{
    SweepProgress, SweepVerdict,
    sweep::{self, SWEEPS_UNTIL_GONE},
};

use crate::{PageRecord, Sweep, SweepPosition, SweepReport, UpstreamConnection};

/// The rows whose absence a read has to confirm, as an SQL condition.
pub(crate) const MISSING: &str = "gone_at IS NULL AND missing >= 2";

/// The rows that the last sweep which has ended did not see, as an SQL condition; `$1` is the account.
pub(crate) const UNSEEN: &str = "account_id = $1 AND gone_at IS NULL AND sweep < (SELECT u.sweep - \
     CASE WHEN u.sweep_began_at IS NULL THEN 0 ELSE 1 END FROM upstream u WHERE u.account_id = $1)";

const _: () = assert!(SWEEPS_UNTIL_GONE == 2, "as in the SQL");

/// The sweep that runs after one more page.
pub(crate) struct RecordedPage {
    pub(crate) position: SweepPosition,
    pub(crate) progress: SweepProgress,
    pub(crate) changed: u64,
}

impl RecordedPage {
    /// `new` is the number of its templates that the sweep had not seen before, `changed` of those
    /// that were new or changed.
    pub(crate) fn after(sweep: &Sweep, page: &PageRecord, new: u32, changed: u64) -> Self {
        let progress = sweep.progress.after_page(new.saturating_add(page.unreadable), page.total);
        Self {
            position: page.after.clone().map_or(SweepPosition::End, SweepPosition::After),
            progress: SweepProgress { restarted: progress.restarted || page.restarted, ..progress },
            changed: sweep.changed.saturating_add(changed),
        }
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
pub(crate) struct FinishedSweep {
    pub(crate) report: SweepReport,
    /// Whether the templates that it did not see are missing once more.
    pub(crate) counts_missing: bool,
    /// Whether the connection becomes suspicious by it.
    pub(crate) is_newly_suspicious: bool,
    /// Whether it read all templates with components.
    pub(crate) has_read_all: bool,
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
        let progress =
            SweepProgress { failed: sweep.progress.failed || !is_walked, ..sweep.progress };
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
        }
    }
}
