//! SQL for sweeps.

use galley_domain::{id::AccountId, template::lifecycle::EventType, upstream::sweep::PageCounts};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{
    leased,
    observations::{self, record, write_change},
};
use crate::{
    EndedApproval, Fence, Fenced, MAX_WITHDRAWN, PageRecord, PageResult, StoreError, SweepReport,
    decisions::upstream::{
        COUNT_MISSING, FORGET_GENERATED, FinishedSweep, LocalChange, OWN_APPROVALS, RecordedPage,
        SEEN_BY_READS, SUSPICIOUS, Source, SweptCounts, UNSENT, count_swept,
    },
    sqlite::{
        columns::{key, millis, number, template_id},
        events, templates,
        writer::Batch,
    },
};

pub(super) fn begin(
    connection: &Connection,
    fence: Fence,
    full: bool,
    at: Timestamp,
) -> Result<Fenced<u64>, StoreError> {
    let mut update = connection.prepare_cached(
        "UPDATE upstream SET sweep = sweep + 1, sweep_began_at = ?3, sweep_full = ?4, \
         sweep_cursor = NULL, sweep_seen = 0, sweep_changed = 0, sweep_total = NULL, \
         sweep_restarted = FALSE, sweep_generated = 0, sweep_idle = 0, sweep_wanted = FALSE WHERE account_id = ?1 AND fence = ?2 AND \
         leased_until IS NOT NULL RETURNING sweep",
    )?;
    let values = params![key(fence.account.get()), key(fence.number), millis(at), full];
    let mut rows = update.query(values)?;
    let number = rows.next()?.map(|row| number(row, "sweep")).transpose()?;
    Ok(number.map_or(Fenced::LeaseLost, Fenced::Done))
}

pub(super) fn record_page(
    batch: &mut Batch,
    fence: Fence,
    page: &PageRecord,
    at: Timestamp,
) -> Result<Fenced<PageResult>, StoreError> {
    let account = fence.account;
    let sweep = leased(batch.connection(), fence)?.and_then(|connection| connection.sweep);
    let Some(sweep) = sweep.map(|sweep| sweep.of_page(page)) else {
        return Ok(Fenced::LeaseLost);
    };
    let deleting = observations::deleting(batch.connection(), account)?;
    let (mut result, mut counts) = (PageResult::default(), PageCounts::default());
    for remote in &page.templates {
        let source = Source::Page(sweep.number);
        let times = (page.seen_at, at);
        let mut recorded = record(batch, account, remote, source, &deleting, times)?;
        counts.add(recorded.is_new_to_sweep, recorded.observed.row.is_generated());
        result.changed += u64::from(recorded.observed.is_changed);
        result.imported += u64::from(recorded.is_imported);
        result.to_read.extend(recorded.observed.to_read());
        result.ended.extend(recorded.observed.ended());
    }
    let next = RecordedPage::after(&sweep, page, counts, result.changed);
    result.progress = next.progress;
    batch
        .connection()
        .prepare_cached(
            "UPDATE upstream SET sweep_cursor = ?2, sweep_seen = ?3, sweep_changed = ?4, \
             sweep_total = ?5, sweep_restarted = ?6, template_limit = coalesce(?7, template_limit), \
             sweep = ?8, sweep_generated = ?9, sweep_idle = ?10 WHERE account_id = ?1",
        )?
        .execute(params![
            key(account.get()),
            next.position.stored(),
            next.progress.seen,
            key(next.changed),
            next.progress.total,
            next.progress.restarted,
            page.limit,
            key(sweep.number),
            next.progress.generated,
            next.progress.idle,
        ])?;
    Ok(Fenced::Done(result))
}

pub(super) fn finish(
    batch: &mut Batch,
    fence: Fence,
    at: Timestamp,
) -> Result<Fenced<SweepReport>, StoreError> {
    let connected = leased(batch.connection(), fence)?;
    let Some((connected, sweep)) =
        connected.and_then(|it| it.sweep.clone().map(|sweep| (it, sweep)))
    else {
        return Ok(Fenced::LeaseLost);
    };
    let connection = batch.connection();
    let own = key(fence.account.get());
    let (number, began_at) = (key(sweep.number), millis(sweep.began_at));
    connection.prepare_cached(SEEN_BY_READS)?.execute([number, own, began_at])?;
    let counts = {
        let mut query = connection.prepare_cached(&count_swept())?;
        let mut rows = query.query([own, number])?;
        rows.next()?.map(SweptCounts::read).transpose()?.unwrap_or_default()
    };
    let finished = FinishedSweep::new(&connected, &sweep, counts);
    if finished.is_complete {
        connection.prepare_cached(FORGET_GENERATED)?.execute([own, number])?;
    }
    if finished.counts_missing {
        connection.prepare_cached(COUNT_MISSING)?.execute([own, number])?;
    }
    connection
        .prepare_cached(
            "UPDATE upstream SET sweep_began_at = NULL, sweep_cursor = NULL, sweep_ended_at = ?2, \
             swept_at = iif(?3, ?2, swept_at), read_all_at = iif(?4, ?2, read_all_at), \
             suspicious_at = iif(?5, ?2, suspicious_at), \
             complete_sweep = iif(?6, sweep, complete_sweep) WHERE account_id = ?1",
        )?
        .execute(params![
            own,
            millis(at),
            finished.is_counted(),
            finished.has_read_all,
            finished.is_newly_suspicious,
            finished.is_complete,
        ])?;
    if finished.is_newly_suspicious {
        let event = (EventType::UpstreamDegraded, SUSPICIOUS);
        events::append_upstream(batch, &connected, event, at)?;
    }
    Ok(Fenced::Done(finished.report))
}

pub(super) fn withdraw_approvals(
    batch: &mut Batch,
    fence: Fence,
    at: Timestamp,
) -> Result<Fenced<Vec<EndedApproval>>, StoreError> {
    let account = fence.account;
    let Some(connected) = leased(batch.connection(), fence)? else { return Ok(Fenced::LeaseLost) };
    if !connected.has_seen_all() {
        return Ok(Fenced::Done(Vec::new()));
    }
    let mut ids = Vec::new();
    {
        let mut query = batch.connection().prepare_cached(&format!(
            "SELECT id FROM template WHERE account_id = $1 AND {OWN_APPROVALS} AND {UNSENT} \
             ORDER BY id LIMIT {MAX_WITHDRAWN}"
        ))?;
        let mut rows = query.query([key(account.get())])?;
        while let Some(row) = rows.next()? {
            ids.push(template_id(row, 0)?);
        }
    }
    let mut ended = Vec::new();
    for id in &ids {
        if let Some(local) = templates::one(batch.connection(), account, *id)?
            && let Some(change) = LocalChange::withdrawn(account, &local, at)
        {
            write_change(batch, &change)?;
            ended.extend(change.ended);
        }
    }
    Ok(Fenced::Done(ended))
}

pub(super) fn has_own_approvals(
    connection: &Connection,
    account: AccountId,
) -> Result<bool, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT 1 FROM template WHERE account_id = $1 AND {OWN_APPROVALS} LIMIT 1"
    ))?;
    Ok(query.exists([key(account.get())])?)
}
