//! Events: their feed, and how a change appends them in its transaction.

mod append;

use galley_domain::{id::AccountId, template::lifecycle::EventType};

pub(crate) use self::append::{
    NewEvent, ServiceEvent, append, append_of_service, append_upstream, created_event,
};
use crate::{
    Event, EventNotifier, EventSubject, Feed, ReadKind, Store, StoreError, StoreFuture,
    TraceContext,
    encoding::key,
    engine::{Dialect, ReadPath, Value, values},
    row_checksum::{damaged, event_checksum, template_checksum},
    stored_row::StoredRow,
};

impl Store {
    /// The account's events after `after`, or from the oldest stored one, in order. Never skips an
    /// event: if the next one has been deleted, returns [`Feed::Expired`].
    pub fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Feed> {
        Box::pin(async move {
            let path = ReadPath::Account(ReadKind::Feed, account);
            // The row of the account is one with an event.
            let size = Value::size(limit.max(1));
            let values = values![account, Value::bound(after.unwrap_or(0)), size];
            let rows = self.read("events", path, page(self.dialect()), values, |row| {
                let event = row.value::<Option<i64>>("seq")?.map(|_| event(row)).transpose()?;
                Ok((row.number("last_seq")?, event))
            });
            let rows = rows.await?;
            let newest = rows.first().map_or(0, |(newest, _)| *newest);
            let events = rows.into_iter().filter_map(|(_, event)| event).take(limit).collect();
            Ok(feed(after, events, newest))
        })
    }

    /// The number of the account's newest event; 0 before the first.
    pub fn newest_event(&self, account: AccountId) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let (method, path) = ("newest_event", ReadPath::Point);
            let statement = "SELECT last_seq FROM account WHERE id = $1";
            let values = values![account];
            let newest =
                self.read_one(method, path, statement, values, |row| row.number("last_seq"));
            Ok(newest.await?.unwrap_or(0))
        })
    }

    /// Notifies subscribers of events that this process commits or that [`Store::poll_events`] finds.
    pub fn event_notifier(&self) -> &EventNotifier {
        self.engine.event_notifier()
    }

    /// Checks for events that other processes have committed and notifies their subscribers. Call it
    /// every second.
    pub fn poll_events(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let accounts = self.event_notifier().subscribed_accounts();
            if !self.engine.check_files() || accounts.is_empty() {
                return Ok(());
            }
            let accounts: Vec<i64> = accounts.iter().map(|account| key(account.get())).collect();
            let statement = format!(
                "SELECT id, last_seq FROM account WHERE {}",
                self.dialect().is_any("id", "$1")
            );
            let newest = self
                .read("poll_events", ReadPath::Point, statement, values![accounts], |row| {
                    Ok((row.account_id("id")?, row.number("last_seq")?))
                })
                .await?;
            self.event_notifier().notify(&newest);
            Ok(())
        })
    }
}

/// The columns of an event. Name and language never change, so they come from the template.
macro_rules! columns {
    () => {
        "e.account_id, e.seq, e.type, e.template_id, e.version, e.at, e.actor, t.name, t.language, \
         e.category, e.status, e.reason, e.webhook_id, e.origin, e.trace, e.emulated_at, \
         coalesce(c.name, '') AS actor_name, "
    };
}

/// The columns, and whether the rows match their checksums.
const fn columns(dialect: Dialect) -> &'static str {
    dialect.either(
        concat!(columns!(), "e.is_intact, t.is_intact AS is_template_intact"),
        concat!(columns!(), "true AS is_intact, true AS is_template_intact"),
    )
}

/// The events.
const fn stored(dialect: Dialect) -> &'static str {
    dialect.either(
        concat!("(SELECT *, checksum IS ", event_checksum!(), " AS is_intact FROM event) e"),
        "event e",
    )
}

/// What belongs to the events.
const fn joined(dialect: Dialect) -> &'static str {
    dialect.either(
        concat!(
            "LEFT JOIN (SELECT id, name, language, checksum IS ",
            template_checksum!(),
            " AS is_intact FROM template) t ON t.id = e.template_id \
             LEFT JOIN credential c ON c.id = e.actor"
        ),
        "LEFT JOIN template t ON t.id = e.template_id LEFT JOIN credential c ON c.id = e.actor",
    )
}

/// Selects what [`event`] reads.
pub(crate) fn select(dialect: Dialect) -> String {
    format!("SELECT {} FROM {} {}", columns(dialect), stored(dialect), joined(dialect))
}

/// Selects one event (`$2`) of an account (`$1`).
pub(crate) fn one(dialect: Dialect) -> String {
    format!("{} WHERE e.account_id = $1 AND e.seq = $2", select(dialect))
}

/// Reads the account's row and its events with one statement, and therefore from the same snapshot.
/// Each form follows an index on its database, and reads no event beyond the limit.
fn page(dialect: Dialect) -> String {
    match dialect {
        Dialect::Sqlite => format!(
            "SELECT a.last_seq, {} FROM account a LEFT JOIN {} ON e.account_id = a.id AND \
             e.seq > $2 {} WHERE a.id = $1 ORDER BY e.seq LIMIT $3",
            columns(dialect),
            stored(dialect),
            joined(dialect)
        ),
        Dialect::Postgres => format!(
            "SELECT a.last_seq, found.* FROM account a LEFT JOIN LATERAL ({} \
             WHERE e.account_id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3) AS found ON true \
             WHERE a.id = $1 ORDER BY found.seq",
            select(dialect)
        ),
    }
}

/// Decides what a reader with a cursor gets. `events` are the stored events after the cursor, and
/// `newest` is the account's newest sequence number, from the same snapshot. Sequence numbers have
/// no gaps, so the first event must follow the cursor; otherwise, events between them have expired.
fn feed(after: Option<u64>, events: Vec<Event>, newest: u64) -> Feed {
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
        // No checksum covers it: a damaged one is at worst another trace, and not a reason to refuse
        // the event.
        trace: row
            .value::<Option<Vec<u8>>>("trace")?
            .and_then(|bytes| TraceContext::from_stored(&bytes)),
    })
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
    use jiff::Timestamp;

    use super::*;
    use crate::Actor;

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
