//! SQL for events: appends them in the transaction of the change they describe, and reads them in
//! order.

use async_trait::async_trait;
use galley_domain::{id::AccountId, template::lifecycle::EventType};
use jiff::Timestamp;
use rusqlite::{
    Connection, Row, params, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    SqliteStore,
    cancellation::Cancellation,
    checksum::{self, Checksum, event_checksum, template_checksum},
    columns::{actor_key, key, millis, number},
    reader_pool::{self, ReaderPool},
    retention,
    writer::Batch,
};
pub(super) use crate::decisions::events::NewEvent;
use crate::{
    Actor, Event, EventNotifier, EventStore, Feed, ReadKind, StoreError, UpstreamConnection,
    Webhook,
    decisions::events::{self, feed},
    encoding::origin,
};

#[async_trait]
impl EventStore for SqliteStore {
    async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError> {
        let read = move |connection: &Connection| page(connection, account, after, limit);
        self.read_blocking(ReadKind::Feed, account, read).await
    }

    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError> {
        self.point_readers.read(|connection| newest(connection, account))
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.event_notifier
    }

    async fn poll_events(&self) -> Result<(), StoreError> {
        // Both log what they find. Called every second.
        if self.files.check().is_err() {
            return Ok(());
        }
        self.space.restore_reserve();
        for account in self.event_notifier.subscribed_accounts() {
            let newest = self.newest_event(account).await?;
            self.event_notifier.notify(&[(account, newest)]);
        }
        Ok(())
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        let find = move |readers: &ReaderPool, cancellation: &Cancellation| {
            readers
                .cancellable_read(cancellation, |store| retention::find_purge_target(store, since))
        };
        let target = reader_pool::run_blocking_in_background(&self.readers, find).await?;
        let Some(target) = target else { return Ok(0) };
        self.writer.write(move |batch| retention::purge(batch, &target, since)).await
    }
}

const APPEND: &str = "INSERT INTO event (account_id, seq, type, template_id, version, \
     at, actor, category, status, reason, checksum, trace) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, \
     ?9, ?10, ?11, ?12)";

pub(super) fn append(batch: &mut Batch, event: &NewEvent<'_>) -> Result<(), StoreError> {
    let seq = batch.next_seq(event.account)?;
    let values = [
        ValueRef::Integer(key(event.account.get())),
        ValueRef::Integer(key(seq)),
        event.kind.as_str().into(),
        ValueRef::Integer(key(event.template.get())),
        ValueRef::Integer(key(event.version)),
        ValueRef::Integer(millis(event.at)),
        ValueRef::Integer(actor_key(event.actor)),
        event.category.as_str().into(),
        event.status.as_str().into(),
        event.reason.map_or(ValueRef::Null, Into::into),
    ];
    // A template event has neither an endpoint nor its origin.
    let checksum = Checksum::of(values.into_iter().chain([ValueRef::Null; 2]));
    let checksum = ValueRef::Integer(checksum.stored());
    let trace = event.trace.as_ref().map_or(ValueRef::Null, |it| ValueRef::Blob(it.stored()));
    let values = values.into_iter().chain([checksum, trace]).map(ToSqlOutput::Borrowed);
    batch.connection().prepare_cached(APPEND)?.execute(params_from_iter(values))?;
    if let Some(emulated_at) = event.emulated_at {
        batch
            .connection()
            .prepare_cached("UPDATE event SET emulated_at = ?3 WHERE account_id = ?1 AND seq = ?2")?
            .execute([key(event.account.get()), key(seq), millis(emulated_at)])?;
    }
    Ok(())
}

/// Appends the event that the service has disabled an endpoint.
pub(super) fn append_disabled(
    batch: &mut Batch,
    webhook: &Webhook,
    reason: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let seq = batch.next_seq(webhook.account)?;
    batch
        .connection()
        .prepare_cached(
            "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, category, \
             status, reason, webhook_id, origin, checksum) \
             VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, '', '', ?6, ?7, ?8, \
             row_checksum(?1, ?2, ?3, 0, 0, ?4, ?5, '', '', ?6, ?7, ?8))",
        )?
        .execute(params![
            key(webhook.account.get()),
            key(seq),
            EventType::WebhookDisabled.as_str(),
            millis(at),
            actor_key(Actor::Service),
            reason,
            key(webhook.id.get()),
            origin(&webhook.url),
        ])?;
    Ok(())
}

