//! Events, as SQL. They are appended in the transaction of the change that they report; the lock on
//! the account keeps their numbers in order.

use async_trait::async_trait;
use galley_domain::{id::AccountId, template::lifecycle::EventType};
use jiff::Timestamp;

use super::{
    PostgresStore,
    columns::{account_id, actor_key, get, key, millis, number},
    pipeline::owned,
    pool::{PgPools, Values},
    transaction::Transaction,
};
pub(super) use crate::decisions::events::NewEvent;
use crate::{
    Actor, Event, EventNotifier, EventStore, Feed, ReadKind, StoreError, TraceContext,
    UpstreamConnection, Webhook,
    decisions::events::{event, feed},
    encoding::origin,
};

#[async_trait]
impl EventStore for PostgresStore {
    async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError> {
        let _slot = self.read_slots.acquire(ReadKind::Feed, account).await?;
        // One statement reads the account's row and the events, and therefore a consistent state.
        let statement = format!(
            "SELECT a.last_seq, found.* FROM (SELECT coalesce((SELECT last_seq FROM account \
             WHERE id = $1), 0) AS last_seq) AS a LEFT JOIN LATERAL (SELECT {EVENT} \
             WHERE e.account_id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3) AS found ON true \
             ORDER BY found.seq"
        );
        let from = i64::try_from(after.unwrap_or(0)).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pools.read(&statement, &[&key(account.get()), &from, &limit]).await?;
        let newest = rows.first().map_or(Ok(0), |row| number(row, "last_seq"))?;
        let mut events = Vec::with_capacity(rows.len());
        for row in &rows {
            if get::<Option<i64>>(row, "seq")?.is_some() {
                events.push(event(row)?);
            }
        }
        Ok(feed(after, events, newest))
    }

    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError> {
        let statement = "SELECT last_seq FROM account WHERE id = $1";
        let row = self.pools.read_one(statement, &[&key(account.get())]).await?;
        row.map_or(Ok(0), |row| number(&row, 0))
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.event_notifier
    }

    async fn poll_events(&self) -> Result<(), StoreError> {
        let accounts = self.event_notifier.subscribed_accounts();
        let newest = newest_of(&self.pools, &accounts).await?;
        self.event_notifier.notify(&newest);
        Ok(())
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        self.delete_some_expired_events(since).await
    }
}

const APPEND: &str = "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, \
     category, status, reason, trace, emulated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
     $11, $12)";

pub(super) async fn append(
    transaction: &mut Transaction,
    event: &NewEvent<'_>,
) -> Result<(), StoreError> {
    let seq = transaction.next_seq(event.account);
    let values: Values<'_> = &[
        &key(event.account.get()),
        &key(seq),
        &event.kind.as_str(),
        &key(event.template.get()),
        &key(event.version),
        &millis(event.at),
        &actor_key(event.actor),
        &event.category.as_str(),
        &event.status.as_str(),
        &event.reason,
        &event.trace.as_ref().map(TraceContext::stored),
        &event.emulated_at.map(millis),
    ];
    transaction.execute(APPEND, values).await.map(drop)
}

/// Appends the event that the service disabled an endpoint, with the commit.
pub(super) fn append_disabled(
    transaction: &mut Transaction,
    webhook: &Webhook,
    reason: &'static str,
    at: Timestamp,
) {
    let seq = transaction.next_seq(webhook.account);
    let statement = "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, \
                     category, status, reason, webhook_id, origin) \
                     VALUES ($1, $2, $3, 0, 0, $4, $5, '', '', $6, $7, $8)";
    let values = owned![
        key(webhook.account.get()),
        key(seq),
        EventType::WebhookDisabled.as_str(),
        millis(at),
        actor_key(Actor::Service),
        reason,
        key(webhook.id.get()),
        origin(&webhook.url),
    ];
    transaction.defer(statement, values);
}

/// Appends an event about the provider of a locked account, with the commit.
pub(super) fn append_upstream(
    transaction: &mut Transaction,
    connection: &UpstreamConnection,
    (kind, reason): (EventType, &'static str),
    at: Timestamp,
) {
    let seq = transaction.next_seq(connection.account);
    let statement = "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, \
                     category, status, reason, origin) \
                     VALUES ($1, $2, $3, 0, 0, $4, $5, '', '', $6, $7)";
    let values = owned![
        key(connection.account.get()),
        key(seq),
        kind.as_str(),
        millis(at),
        actor_key(Actor::Service),
        reason,
        origin(&connection.base_url),
    ];
    transaction.defer(statement, values);
}

/// All columns of an event. Name and language never change, so they come from the template.
pub(super) const EVENT: &str = "e.seq, e.type, e.template_id, e.version, e.at, e.actor, t.name, t.language, \
     e.category, e.status, e.reason, e.webhook_id, e.origin, e.trace, \
     e.emulated_at, coalesce(c.name, '') AS actor_name \
     FROM event e LEFT JOIN template t ON t.id = e.template_id LEFT JOIN credential c \
     ON c.id = e.actor";

/// One event, inside a transaction.
pub(super) async fn one_in(
    transaction: &Transaction,
    account: AccountId,
    seq: u64,
) -> Result<Option<Event>, StoreError> {
    let statement = format!("SELECT {EVENT} WHERE e.account_id = $1 AND e.seq = $2");
    let row = transaction.query_one(&statement, &[&key(account.get()), &key(seq)]).await?;
    row.as_ref().map(event).transpose()
}

/// The numbers of the newest events of several accounts.
pub(super) async fn newest_of(
    pools: &PgPools,
    accounts: &[AccountId],
) -> Result<Vec<(AccountId, u64)>, StoreError> {
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let accounts: Vec<i64> = accounts.iter().map(|account| key(account.get())).collect();
    let statement = "SELECT id, last_seq FROM account WHERE id = ANY($1)";
    let rows = pools.read(statement, &[&accounts]).await?;
    rows.iter().map(|row| Ok((account_id(row, "id")?, number(row, "last_seq")?))).collect()
}

/// The number of the oldest stored event, or of the next event if there is none.
pub(super) async fn oldest(
    transaction: &Transaction,
    account: AccountId,
) -> Result<u64, StoreError> {
    let statement = "SELECT coalesce((SELECT min(seq) FROM event WHERE account_id = $1), \
                     (SELECT last_seq + 1 FROM account WHERE id = $1), 1)";
    let row = transaction.query_one(statement, &[&key(account.get())]).await?;
    row.map_or(Ok(1), |row| number(&row, 0))
}
