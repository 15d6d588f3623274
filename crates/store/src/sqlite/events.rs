//! Events, as SQL: appended in the transaction of the change they tell of.

use galley_domain::{
    id::{AccountId, TemplateId},
    lifecycle::EventType,
    template::{Category, Status},
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{
    columns::{
        actor, actor_key, category, column, key, millis, moment, number, status, template_id,
    },
    writer::Batch,
};
use crate::{Actor, Event, StoreError};

pub(super) const APPEND: &str = "INSERT INTO event (account_id, seq, type, template_id, version, \
     at, actor, category, status, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

/// A fact that gets its number when it is appended.
pub(super) struct NewEvent<'a> {
    pub(super) account: AccountId,
    pub(super) kind: EventType,
    pub(super) template: TemplateId,
    pub(super) version: u64,
    pub(super) at: Timestamp,
    pub(super) actor: Actor,
    pub(super) category: Category,
    pub(super) status: Status,
    pub(super) reason: Option<&'a str>,
}

pub(super) fn append(batch: &mut Batch<'_>, event: &NewEvent<'_>) -> Result<(), StoreError> {
    let seq = batch.next_seq(event.account)?;
    batch.templates.append.execute(params![
        key(event.account.get()),
        key(seq),
        event.kind.word(),
        key(event.template.get()),
        key(event.version),
        millis(event.at),
        actor_key(event.actor),
        event.category.word(),
        event.status.word(),
        event.reason,
    ])?;
    Ok(())
}

pub(super) fn after(
    connection: &Connection,
    account: AccountId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT e.seq, e.type, e.template_id, e.version, e.at, e.actor, t.name, t.language, \
         e.category, e.status, e.reason FROM event e JOIN template t ON t.id = e.template_id \
         WHERE e.account_id = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = query.query(params![key(account.get()), after, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(Event {
            seq: number(row, "seq")?,
            kind: column(row, "type", |word: String| EventType::named(&word))?,
            template: template_id(row, "template_id")?,
            version: number(row, "version")?,
            at: moment(row, "at")?.unwrap_or_default(),
            actor: actor(row, "actor")?,
            name: row.get("name")?,
            language: row.get("language")?,
            category: category(row, "category")?,
            status: status(row, "status")?,
            reason: row.get("reason")?,
        });
    }
    Ok(events)
}
