//! Sweeps: passes over the provider's whole list.

use galley_domain::{id::AccountId, template::lifecycle::EventType, upstream::sweep::PageCounts};
use jiff::Timestamp;

use super::decisions::{
    COUNT_MISSING, FORGET_GENERATED, FinishedSweep, LocalChange, OWN_APPROVALS, SEEN_BY_READS,
    SUSPICIOUS, Source, SweptCounts, UNSENT, count_swept,
};
use super::{
    leased_with_account,
    observations::{Recorder, write_change},
};
use crate::{
    EndedApproval, Fence, Fenced, PageRecord, PageResult, Store, StoreError, SweepReport,
    engine::{ReadPath, Tx, values},
    events::append_upstream,
    stored_row::StoredRow as _,
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
    let mut recorder =
        Recorder::new(tx, account, &page.templates, source, page.seen_at, at).await?;
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
