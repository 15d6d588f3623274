//! SQL for events: appends them in the transaction of the change they describe, and reads single ones
//! for deliveries.

use galley_domain::template::lifecycle::EventType;
use jiff::Timestamp;
use rusqlite::{
    params, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    checksum::Checksum,
    columns::{actor_key, key, millis},
    writer::Batch,
};
pub(super) use crate::events::NewEvent;
use crate::{Actor, StoreError, UpstreamConnection, Webhook, encoding::origin};

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
