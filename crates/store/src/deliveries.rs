//! Deliveries of events to webhook endpoints: events become deliveries, which are leased, attempted and
//! completed. PostgreSQL locks an endpoint while one of its deliveries is leased or recorded, so that
//! exactly one of any number of instances leases each delivery.

mod attempts;
mod decisions;
mod leases;
mod replays;

use std::ops::Range;

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::lifecycle::EventType,
    webhook::delivery::DeliveryStatus,
};
use jiff::Timestamp;

pub(crate) use self::attempts::schedule_next;
use self::decisions::{DAMAGED_EVENT, attempt_count};
use crate::{
    Delivery, DeliveryLease, DeliveryQuery, DueWork, ReadKind, Store, StoreError, StoreFuture,
    WebhookKey,
    engine::{Dialect, ReadPath, Value, values},
    stored_row::{Row, StoredRow as _},
};

/// Locks an endpoint on PostgreSQL. A statement that follows sees what other transactions committed
/// before.
const LOCK: &str = "SELECT 1 FROM webhook WHERE id = $1 FOR NO KEY UPDATE";

impl Store {
    /// A page of an endpoint's deliveries; `None` if the account has no such endpoint.
    pub fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        query: DeliveryQuery,
    ) -> StoreFuture<'_, Option<Vec<Delivery>>> {
        Box::pin(async move {
            let find = "SELECT 1 FROM webhook WHERE id = $1 AND account_id = $2";
            if !self.exists("find_webhook", ReadPath::Point, find, values![id, account]).await? {
                return Ok(None);
            }
            let filter = if query.status.is_some() { "d.status = $5" } else { "true" };
            let statement = format!(
                "SELECT d.seq, e.type, d.template_id, d.status, d.attempts, d.attempted_at, d.due_at, \
             d.response_status, d.failure FROM delivery d JOIN event e ON e.account_id = $1 AND \
             e.seq = d.seq WHERE d.webhook_id = $2 AND d.seq < $3 AND {filter} \
             ORDER BY d.seq DESC LIMIT $4"
            );
            let before = query.before.map_or(Value::Integer(i64::MAX), Value::bound);
            let values = [account.into(), id.into(), before, Value::size(query.limit)];
            let values = values.into_iter().chain(query.status.map(|it| it.as_str().into()));
            // PostgreSQL looks among all deliveries for a status that few have.
            let kind = match self.dialect() {
                Dialect::Sqlite => ReadKind::List,
                Dialect::Postgres => ReadKind::Search,
            };
            let path = ReadPath::Account(kind, account);
            self.read("deliveries", path, statement, values, delivery).await.map(Some)
        })
    }

    /// The endpoints of all accounts that have work to do.
    pub fn webhooks_with_work(&self, at: Timestamp) -> StoreFuture<'_, DueWork<WebhookKey>> {
        Box::pin(async move {
            let statement = self.dialect().either(DUE_ON_SQLITE, DUE_ON_POSTGRES);
            // The time grows with the number of endpoints, so PostgreSQL does not delay the shared reads.
            let path = match self.dialect() {
                Dialect::Sqlite => ReadPath::Point,
                Dialect::Postgres => ReadPath::Background,
            };
            let work = self.read("webhooks_with_work", path, statement, values![at], move |row| {
                let (account, id) = (row.account_id("account_id")?, row.webhook_id("id")?);
                let is_behind: bool = row.value("behind")?;
                let [ripe, later] =
                    [row.optional_timestamp("ripe")?, row.optional_timestamp("later")?];
                let first = [is_behind.then_some(at), ripe, later].into_iter().flatten().min();
                let rested = row.optional_timestamp("resting_until")?;
                let due_at = first.map(|first| first.max(rested.unwrap_or(first)));
                Ok((WebhookKey { account, id }, due_at))
            });
            Ok(DueWork::at(at, work.await?))
        })
    }

    /// Leases one delivery of an endpoint from now until the end of `lease`; no other worker gets it
    /// before then. Of the events of one template, only the first unfinished one can be leased.
    pub fn lease_delivery(
        &self,
        id: WebhookId,
        lease: Range<Timestamp>,
    ) -> StoreFuture<'_, DeliveryLease> {
        self.write("lease_delivery", (id, lease), |(id, lease), tx| {
            Box::pin(leases::lease(tx, *id, lease))
        })
    }
}

/// When endpoints have work. `behind` tells whether events come after the cursor. `ripe` is `$1` if a due
/// delivery is not leased, or else the end of the first lease; there are few leases. `later` is when the
/// next delivery becomes due.
const DUE_ON_SQLITE: &str = "SELECT w.id, w.account_id, w.resting_until, w.cursor < a.last_seq AS behind, \
     CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id \
       AND d.due_at <= $1 AND coalesce(d.leased_until, 0) <= $1) THEN $1 \
     ELSE (SELECT min(d.leased_until) FROM delivery d \
       WHERE d.webhook_id = w.id AND d.due_at <= $1) END AS ripe, \
     (SELECT min(d.due_at) FROM delivery d WHERE d.webhook_id = w.id AND d.due_at > $1) AS later \
     FROM webhook w JOIN account a ON a.id = w.account_id \
     WHERE w.disabled_at IS NULL AND a.disabled_at IS NULL ORDER BY w.id";

/// The same for endpoints with a scheduled delivery, found with one index seek each, and those whose
/// cursor is behind the events of their account.
const DUE_ON_POSTGRES: &str = "WITH RECURSIVE sent_to (id) AS ( \
       (SELECT webhook_id FROM delivery WHERE due_at IS NOT NULL ORDER BY webhook_id LIMIT 1) \
     UNION ALL \
       SELECT (SELECT webhook_id FROM delivery WHERE due_at IS NOT NULL AND \
         webhook_id > sent_to.id ORDER BY webhook_id LIMIT 1) \
       FROM sent_to WHERE sent_to.id IS NOT NULL) \
     SELECT w.id, w.account_id, w.resting_until, w.cursor < a.last_seq AS behind, ripe, later \
     FROM webhook w JOIN account a ON a.id = w.account_id \
     LEFT JOIN (SELECT id, \
       CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at <= $1 AND coalesce(d.leased_until, 0) <= $1) THEN $1 \
       ELSE (SELECT min(d.leased_until) FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at <= $1) END AS ripe, \
       (SELECT min(d.due_at) FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at > $1) AS later FROM sent_to WHERE id IS NOT NULL OFFSET 0) AS sent \
     ON sent.id = w.id \
     WHERE w.disabled_at IS NULL AND a.disabled_at IS NULL AND \
     (w.cursor < a.last_seq OR sent.id IS NOT NULL) ORDER BY w.id";

/// The delivery in a row. A damaged event is marked, so that the other deliveries can be listed.
fn delivery(row: &Row<'_>) -> Result<Delivery, StoreError> {
    let kind = row.parsed("type", EventType::parse).ok();
    let failure: Option<String> = row.value("failure")?;
    Ok(Delivery {
        seq: row.number("seq")?,
        kind,
        template: TemplateId::new(row.number("template_id")?),
        status: row.parsed("status", DeliveryStatus::parse)?,
        attempts: attempt_count(row)?,
        attempted_at: row.optional_timestamp("attempted_at")?,
        due_at: row.optional_timestamp("due_at")?,
        response_status: row
            .optional("response_status", |status: i32| u16::try_from(status).ok())?,
        failure: failure.or_else(|| kind.is_none().then(|| DAMAGED_EVENT.to_owned())),
    })
}
