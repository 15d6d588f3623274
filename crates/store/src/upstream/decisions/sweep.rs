//! The progress of a sweep, and what its end means.

use galley_domain::upstream::{
    SweepProgress, SweepVerdict,
    sweep::{self, PageCounts, SWEEPS_UNTIL_GONE},
};

use crate::{
    MirroredTemplate, PageRecord, StoreError, Sweep, SweepPosition, SweepReport,
    UpstreamConnection, stored_row::Row, stored_row::StoredRow as _,
};

/// The rows whose absence a read has to confirm, as an SQL condition.
pub(crate) const MISSING: &str = "gone_at IS NULL AND missing >= 2";

/// The rows that the last sweep which has reached the last page did not see, as an SQL condition; `$1`
/// is the account. Neither generated templates, which come and go, nor missing ones, which are read, are
/// among them.
pub(crate) const UNSEEN: &str = "account_id = $1 AND gone_at IS NULL AND missing < 2 AND \
     coalesce(source, '') <> 'AUTO_GENERATED' AND sweep < (SELECT u.complete_sweep \
     FROM upstream u WHERE u.account_id = $1)";

/// Counts the rows that a read saw during the sweep `$1` of the account `$2`, which began at `$3`, as
/// seen by the sweep.
pub(crate) const SEEN_BY_READS: &str = "UPDATE upstream_template SET sweep = $1 WHERE \
     account_id = $2 AND sweep <> $1 AND observed_at >= $3";

/// What [`SweptCounts`] reads at the end of the sweep `$2` of the account `$1`.
pub(crate) fn count_swept() -> String {
    let (present, own) = (MirroredTemplate::PRESENT, MirroredTemplate::OWN);
    // SQLite numbers the values in the order in which the text names them.
    let known = format!("account_id = $1 AND {present} AND NOT ({MISSING}) AND {own}");
    format!(
        "SELECT count(*) FILTER (WHERE {known}) AS known, \
         count(*) FILTER (WHERE {known} AND sweep <> $2) AS missing \
         FROM upstream_template WHERE account_id = $1"
    )
}

/// Deletes the generated templates that the sweep `$2` of the account `$1` did not see. Nothing in the
/// account depends on them, so that their absence needs no proof.
pub(crate) const FORGET_GENERATED: &str = "DELETE FROM upstream_template WHERE account_id = $1 AND \
     sweep <> $2 AND source = 'AUTO_GENERATED' AND template_id IS NULL";

/// Counts the templates that the sweep `$2` of the account `$1` did not see as missing once more.
pub(crate) const COUNT_MISSING: &str = "UPDATE upstream_template SET missing = missing + 1 WHERE \
     account_id = $1 AND sweep <> $2 AND gone_at IS NULL";

const _: () = assert!(SWEEPS_UNTIL_GONE == 2, "as in the SQL");

/// The templates of the mirror at the end of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SweptCounts {
    /// Those that the mirror shows as present, without generated ones.
    pub(crate) known: u32,
    /// Those of them that neither the sweep nor a read during it saw.
    pub(crate) missing: u32,
}

impl SweptCounts {
    /// Reads a row of [`count_swept`].
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let count = |column| row.decoded(column, |count: i64| u32::try_from(count).ok());
        Ok(Self { known: count("known")?, missing: count("missing")? })
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

    /// The sweep after one of its pages. `counts` are those of the page's templates, `changed` is the
    /// number of those that were new or changed.
    #[must_use]
    pub(crate) fn after_page(self, page: &PageRecord, counts: PageCounts, changed: u64) -> Self {
        let counts = PageCounts { unreadable: page.unreadable, total: page.total, ..counts };
        Self {
            position: page.after.clone().map_or(SweepPosition::End, SweepPosition::After),
            progress: self.progress.after_page(counts),
            changed: self.changed.saturating_add(changed),
            ..self
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
#[expect(clippy::struct_excessive_bools, reason = "each is a write of its own")]
pub(crate) struct FinishedSweep {
    pub(crate) report: SweepReport,
    /// Whether the templates that it did not see are missing once more.
    pub(crate) counts_missing: bool,
    /// Whether the connection becomes suspicious by it.
    pub(crate) is_newly_suspicious: bool,
    /// Whether it read all templates with components.
    pub(crate) has_read_all: bool,
    /// Whether it reached the last page, so that generated templates that it did not see are removed.
    pub(crate) is_complete: bool,
}

impl FinishedSweep {
    /// Whether the sweep counts.
    pub(crate) fn is_counted(&self) -> bool {
        self.report.verdict == SweepVerdict::Counted
    }

    pub(crate) fn new(connection: &UpstreamConnection, sweep: &Sweep, counts: SweptCounts) -> Self {
        let SweptCounts { known, missing } = counts;
        let is_complete = sweep.position == SweepPosition::End;
        let failed = sweep.progress.failed || !is_complete;
        let progress = SweepProgress { failed, ..sweep.progress };
        let verdict = sweep::verdict(known, missing, progress);
        let was_suspicious = connection.suspicious_at.is_some();
        let is_suspicious = verdict == SweepVerdict::Suspicious;
        let is_counted = verdict == SweepVerdict::Counted;
        let report = SweepReport {
            verdict,
            seen: progress.seen,
            generated: progress.generated,
            changed: sweep.changed,
            missing,
            suspicious: was_suspicious || is_suspicious,
        };
        Self {
            report,
            counts_missing: is_counted && !was_suspicious,
            is_newly_suspicious: is_suspicious && !was_suspicious,
            has_read_all: is_counted && sweep.full,
            is_complete,
        }
    }
}
