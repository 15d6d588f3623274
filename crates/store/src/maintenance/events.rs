//! Deletes expired events with their deliveries, and the templates whose deletion has expired.

use std::collections::{HashSet, VecDeque};

use galley_domain::{
    id::AccountId, template::lifecycle::EventType, webhook::delivery::DeliveryStatus,
};
use jiff::Timestamp;

use super::purge::{DeletedTemplate, MAX_PURGE_TEMPLATES, OldestVersions, PurgePlan};
use crate::{
    StoreError, VERSION_OVERHEAD_BYTES,
    deliveries::schedule_next,
    engine::{self, Dialect, Engine, Read, ReadPath, Tx, Value, Write, values},
    stored_row::{Row, StoredRow as _},
};

/// Maximum number of rows of each kind that one write deletes: few enough that other writes do not
/// wait long.
const MAX_PURGE_ROWS: u32 = 2_000;

/// The expired events of an account.
#[derive(Clone, Copy)]
struct ExpiredEvents {
    account: AccountId,
    /// Older events have expired.
    since: Timestamp,
    /// Whether to wait for transactions that have locked an endpoint of the account.
    waits: bool,
}

/// Deletes deliveries of deleted endpoints, or else some expired events; returns how many rows. Each
/// account has its own transaction, so that no lock on one is held while waiting for another.
pub(super) async fn delete_expired(
    engine: &dyn Engine,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let former = Read::new(ReadPath::Background, FORMER_ENDPOINT, [], |_| Ok(()));
    if !engine::fetch(engine, former).await?.is_empty() {
        let deletion = Write::new((), |(), tx| Box::pin(delete_orphans(tx)));
        let orphans = engine::run(engine, deletion).await?;
        if orphans > 0 {
            return Ok(orphans);
        }
    }
    let find = "SELECT a.id FROM account a WHERE (SELECT e.at FROM event e WHERE \
                e.account_id = a.id ORDER BY e.seq LIMIT 1) < $1 ORDER BY a.id";
    let find = Read::new(ReadPath::Scan, find, values![since], move |row| {
        Ok(ExpiredEvents { account: row.account_id("id")?, since, waits: false })
    });
    let mut accounts = VecDeque::from(engine::fetch(engine, find).await?);
    while let Some(expired) = accounts.pop_front() {
        match expired.delete(engine).await? {
            Some(count @ 1..) => return Ok(count),
            // When nothing else is left to do, waits for the accounts with locked endpoints.
            None if !expired.waits => accounts.push_back(ExpiredEvents { waits: true, ..expired }),
            Some(0) | None => {}
        }
    }
    Ok(0)
}

/// A deleted endpoint whose deliveries are not deleted yet.
const FORMER_ENDPOINT: &str = "SELECT id FROM former_webhook LIMIT 1";

/// Deletes some deliveries of a deleted endpoint.
async fn delete_orphans(tx: &mut Tx<'_>) -> Result<u64, StoreError> {
    let find = tx
        .dialect()
        .either(FORMER_ENDPOINT, "SELECT id FROM former_webhook LIMIT 1 FOR UPDATE SKIP LOCKED");
    let Some(webhook) = tx.query_one(find, &[], |row| row.webhook_id("id")).await? else {
        return Ok(0);
    };
    let delete = "DELETE FROM delivery WHERE webhook_id = $1 AND seq <= (SELECT max(seq) FROM \
                  (SELECT seq FROM delivery WHERE webhook_id = $1 ORDER BY seq LIMIT $2) AS few)";
    let deleted = tx.execute(delete, &values![webhook, MAX_PURGE_ROWS]).await?;
    let finish = "DELETE FROM former_webhook WHERE id = $1 AND \
                  NOT EXISTS (SELECT 1 FROM delivery WHERE webhook_id = $1)";
    Ok(deleted + tx.execute(finish, &values![webhook]).await?)
}

