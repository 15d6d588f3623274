//! Events, as SQL. They are appended in the transaction of the change that they report; the lock on
//! the account keeps their numbers in order.

use galley_domain::template::lifecycle::EventType;
use jiff::Timestamp;

use super::{
    columns::{actor_key, key, millis},
    pipeline::owned,
    pool::Values,
    transaction::Transaction,
};
pub(super) use crate::events::NewEvent;
use crate::{Actor, StoreError, TraceContext, UpstreamConnection, Webhook, encoding::origin};

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
