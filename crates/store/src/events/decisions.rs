//! The event feed: what a cursor can still read, and how an event's row is decoded.

use std::borrow::Cow;

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{Status, lifecycle::EventType},
};
use jiff::Timestamp;

use crate::{
    Actor, CreatedTemplate, Event, EventSubject, Feed, NewTemplate, StoreError, TraceContext,
    row_checksum::damaged, stored_row::StoredRow,
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

/// Decides what a reader with a cursor gets. `events` are the stored events after the cursor, and
/// `newest` is the account's newest sequence number, from the same snapshot. Sequence numbers have
/// no gaps, so the first event must follow the cursor; otherwise, events between them have expired.
pub(crate) fn feed(after: Option<u64>, events: Vec<Event>, newest: u64) -> Feed {
    let Some(after) = after else { return Feed::Events(events) };
    let next = events.first().map_or(newest + 1, |first| first.seq);
    match after.saturating_add(1) {
        expected if expected < next => Feed::Expired(next),
        expected if expected > next => Feed::CursorAhead(next - 1),
        _ => Feed::Events(events),
    }
}

/// The event in a row. The columns `is_intact` and `is_template_intact` tell whether the rows match their
/// checksums.
pub(crate) fn event(row: &impl StoredRow) -> Result<Event, StoreError> {
    if !row.value("is_intact")? {
        let (account, seq): (i64, i64) = (row.value("account_id")?, row.value("seq")?);
        return Err(damaged("event", format!("{account} number {seq}")));
    }
    if row.value::<Option<bool>>("is_template_intact")? == Some(false) {
        return Err(damaged("template", row.value::<i64>("template_id")?));
    }
    let kind = row.parsed("type", EventType::parse)?;
    let actor = row.actor("actor")?;
    Ok(Event {
        seq: row.number("seq")?,
        kind,
        subject: subject(kind, row)?,
        at: row.timestamp("at")?,
        emulated_at: row.optional_timestamp("emulated_at")?,
        actor,
        actor_name: row.actor_name("actor_name", actor)?,
        reason: row.value("reason")?,
        trace: trace(row)?,
    })
}

/// The trace of an event. No checksum covers it: a damaged one is at worst another trace, and not a
/// reason to refuse the event.
fn trace(row: &impl StoredRow) -> Result<Option<TraceContext>, StoreError> {
    let stored: Option<Vec<u8>> = row.value("trace")?;
    Ok(stored.and_then(|bytes| TraceContext::from_stored(&bytes)))
}

/// The endpoint that the service disabled, the provider of the account, or else a template.
fn subject(kind: EventType, row: &impl StoredRow) -> Result<EventSubject, StoreError> {
    Ok(match kind {
        EventType::WebhookDisabled => EventSubject::Webhook {
            id: row.webhook_id("webhook_id")?,
            origin: row.value("origin")?,
        },
        EventType::UpstreamDegraded | EventType::UpstreamRecovered => {
            EventSubject::Upstream { origin: row.value("origin")? }
        }
        _ => EventSubject::Template {
            id: row.template_id("template_id")?,
            version: row.number("version")?,
            name: row.value("name")?,
            language: row.value("language")?,
            category: row.category("category")?,
            status: row.status("status")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(seqs: std::ops::RangeInclusive<u64>) -> Vec<Event> {
        let event = |seq| Event {
            seq,
            kind: EventType::WebhookDisabled,
            subject: EventSubject::Webhook {
                id: galley_domain::id::WebhookId::new(1).unwrap(),
                origin: String::new(),
            },
            at: Timestamp::UNIX_EPOCH,
            emulated_at: None,
            actor: Actor::Service,
            actor_name: String::new(),
            reason: None,
            trace: None,
        };
        seqs.map(event).collect()
    }

    #[test]
    fn a_cursor_reads_on_only_where_no_event_is_missing() {
        assert_eq!(feed(Some(4), events(5..=6), 6), Feed::Events(events(5..=6)));
        assert_eq!(feed(Some(6), Vec::new(), 6), Feed::Events(Vec::new()));
        assert_eq!(feed(Some(0), Vec::new(), 0), Feed::Events(Vec::new()));
        assert_eq!(feed(Some(2), events(5..=6), 6), Feed::Expired(5));
        assert_eq!(feed(Some(2), Vec::new(), 6), Feed::Expired(7), "all events have expired");
        assert_eq!(feed(Some(7), Vec::new(), 6), Feed::CursorAhead(6));
        assert_eq!(feed(Some(u64::MAX), Vec::new(), 6), Feed::CursorAhead(6));
    }

    #[test]
    fn a_reader_without_a_cursor_begins_at_the_oldest_stored_event() {
        assert_eq!(feed(None, events(5..=6), 6), Feed::Events(events(5..=6)));
    }
}