impl ExpiredEvents {
    /// Deletes the oldest of them; returns how many rows, or `None` if another transaction has locked one
    /// of the endpoints. Usually none can be deleted, because endpoints have yet to receive them: checks
    /// that without a lock.
    async fn delete(self, engine: &dyn Engine) -> Result<Option<u64>, StoreError> {
        let (statement, values) = self.last(engine.dialect());
        let read = Read::new(ReadPath::Scan, statement, values, last_event);
        let last = engine::fetch(engine, read).await?;
        if last.into_iter().flatten().next().is_none() {
            return Ok(Some(0));
        }
        engine::run(engine, Write::new(self, |expired, tx| Box::pin(delete(tx, *expired)))).await
    }

    /// The last event that can be deleted. Events are deleted in order: the first one that has not
    /// expired, or that an endpoint still needs, keeps all later ones.
    fn last(self, dialect: Dialect) -> (String, [Value<'static>; 3]) {
        let least = dialect.either("min", "least");
        let statement = format!(
            "WITH oldest AS (SELECT seq, at FROM event WHERE account_id = $1 ORDER BY seq \
             LIMIT $3) SELECT max(seq) AS last FROM oldest WHERE \
             seq < coalesce((SELECT min(seq) FROM oldest WHERE at >= $2), seq + 1) AND \
             seq <= coalesce((SELECT min({least}(w.cursor, coalesce((SELECT min(d.seq) - 1 \
             FROM delivery d WHERE d.webhook_id = w.id AND d.status = 'waiting'), w.cursor))) \
             FROM webhook w WHERE w.account_id = $1 AND w.disabled_at IS NULL), seq)"
        );
        (statement, values![self.account, self.since, MAX_PURGE_ROWS])
    }
}

/// The number in the row of [`ExpiredEvents::last`].
fn last_event(row: &Row<'_>) -> Result<Option<u64>, StoreError> {
    row.optional("last", |last: i64| u64::try_from(last).ok())
}

async fn delete(tx: &mut Tx<'_>, expired: ExpiredEvents) -> Result<Option<u64>, StoreError> {
    let ExpiredEvents { account, since, .. } = expired;
    if !lock_endpoints(tx, expired).await? {
        return Ok(None);
    }
    // The events of a deleted account expire, too.
    tx.lock(account).await?;
    // An endpoint may have been enabled, or a replay requested, since the events were found.
    let (find, values) = expired.last(tx.dialect());
    let last = tx.query_one(&find, &values, last_event).await?;
    let Some(last) = last.flatten() else { return Ok(Some(0)) };
    let plan = plan_purge(tx, account, last).await?;
    delete_deliveries(tx, account, plan.last, since).await?;
    let delete = "DELETE FROM event WHERE account_id = $1 AND seq <= $2";
    let events = tx.execute(delete, &values![account, plan.last]).await?;
    Ok(Some(events + purge_templates(tx, account, &plan).await?))
}

/// Locks the endpoints of the account, before the account, as everywhere; `false` if another
/// transaction has locked one of them.
async fn lock_endpoints(tx: &mut Tx<'_>, expired: ExpiredEvents) -> Result<bool, StoreError> {
    let account = expired.account;
    let lock = match (tx.dialect(), expired.waits) {
        (Dialect::Sqlite, _) => return Ok(true),
        (Dialect::Postgres, true) => "FOR NO KEY UPDATE",
        (Dialect::Postgres, false) => "FOR NO KEY UPDATE SKIP LOCKED",
    };
    let lock = format!("SELECT id FROM webhook WHERE account_id = $1 ORDER BY id {lock}");
    let locked = tx.query(&lock, &values![account], |_| Ok(())).await?.len() as u64;
    let count = "SELECT count(*) AS endpoints FROM webhook WHERE account_id = $1";
    let all = tx.query_one(count, &values![account], |row| row.number("endpoints")).await?;
    Ok(all.is_some_and(|all| all <= locked))
}

/// Deletes the deliveries of the events up to `last`. A disabled endpoint may still have pending ones:
/// the next delivery of each template becomes due, for when the endpoint is enabled again.
async fn delete_deliveries(
    tx: &mut Tx<'_>,
    account: AccountId,
    last: u64,
    since: Timestamp,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM delivery WHERE seq <= $2 AND webhook_id IN \
                  (SELECT id FROM webhook WHERE account_id = $1) \
                  RETURNING webhook_id, template_id, status";
    let deleted = tx
        .query(delete, &values![account, last], |row| {
            let status: String = row.value("status")?;
            let is_waiting = status == DeliveryStatus::Waiting.as_str();
            let delivery = (row.webhook_id("webhook_id")?, row.value("template_id")?);
            Ok(is_waiting.then_some(delivery))
        })
        .await?;
    let unblocked: HashSet<_> = deleted.into_iter().flatten().collect();
    for (webhook, template) in unblocked {
        schedule_next(tx, webhook, template, since)?;
    }
    Ok(())
}

/// The templates whose deletion is among the account's events up to `last`.
async fn plan_purge(
    tx: &mut Tx<'_>,
    account: AccountId,
    last: u64,
) -> Result<PurgePlan, StoreError> {
    let find = "SELECT e.seq, e.template_id AS id, (SELECT count(*) FROM former_version f \
                WHERE f.template_id = e.template_id) AS former, \
                coalesce((SELECT octet_length(t.content) + $4 FROM template t \
                WHERE t.id = e.template_id), 0) + \
                (SELECT coalesce(sum(octet_length(f.content) + $4), 0) FROM former_version f \
                WHERE f.template_id = e.template_id) AS bytes FROM event e \
                WHERE e.account_id = $1 AND e.seq <= $2 AND e.type = $3 ORDER BY e.seq LIMIT $5";
    let deletion = EventType::Deleted.as_str();
    let values = values![account, last, deletion, VERSION_OVERHEAD_BYTES, MAX_PURGE_TEMPLATES];
    Ok(PurgePlan::new(last, &tx.query(find, &values, DeletedTemplate::read).await?))
}

/// Deletes the rows of deleted templates, together with their last event, or the oldest former
/// versions of a template that is too large for one write. Returns how many of the latter.
async fn purge_templates(
    tx: &mut Tx<'_>,
    account: AccountId,
    plan: &PurgePlan,
) -> Result<u64, StoreError> {
    if !plan.templates.is_empty() {
        let ids = values![plan.templates.clone()];
        let versions = tx.dialect().is_any("template_id", "$1");
        tx.execute(&format!("DELETE FROM former_version WHERE {versions}"), &ids).await?;
        let templates = tx.dialect().is_any("id", "$1");
        let delete = format!("DELETE FROM template WHERE {templates} AND unique_key IS NULL");
        tx.execute(&delete, &ids).await?;
        tx.account(account)?.stored_bytes.add(-plan.bytes);
    }
    let Some(template) = plan.partial else { return Ok(0) };
    let find = "SELECT version, octet_length(content) + CAST($2 AS BIGINT) AS bytes \
                FROM former_version WHERE template_id = $1 ORDER BY version LIMIT $3";
    let values = values![template, VERSION_OVERHEAD_BYTES, OldestVersions::MAX];
    let version = |row: &Row<'_>| {
        Ok(OldestVersions { last: row.value("version")?, bytes: row.value("bytes")? })
    };
    let oldest = OldestVersions::choose(&tx.query(find, &values, version).await?);
    let Some(oldest) = oldest else { return Ok(0) };
    tx.account(account)?.stored_bytes.add(-oldest.bytes);
    let delete = "DELETE FROM former_version WHERE template_id = $1 AND version <= $2";
    tx.execute(delete, &values![template, oldest.last]).await
}
