//! Sweeps, as SQL.

use galley_domain::{template::lifecycle::EventType, upstream::sweep::PageCounts};
use jiff::Timestamp;

use super::{
    leased_with_account,
    observations::{Recorder, write_change},
};
use crate::{
    EndedApproval, Fence, Fenced, MAX_WITHDRAWN, PageRecord, PageResult, StoreError, SweepReport,
    decisions::upstream::{
        COUNT_MISSING, FORGET_GENERATED, FinishedSweep, LocalChange, OWN_APPROVALS, RecordedPage,
        SEEN_BY_READS, SUSPICIOUS, Source, SweptCounts, UNSENT, count_swept,
    },
    postgres::{
        columns::{key, millis, number, template_id},
        events,
        pool::Values,
        templates,
        transaction::Transaction,
    },
};

pub(super) async fn begin(
    transaction: &Transaction,
    fence: Fence,
    full: bool,
    at: Timestamp,
) -> Result<Fenced<u64>, StoreError> {
    let update = "UPDATE upstream SET sweep = sweep + 1, sweep_began_at = $3, sweep_full = $4, \
                  sweep_cursor = NULL, sweep_seen = 0, sweep_changed = 0, sweep_total = NULL, \
                  sweep_restarted = false, sweep_generated = 0, sweep_idle = 0, \
                  sweep_wanted = false WHERE account_id = $1 AND fence = $2 AND leased_until IS NOT NULL RETURNING sweep";
    let values: Values<'_> = &[&key(fence.account.get()), &key(fence.number), &millis(at), &full];
    let row = transaction.query_one(update, values).await?;
    row.map_or(Ok(Fenced::LeaseLost), |row| number(&row, 0).map(Fenced::Done))
}

pub(super) async fn record_page(
    transaction: &mut Transaction,
    fence: Fence,
    page: &PageRecord,
    at: Timestamp,
) -> Result<Fenced<PageResult>, StoreError> {
    let account = fence.account;
    let connected = leased_with_account(transaction, fence).await?;
    let sweep = connected.and_then(|connection| connection.sweep);
    let Some(sweep) = sweep.map(|sweep| sweep.of_page(page)) else {
        return Ok(Fenced::LeaseLost);
    };
    let mut recorder = Recorder::new(transaction, account, &page.templates).await?;
    let (mut result, mut counts) = (PageResult::default(), PageCounts::default());
    let source = Source::Page(sweep.number);
    for remote in &page.templates {
        let mut item = recorder.record(transaction, remote, source, (page.seen_at, at)).await?;
        counts.add(item.is_new_to_sweep, item.observed.row.is_generated());
        result.changed += u64::from(item.observed.is_changed);
        result.imported += u64::from(item.is_imported);
        result.to_read.extend(item.observed.to_read());
        result.ended.extend(item.observed.ended());
    }
    let next = RecordedPage::after(&sweep, page, counts, result.changed);
    result.progress = next.progress;
    let update = "UPDATE upstream SET sweep_cursor = $2, sweep_seen = $3, sweep_changed = $4, \
                  sweep_total = $5, sweep_restarted = $6, \
                  template_limit = coalesce($7, template_limit), sweep = $8, \
                  sweep_generated = $9, sweep_idle = $10 WHERE account_id = $1";
    let values: Values<'_> = &[
        &key(account.get()),
        &next.position.stored(),
        &i64::from(next.progress.seen),
        &key(next.changed),
        &next.progress.total.map(i64::from),
        &next.progress.restarted,
        &page.limit.map(i64::from),
        &key(sweep.number),
        &i64::from(next.progress.generated),
        &i64::from(next.progress.idle),
    ];
    transaction.execute(update, values).await?;
    Ok(Fenced::Done(result))
}

pub(super) async fn finish(
    transaction: &mut Transaction,
    fence: Fence,
    at: Timestamp,
) -> Result<Fenced<SweepReport>, StoreError> {
    let connected = leased_with_account(transaction, fence).await?;
    let Some((connected, sweep)) =
        connected.and_then(|it| it.sweep.clone().map(|sweep| (it, sweep)))
    else {
        return Ok(Fenced::LeaseLost);
    };
    let own = key(fence.account.get());
    let (number, began_at) = (key(sweep.number), millis(sweep.began_at));
    transaction.execute(SEEN_BY_READS, &[&number, &own, &began_at]).await?;
    let values: Values<'_> = &[&own, &number];
    let counts = transaction.query_one(&count_swept(), values).await?;
    let counts = counts.as_ref().map(SweptCounts::read).transpose()?.unwrap_or_default();
    let finished = FinishedSweep::new(&connected, &sweep, counts);
    if finished.is_complete {
        transaction.execute(FORGET_GENERATED, values).await?;
    }
    if finished.counts_missing {
        transaction.execute(COUNT_MISSING, values).await?;
    }
    let update = "UPDATE upstream SET sweep_began_at = NULL, sweep_cursor = NULL, \
                  sweep_ended_at = $2, swept_at = CASE WHEN $3 THEN $2 ELSE swept_at END, \
                  read_all_at = CASE WHEN $4 THEN $2 ELSE read_all_at END, \
                  suspicious_at = CASE WHEN $5 THEN $2 ELSE suspicious_at END, \
                  complete_sweep = CASE WHEN $6 THEN sweep ELSE complete_sweep END \
                  WHERE account_id = $1";
    let values: Values<'_> = &[
        &own,
        &millis(at),
        &finished.is_counted(),
        &finished.has_read_all,
        &finished.is_newly_suspicious,
        &finished.is_complete,
    ];
    transaction.execute(update, values).await?;
    if finished.is_newly_suspicious {
        let event = (EventType::UpstreamDegraded, SUSPICIOUS);
        events::append_upstream(transaction, &connected, event, at);
    }
    Ok(Fenced::Done(finished.report))
}

pub(super) async fn withdraw_approvals(
    transaction: &mut Transaction,
    fence: Fence,
    at: Timestamp,
) -> Result<Fenced<Vec<EndedApproval>>, StoreError> {
    let account = fence.account;
    let Some(connected) = leased_with_account(transaction, fence).await? else {
        return Ok(Fenced::LeaseLost);
    };
    if !connected.has_seen_all() {
        return Ok(Fenced::Done(Vec::new()));
    }
    let statement = format!(
        "SELECT id FROM template WHERE account_id = $1 AND {OWN_APPROVALS} AND {UNSENT} \
         ORDER BY id LIMIT {MAX_WITHDRAWN}"
    );
    let rows = transaction.query(&statement, &[&key(account.get())]).await?;
    let mut ended = Vec::new();
    for row in &rows {
        if let Some(local) = templates::one_in(transaction, account, template_id(row, 0)?).await?
            && let Some(change) = LocalChange::withdrawn(account, &local, at)
        {
            write_change(transaction, &change).await?;
            ended.extend(change.ended);
        }
    }
    Ok(Fenced::Done(ended))
}
