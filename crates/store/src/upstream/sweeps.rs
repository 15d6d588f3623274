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
    observations::{ObservationTimes, record, write_change},
};
use crate::{
    EndedApproval, Fence, Fenced, MirroredTemplate, PageRecord, PageResult, Store, StoreError,
    StoreFuture, Sweep, SweepPosition, SweepReport, UpstreamConnection,
    engine::{ReadPath, Tx, values},
    events::append_upstream,
    stored_row::{Row, StoredRow as _},
    templates,
};

/// How many approvals one write withdraws.
pub const MAX_WITHDRAWN: usize = 200;

impl Store {
    /// Begins a sweep, which replaces one that runs; returns its number.
    pub fn begin_sweep(
        &self,
        fence: Fence,
        full: bool,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<u64>> {
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
    }

    /// Records a page of the sweep that runs: its templates and the progress of the sweep. Templates
    /// that the account does not have are created from their documents. What changes in the account
    /// changes at `at`, which is later than the page was seen if its samples were fetched meanwhile.
    pub fn record_page(
        &self,
        fence: Fence,
        page: PageRecord,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<PageResult>> {
        self.write("record_page", (fence, page, at), |&(fence, ref page, at), tx| {
            Box::pin(async move {
                let connected = leased_with_account(tx, fence).await?;
                let Some(mut sweep) = connected.and_then(|connection| connection.sweep) else {
                    return Ok(Fenced::LeaseLost);
                };
                if page.restarted {
                    // The walk begins again, under a number of its own, so that the templates of its
                    // pages are new once more.
                    sweep.number += 1;
                    sweep.progress = SweepProgress { restarted: true, ..Default::default() };
                }
                let source = Source::Page(sweep.number);
                let times = ObservationTimes { seen_at: page.seen_at, at };
                let (mut result, counts) =
                    record(tx, fence.account, &page.templates, source, times).await?;
                let counts =
                    PageCounts { unreadable: page.unreadable, total: page.total, ..counts };
                result.progress = sweep.progress.after_page(counts);
                let update = "UPDATE upstream SET sweep_cursor = $2, sweep_seen = $3, \
                              sweep_changed = $4, sweep_total = $5, sweep_restarted = $6, \
                              template_limit = coalesce($7, template_limit), sweep = $8, \
                              sweep_generated = $9, sweep_idle = $10 WHERE account_id = $1";
                let values = values![
                    fence.account,
                    // An empty cursor is the end.
                    page.after.as_deref().unwrap_or_default(),
                    result.progress.seen,
                    sweep.changed.saturating_add(result.changed),
                    result.progress.total,
                    result.progress.restarted,
                    page.limit,
                    sweep.number,
                    result.progress.generated,
                    result.progress.idle,
                ];
                tx.defer(update, &values)?;
                Ok(Fenced::Done(result))
            })
        })
    }

    /// Ends the sweep that runs. If it counts, what it did not see is missing once more.
    pub fn finish_sweep(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<SweepReport>> {
        self.write("finish_sweep", (fence, at), |&(fence, at), tx| Box::pin(finish(tx, fence, at)))
    }

    /// Withdraws the approval of templates that neither the mirror nor an operation knows, at most
    /// [`MAX_WITHDRAWN`] at a time; returns them. They were approved before the account was
    /// connected, and the provider does not have them. Withdraws nothing before a sweep has counted, or
    /// while the connection is suspicious.
    pub fn withdraw_approvals(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Vec<EndedApproval>>> {
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
    }

    /// Whether the account has approved templates that the mirror does not know: a first sweep may end
    /// their approval.
    pub fn has_own_approvals(&self, account: AccountId) -> StoreFuture<'_, bool> {
        let statement =
            format!("SELECT 1 FROM template WHERE account_id = $1 AND {OWN_APPROVALS} LIMIT 1");
        let (method, path) = ("has_own_approvals", ReadPath::Background);
        self.exists(method, path, statement, values![account])
    }
}

/// The rows whose absence a read has to confirm, as an SQL condition.
pub(super) const MISSING: &str = "gone_at IS NULL AND missing >= 2";

/// The rows that the last sweep which has reached the last page did not see, as an SQL condition; `$1`
/// is the account. Neither generated templates, which come and go, nor missing ones, which are read, are
/// among them.
pub(super) const UNSEEN: &str = "account_id = $1 AND gone_at IS NULL AND missing < 2 AND \
     coalesce(source, '') <> 'AUTO_GENERATED' AND sweep < (SELECT u.complete_sweep \
     FROM upstream u WHERE u.account_id = $1)";

const _: () = assert!(SWEEPS_UNTIL_GONE == 2, "as in the SQL");

async fn finish(
    tx: &mut Tx<'_>,
    fence: Fence,
    at: Timestamp,
) -> Result<Fenced<SweepReport>, StoreError> {
    let account = fence.account;
    let Some(connected) = leased_with_account(tx, fence).await? else {
        return Ok(Fenced::LeaseLost);
    };
    let Some(sweep) = &connected.sweep else { return Ok(Fenced::LeaseLost) };
    // What a read saw meanwhile counts as seen by the sweep.
    let seen = "UPDATE upstream_template SET sweep = $1 WHERE account_id = $2 AND sweep <> $1 AND \
                observed_at >= $3";
    tx.execute(seen, &values![sweep.number, account, sweep.began_at]).await?;
    let swept = values![account, sweep.number];
    let counts = tx.query_one(&SweptCounts::select(), &swept, SweptCounts::read).await?;
    let finished = FinishedSweep::new(&connected, sweep, counts.unwrap_or_default());
    if finished.is_complete {
        // Nothing in the account depends on them, so that their absence needs no proof.
        let forget = "DELETE FROM upstream_template WHERE account_id = $1 AND sweep <> $2 AND \
                      source = 'AUTO_GENERATED' AND template_id IS NULL";
        tx.execute(forget, &swept).await?;
    }
    if finished.counts_missing {
        let count = "UPDATE upstream_template SET missing = missing + 1 WHERE account_id = $1 AND \
                     sweep <> $2 AND gone_at IS NULL";
        tx.execute(count, &swept).await?;
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
        finished.report.verdict == SweepVerdict::Counted,
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

/// The templates of the mirror at the end of a sweep.
#[derive(Clone, Copy, Default)]
struct SweptCounts {
    /// Those that the mirror shows as present, without generated ones.
    known: u32,
    /// Those of them that neither the sweep nor a read during it saw.
    missing: u32,
}

impl SweptCounts {
    /// Counts at the end of the sweep `$2` of the account `$1`.
    fn select() -> String {
        let (present, own) = (MirroredTemplate::PRESENT, MirroredTemplate::OWN);
        // SQLite numbers the values in the order in which the text names them.
        let known = format!("account_id = $1 AND {present} AND NOT ({MISSING}) AND {own}");
        format!(
            "SELECT count(*) FILTER (WHERE {known}) AS known, \
             count(*) FILTER (WHERE {known} AND sweep <> $2) AS missing \
             FROM upstream_template WHERE account_id = $1"
        )
    }

    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let count = |column| row.decoded(column, |count: i64| u32::try_from(count).ok());
        Ok(Self { known: count("known")?, missing: count("missing")? })
    }
}

/// What the end of a sweep changes.
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
    fn new(connection: &UpstreamConnection, sweep: &Sweep, counts: SweptCounts) -> Self {
        let SweptCounts { known, missing } = counts;
        let is_complete = sweep.position == SweepPosition::End;
        let failed = sweep.progress.failed || !is_complete;
        let progress = SweepProgress { failed, ..sweep.progress };
        let verdict = sweep::verdict(known, missing, progress);
        let is_suspicious = verdict == SweepVerdict::Suspicious;
        let is_counted = verdict == SweepVerdict::Counted;
        let report = SweepReport {
            verdict,
            seen: progress.seen,
            generated: progress.generated,
            changed: sweep.changed,
            missing,
            suspicious: connection.is_frozen() || is_suspicious,
        };
        Self {
            report,
            counts_missing: is_counted && !connection.is_frozen(),
            is_newly_suspicious: is_suspicious && !connection.is_frozen(),
            has_read_all: is_counted && sweep.full,
            is_complete,
        }
    }
}
