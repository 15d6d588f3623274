//! Appends events, in the transaction of the change that they report. The lock on the account keeps
//! their numbers in order.

use std::borrow::Cow;

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    rulebook::Category,
    template::{Status, lifecycle::EventType},
};
use jiff::Timestamp;

use crate::{
    Actor, CreatedTemplate, NewTemplate, StoreError, TraceContext, UpstreamConnection,
    encoding::{actor_key, origin},
    engine::{Dialect, Tx, Value, values},
};

/// A template event to append. Its sequence number is assigned then.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewEvent<'a> {
    pub(crate) account: AccountId,
    pub(crate) kind: EventType,
    pub(crate) template: TemplateId,
    pub(crate) version: u64,
    pub(crate) at: Timestamp,
    /// The time of the clock of an emulator account.
    pub(crate) emulated_at: Option<Timestamp>,
    pub(crate) actor: Actor,
    pub(crate) category: Category,
    pub(crate) status: Status,
    pub(crate) reason: Option<Cow<'a, str>>,
    pub(crate) trace: Option<TraceContext>,
}

/// The event of a create.
pub(crate) fn created_event(new: &NewTemplate, created: &CreatedTemplate) -> NewEvent<'static> {
    NewEvent {
        account: new.account,
        kind: EventType::Created,
        template: created.id,
        version: 1,
        at: new.at,
        // No webhook tells of a template that waits for its review.
        emulated_at: None,
        actor: new.actor,
        category: created.category,
        status: created.status,
        reason: None,
        trace: new.trace,
    }
}

macro_rules! insert {
    ($column:literal, $checksum:literal) => {
        concat!(
            "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, category, \
             status, reason, webhook_id, origin, trace, emulated_at",
            $column,
            ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14",
            $checksum,
            ")"
        )
    };
}

/// Inserts an event. One that is not about a template has a 0 or an empty text in its columns.
const fn insert(dialect: Dialect) -> &'static str {
    dialect.either(
        insert!(", checksum", ", row_checksum($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"),
        insert!("", ""),
    )
}

/// Appends an event about a template of a locked account.
pub(crate) fn append(tx: &mut Tx<'_>, event: &NewEvent<'_>) -> Result<(), StoreError> {
    let seq = tx.account(event.account)?.next_event();
    let values = values![
        event.account,
        seq,
        event.kind.as_str(),
        event.template,
        event.version,
        event.at,
        actor_key(event.actor),
        event.category.as_str(),
        event.status.as_str(),
        event.reason.as_deref(),
        Value::Null,
        Value::Null,
        event.trace.as_ref().map(TraceContext::stored),
        event.emulated_at,
    ];
    let statement = insert(tx.dialect());
    tx.defer(statement, &values)
}

/// Appends an event about the provider of a locked account.
pub(crate) fn append_upstream(
    tx: &mut Tx<'_>,
    connection: &UpstreamConnection,
    kind: EventType,
    reason: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (account, url) = (connection.account, &*connection.base_url);
    append_of_service(tx, ServiceEvent { account, webhook: None, kind, reason, url, at })
}

/// An event that the service causes, about an endpoint or the provider of a locked account.
pub(crate) struct ServiceEvent<'e> {
    pub(crate) account: AccountId,
    pub(crate) webhook: Option<WebhookId>,
    pub(crate) kind: EventType,
    pub(crate) reason: &'e str,
    /// The event shows only its [`origin`].
    pub(crate) url: &'e str,
    pub(crate) at: Timestamp,
}

/// Appends an event that the service causes.
pub(crate) fn append_of_service(
    tx: &mut Tx<'_>,
    ServiceEvent { account, webhook, kind, reason, url, at }: ServiceEvent<'_>,
) -> Result<(), StoreError> {
    let seq = tx.account(account)?.next_event();
    let values = values![
        account,
        seq,
        kind.as_str(),
        0_i64,
        0_i64,
        at,
        actor_key(Actor::Service),
        "",
        "",
        reason,
        webhook,
        origin(url),
        Value::Null,
        Value::Null,
    ];
    let statement = insert(tx.dialect());
    tx.defer(statement, &values)
}
