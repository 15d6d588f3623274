//! Sweeps: passes over the provider's whole list.

use galley_domain::{
    id::AccountId,
    template::lifecycle::EventType,
    upstream::{
        SweepProgress, SweepVerdict,
        sweep::{self, PageCounts, SWEEPS_UNTIL_GONE},
    },
};
use jiff::Timestamp;

use super::decisions::{LocalChange, OWN_APPROVALS, Source, UNSENT};
use super::{
    connections::SUSPICIOUS,
    leased_with_account,
    observations::{ObservationTimes, Recorder, write_change},
};
use crate::{
    EndedApproval, Fence, Fenced, MirroredTemplate, PageRecord, PageResult, Store, StoreError,
    Sweep, SweepPosition, SweepReport, UpstreamConnection,
    engine::{ReadPath, Tx, values},
    events::append_upstream,
    stored_row::{Row, StoredRow as _},
    templates,
};

/// How many approvals one write withdraws.
pub const MAX_WITHDRAWN: usize = 200;

impl Store {
    /// Begins a sweep, which replaces one that runs; returns its number.
    pub async fn begin_sweep(
        &self,
        fence: Fence,
        full: bool,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError> {
        self.write("begin_sweep", (fence, full, at), |&(fence, full, at), tx| {
            Box::pin(async move {
                let update = "UPDATE upstream SET sweep = sweep + 1, sweep_began_at = $3, \
                              sweep_full = $4, sweep_cursor = NULL, sweep_seen = 0, \
                              sweep_changed = 0, sweep_total = NULL, sweep_restarted = false, \
                              sweep_generated = 0, sweep_idle = 0, sweep_wanted = false \
                              WHERE account_id = $1 AND fence = $2 AND \
                              leased_until IS NOT NULL RETURNING sweep";
                let values = values![fence.account, fence.number, at, full];
                let number = tx.query_one(update, &values, |row| row.number("sweep")).await?;
                Ok(number.map_or(Fenced::LeaseLost, Fenced::Done))
            })
        })
        .await
    }

    /// Records a page of the sweep that runs: its templates and the progress of the sweep. Templates
    /// that the account does not have are created from their documents. What changes in the account
    /// changes at `at`, which is later than the page was seen if its samples were fetched meanwhile.
    pub async fn record_page(
        &self,
        fence: Fence,
        page: PageRecord,
        at: Timestamp,
    ) -> Result<Fenced<PageResult>, StoreError> {
        self.write("record_page", (fence, page, at), |(fence, page, at), tx| {
            Box::pin(record(tx, *fence, page, *at))
        })
        .await
    }

    /// Ends the sweep that runs. If it counts, what it did not see is missing once more.
    pub async fn finish_sweep(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<SweepReport>, StoreError> {
        self.write("finish_sweep", (fence, at), |&(fence, at), tx| Box::pin(finish(tx, fence, at)))
            .await
    }

    /// Withdraws the approval of templates that neither the mirror nor an operation knows, at most
    /// [`MAX_WITHDRAWN`] at a time; returns them. They were approved before the account was
    /// connected, and the provider does not have them. Withdraws nothing before a sweep has counted, or
    /// while the connection is suspicious.
    pub async fn withdraw_approvals(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<Vec<EndedApproval>>, StoreError> {
        self.write("withdraw_approvals", (fence, at), |&(fence, at), tx| {
            Box::pin(async move {
                let account = fence.account;
                let Some(connected) = leased_with_account(tx, fence).await? else {
                    return Ok(Fenced::LeaseLost);
                };
                if !connected.has_seen_all() {
                    return Ok(Fenced::Done(Vec::new()));
                }
                let statement = format!(
                    "SELECT id FROM template WHERE account_id = $1 AND {OWN_APPROVALS} AND \
                     {UNSENT} ORDER BY id LIMIT {MAX_WITHDRAWN}"
                );
                let mut ended = Vec::new();
                for id in
                    tx.query(&statement, &values![account], |row| row.template_id("id")).await?
                {
                    if let Some(local) = templates::one(tx, account, id).await?
                        && let Some(change) = LocalChange::withdrawn(account, &local, at)
                    {
                        write_change(tx, &change).await?;
                        ended.extend(change.ended);
                    }
                }
                Ok(Fenced::Done(ended))
            })
        })
        .await
    }

    /// Whether the account has approved templates that the mirror does not know: a first sweep may end
    /// their approval.
    pub async fn has_own_approvals(&self, account: AccountId) -> Result<bool, StoreError> {
        let statement =
            format!("SELECT 1 FROM template WHERE account_id = $1 AND {OWN_APPROVALS} LIMIT 1");
        let (method, path) = ("has_own_approvals", ReadPath::Background);
        self.exists(method, path, statement, values![account]).await
    }
}

async fn record(
    tx: &mut Tx<'_>,
    fence: Fence,
    page: &PageRecord,
    at: Timestamp,
) -> Result<Fenced<PageResult>, StoreError> {
    let account = fence.account;
    let connected = leased_with_account(tx, fence).await?;
    let sweep = connected.and_then(|connection| connection.sweep);
    let Some(sweep) = sweep.map(|sweep| sweep.of_page(page)) else {
        return Ok(Fenced::LeaseLost);
    };
    let source = Source::Page(sweep.number);
    let times = ObservationTimes { seen_at: page.seen_at, at };
    let mut recorder = Recorder::new(tx, account, &page.templates, source, times).await?;
    let (mut result, mut counts) = (PageResult::default(), PageCounts::default());
    for remote in &page.templates {
        let mut item = recorder.record(tx, remote).await?;
        counts.add(item.is_new_to_sweep, item.observed.row.is_generated());
        result.changed += u64::from(item.observed.is_changed);
        result.imported += u64::from(item.is_imported);
        result.to_read.extend(item.observed.to_read());
        result.ended.extend(item.observed.ended());
    }
    let next = sweep.after_page(page, counts, result.changed);
    result.progress = next.progress;
    let update = "UPDATE upstream SET sweep_cursor = $2, sweep_seen = $3, sweep_changed = $4, \
                  sweep_total = $5, sweep_restarted = $6, \
                  template_limit = coalesce($7, template_limit), sweep = $8, \
                  sweep_generated = $9, sweep_idle = $10 WHERE account_id = $1";
    let values = values![
        account,
        next.position.stored(),
        next.progress.seen,
        next.changed,
        next.progress.total,
        next.progress.restarted,
        page.limit,
        next.number,
        next.progress.generated,
        next.progress.idle,
    ];
    tx.defer(update, &values)?;
    Ok(Fenced::Done(result))
}

async fn finish(
    tx: &mut Tx<'_>,
    fence: Fence,
    at: Timestamp,
) -> Result<Fenced<SweepReport>, StoreError> {
    let connected = leased_with_account(tx, fence).await?;
    let Some((connected, sweep)) =
        connected.and_then(|it| it.sweep.clone().map(|sweep| (it, sweep)))
    else {
        return Ok(Fenced::LeaseLost);
    };
    let account = fence.account;
    tx.execute(SEEN_BY_READS, &values![sweep.number, account, sweep.began_at]).await?;
    let swept = values![account, sweep.number];
    let counts = tx.query_one(&count_swept(), &swept, SweptCounts::read).await?;
    let finished = FinishedSweep::new(&connected, &sweep, counts.unwrap_or_default());
    if finished.is_complete {
        tx.execute(FORGET_GENERATED, &swept).await?;
    }
    if finished.counts_missing {
        tx.execute(COUNT_MISSING, &swept).await?;
    }
    let update = "UPDATE upstream SET sweep_began_at = NULL, sweep_cursor = NULL, \
                  sweep_ended_at = $2, swept_at = CASE WHEN $3 THEN $2 ELSE swept_at END, \
                  read_all_at = CASE WHEN $4 THEN $2 ELSE read_all_at END, \
                  suspicious_at = CASE WHEN $5 THEN $2 ELSE suspicious_at END, \
                  complete_sweep = CASE WHEN $6 THEN sweep ELSE complete_sweep END \
                  WHERE account_id = $1";
    let values = values![
        account,
        at,
        finished.is_counted(),
        finished.has_read_all,
        finished.is_newly_suspicious,
        finished.is_complete,
    ];
    tx.defer(update, &values)?;
    if finished.is_newly_suspicious {
        append_upstream(tx, &connected, EventType::UpstreamDegraded, SUSPICIOUS, at)?;
    }
    Ok(Fenced::Done(finished.report))
}

/// The rows whose absence a read has to confirm, as an SQL condition.
pub(super) const MISSING: &str = "gone_at IS NULL AND missing >= 2";

/// The rows that the last sweep which has reached the last page did not see, as an SQL condition; `$1`
/// is the account. Neither generated templates, which come and go, nor missing ones, which are read, are
/// among them.
pub(super) const UNSEEN: &str = "account_id = $1 AND gone_at IS NULL AND missing < 2 AND \
     coalesce(source, '') <> 'AUTO_GENERATED' AND sweep < (SELECT u.complete_sweep \
     FROM upstream u WHERE u.account_id = $1)";

/// Counts the rows that a read saw during the sweep `$1` of the account `$2`, which began at `$3`, as
/// seen by the sweep.
const SEEN_BY_READS: &str = "UPDATE upstream_template SET sweep = $1 WHERE \
     account_id = $2 AND sweep <> $1 AND observed_at >= $3";

/// What [`SweptCounts`] reads at the end of the sweep `$2` of the account `$1`.
fn count_swept() -> String {
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
const FORGET_GENERATED: &str = "DELETE FROM upstream_template WHERE account_id = $1 AND \
     sweep <> $2 AND source = 'AUTO_GENERATED' AND template_id IS NULL";

/// Counts the templates that the sweep `$2` of the account `$1` did not see as missing once more.
const COUNT_MISSING: &str = "UPDATE upstream_template SET missing = missing + 1 WHERE \
     account_id = $1 AND sweep <> $2 AND gone_at IS NULL";

const _: () = assert!(SWEEPS_UNTIL_GONE == 2, "as in the SQL");

/// The templates of the mirror at the end of a sweep.
#[derive(Clone, Copy, Debug, Default)]
struct SweptCounts {
    /// Those that the mirror shows as present, without generated ones.
    known: u32,
    /// Those of them that neither the sweep nor a read during it saw.
    missing: u32,
}

impl SweptCounts {
    /// Reads a row of [`count_swept`].
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let count = |column| row.decoded(column, |count: i64| u32::try_from(count).ok());
        Ok(Self { known: count("known")?, missing: count("missing")? })
    }
}

impl Sweep {
    /// The sweep that a page belongs to. If its cursor had expired, the walk begins again, under a
    /// number of its own, so that the templates of its pages are new once more.
    #[must_use]
    fn of_page(self, page: &PageRecord) -> Self {
        if !page.restarted {
            return self;
        }
        let progress = SweepProgress { restarted: true, ..SweepProgress::default() };
        Self { number: self.number + 1, progress, ..self }
    }

    /// The sweep after one of its pages. `counts` are those of the page's templates, `changed` is the
    /// number of those that were new or changed.
    #[must_use]
    fn after_page(self, page: &PageRecord, counts: PageCounts, changed: u64) -> Self {
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
    fn stored(&self) -> Option<&str> {
        match self {
            Self::Start => None,
            Self::After(cursor) => Some(cursor),
            Self::End => Some(""),
        }
    }

    /// The position with this stored cursor.
    pub(super) fn restored(cursor: Option<String>) -> Self {
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
struct FinishedSweep {
    report: SweepReport,
    /// Whether the templates that it did not see are missing once more.
    counts_missing: bool,
    /// Whether the connection becomes suspicious by it.
    is_newly_suspicious: bool,
    /// Whether it read all templates with components.
    has_read_all: bool,
    /// Whether it reached the last page, so that generated templates that it did not see are removed.
    is_complete: bool,
}

impl FinishedSweep {
    /// Whether the sweep counts.
    fn is_counted(&self) -> bool {
        self.report.verdict == SweepVerdict::Counted
    }

    fn new(connection: &UpstreamConnection, sweep: &Sweep, counts: SweptCounts) -> Self {
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