/// Appends an event about the provider of an account.
pub(super) fn append_upstream(
    batch: &mut Batch,
    connection: &UpstreamConnection,
    (kind, reason): (EventType, &str),
    at: Timestamp,
) -> Result<(), StoreError> {
    let seq = batch.next_seq(connection.account)?;
    batch
        .connection()
        .prepare_cached(
            "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, category, \
             status, reason, origin, checksum) VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, '', '', ?6, ?7, \
             row_checksum(?1, ?2, ?3, 0, 0, ?4, ?5, '', '', ?6, NULL, ?7))",
        )?
        .execute(params![
            key(connection.account.get()),
            key(seq),
            kind.as_str(),
            millis(at),
            actor_key(Actor::Service),
            reason,
            origin(&connection.base_url),
        ])?;
    Ok(())
}

/// All columns of an event. Name and language never change, so they are read from the template.
const SELECT: &str = concat!(
    "SELECT e.seq, e.type, e.template_id, e.version, e.at, e.actor, t.name, t.language, \
     e.category, e.status, e.reason, e.webhook_id, e.origin, e.is_intact, t.is_intact, \
     e.account_id, e.trace, e.emulated_at, coalesce(c.name, '') AS actor_name \
     FROM (SELECT *, checksum IS ",
    event_checksum!(),
    " AS is_intact FROM event) e LEFT JOIN (SELECT id, name, language, checksum IS ",
    template_checksum!(),
    " AS is_intact FROM template) t ON t.id = e.template_id LEFT JOIN credential c \
     ON c.id = e.actor WHERE e.account_id = ?1",
);

/// The events after `after`, or the reason why they cannot be read.
pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    after: Option<u64>,
    limit: usize,
) -> Result<Feed, StoreError> {
    // The events and the account's row must come from the same snapshot.
    let snapshot = connection.unchecked_transaction()?;
    let text = format!("{SELECT} AND e.seq > ?2 ORDER BY e.seq LIMIT ?3");
    let mut query = snapshot.prepare_cached(&text)?;
    let from = i64::try_from(after.unwrap_or(0)).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(account.get()), from, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event(row)?);
    }
    let newest = match events.last() {
        Some(event) => event.seq,
        None => newest(&snapshot, account)?,
    };
    Ok(feed(after, events, newest))
}

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    seq: u64,
) -> Result<Option<Event>, StoreError> {
    let mut query = connection.prepare_cached(&format!("{SELECT} AND e.seq = ?2"))?;
    let mut rows = query.query([key(account.get()), key(seq)])?;
    rows.next()?.map(event).transpose()
}

/// The sequence number of the account's newest event; 0 if there is none.
pub(super) fn newest(connection: &Connection, account: AccountId) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached("SELECT last_seq FROM account WHERE id = ?1")?;
    let mut rows = query.query([key(account.get())])?;
    rows.next()?.map_or(Ok(0), |row| number(row, "last_seq"))
}

/// The sequence number of the oldest stored event, or of the next one if none is stored.
pub(super) fn oldest(connection: &Connection, account: AccountId) -> Result<u64, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT min(seq) FROM event WHERE account_id = ?1")?;
    let oldest: Option<i64> = query.query_row([key(account.get())], |row| row.get(0))?;
    match oldest.and_then(|oldest| u64::try_from(oldest).ok()) {
        Some(oldest) => Ok(oldest),
        None => Ok(newest(connection, account)? + 1),
    }
}

fn event(row: &Row<'_>) -> Result<Event, StoreError> {
    let (is_intact, is_template_intact): (bool, Option<bool>) = (row.get(13)?, row.get(14)?);
    if !is_intact {
        let (account, seq): (i64, i64) = (row.get("account_id")?, row.get("seq")?);
        return Err(checksum::damaged("event", format!("{account} number {seq}")));
    }
    if is_template_intact == Some(false) {
        return Err(checksum::damaged("template", row.get::<_, i64>("template_id")?));
    }
    events::event(row)
}
