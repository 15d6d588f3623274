//! Events: their feed, and how a change appends them in its transaction.

mod append;
mod decisions;

use galley_domain::id::AccountId;

use self::decisions::feed;
pub(crate) use self::{
    append::{append, append_of_service, append_upstream},
    decisions::{NewEvent, created_event, event},
};
use crate::{
    Event, EventNotifier, Feed, ReadKind, Store, StoreError,
    encoding::key,
    engine::{Dialect, ReadPath, Value, values},
    row_checksum::{event_checksum, template_checksum},
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// The account's events after `after`, or from the oldest stored one, in order. Never skips an
    /// event: if the next one has been deleted, returns [`Feed::Expired`].
    pub async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError> {
        let path = ReadPath::Account(ReadKind::Feed, account);
        // The row of the account is one with an event.
        let size = Value::size(limit.max(1));
        let values = values![account, Value::bound(after.unwrap_or(0)), size];
        let rows = self.read("events", path, page(self.dialect()), values, page_row).await?;
        let newest = rows.first().map_or(0, |(newest, _)| *newest);
        let events = rows.into_iter().filter_map(|(_, event)| event).take(limit).collect();
        Ok(feed(after, events, newest))
    }

    /// The number of the account's newest event; 0 before the first.
    pub async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError> {
        let (method, path) = ("newest_event", ReadPath::Point);
        let statement = "SELECT last_seq FROM account WHERE id = $1";
        let values = values![account];
        let newest = self.read_one(method, path, statement, values, |row| row.number("last_seq"));
        Ok(newest.await?.unwrap_or(0))
    }

    /// Notifies subscribers of events that this process commits or that [`Store::poll_events`] finds.
    pub fn event_notifier(&self) -> &EventNotifier {
        self.engine.event_notifier()
    }

    /// Checks for events that other processes have committed and notifies their subscribers. Call it
    /// every second.
    pub async fn poll_events(&self) -> Result<(), StoreError> {
        let accounts = self.event_notifier().subscribed_accounts();
        if !self.engine.check_files() || accounts.is_empty() {
            return Ok(());
        }
        let accounts: Vec<i64> = accounts.iter().map(|account| key(account.get())).collect();
        let statement =
            format!("SELECT id, last_seq FROM account WHERE {}", self.dialect().is_any("id", "$1"));
        let newest = self
            .read("poll_events", ReadPath::Point, statement, values![accounts], |row| {
                Ok((row.account_id("id")?, row.number("last_seq")?))
            })
            .await?;
        self.event_notifier().notify(&newest);
        Ok(())
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

/// The number of the newest event, and the event of the row, if there is one.
fn page_row(row: &Row<'_>) -> Result<(u64, Option<Event>), StoreError> {
    let seq: Option<i64> = row.value("seq")?;
    let event = seq.map(|_| event(row)).transpose()?;
    Ok((row.number("last_seq")?, event))
}
