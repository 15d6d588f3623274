//! Sandbox messages: their numbers and times, their pages and their retention. Each engine adds them
//! itself, in batches.

use galley_domain::{
    emulator::{
        clock::Clock,
        messages::{MAX_KEPT, MessageId, MessageStatus, RETENTION, timeline},
        recipients::MessageFate,
    },
    id::AccountId,
};
use jiff::Timestamp;

use super::clock;
use crate::{
    NewMessage, ReadKind, SentTemplate, Store, StoreError, StoreFuture, StoredMessage,
    encoding::{key, millis},
    engine::{self, Engine, Read, ReadPath, Value, Write, values},
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// Stores a message that the sandbox accepts, sent at the time of the account's clock, and
    /// deletes the messages beyond
    /// [`MAX_KEPT`](galley_domain::emulator::messages::MAX_KEPT). `None` if the account is not an
    /// emulator.
    pub fn add_message(&self, new: NewMessage) -> StoreFuture<'_, Option<StoredMessage>> {
        self.with_faults_of("add_message", self.engine.add_message(new))
    }

    /// At most `limit` of the messages that are kept, newest first; with `before`, only those before this
    /// number.
    pub fn messages(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: usize,
        at: Timestamp,
    ) -> StoreFuture<'_, Vec<StoredMessage>> {
        Box::pin(async move {
            let select = format!(
                "SELECT {COLUMNS} FROM message m JOIN emulator_clock c \
                 ON c.account_id = m.account_id LEFT JOIN template t \
                 ON t.id = m.template_id AND t.account_id = m.account_id \
                 WHERE m.account_id = $1 AND m.number < $2 AND m.created_at > $3 \
                 ORDER BY m.number DESC LIMIT $4"
            );
            let before = Value::bound(before.unwrap_or(u64::MAX));
            let values = values![account, before, retention_cutoff(at), Value::size(limit)];
            let path = ReadPath::Account(ReadKind::List, account);
            let found = self.read("messages", path, select, values, message).await?;
            let seen = found.into_iter().map(|(message, clock)| StoredMessage {
                status: status(message.failure, message.sent_at, clock.now(at)),
                ..message
            });
            Ok(seen.collect())
        })
    }
}

/// How many messages one write of retention deletes.
const MAX_MESSAGES_PER_WRITE: u64 = 1_000;

/// Maximum number of writes of one pass of retention.
const MAX_DELETE_WRITES: usize = 256;

/// Deletes expired messages, some of one account per write, also of deleted accounts.
pub(crate) async fn delete_expired_messages(
    engine: &dyn Engine,
    at: Timestamp,
) -> Result<(), StoreError> {
    let statement = "SELECT a.id FROM account a WHERE a.emulator IS NOT NULL AND (SELECT created_at \
                     FROM message m WHERE m.account_id = a.id ORDER BY m.number LIMIT 1) <= $1 \
                     ORDER BY a.id";
    let values = values![retention_cutoff(at)];
    let expired = Read::new(ReadPath::Background, statement, values, |row| row.account_id("id"));
    let mut accounts = engine::fetch(engine, expired).await?.into_iter();
    let mut next = accounts.next();
    for _ in 0..MAX_DELETE_WRITES {
        let Some(account) = next else { break };
        let delete: Write<_, u64> = Write::new((account, at), |&(account, at), tx| {
            Box::pin(async move {
                let delete = "DELETE FROM message WHERE account_id = $1 AND created_at <= $2 AND \
                              number <= (SELECT max(number) FROM (SELECT number FROM message \
                              WHERE account_id = $1 ORDER BY number LIMIT $3) AS oldest)";
                let values = values![account, retention_cutoff(at), MAX_MESSAGES_PER_WRITE];
                tx.execute(delete, &values).await
            })
        });
        if engine::run(engine, delete).await? < MAX_MESSAGES_PER_WRITE {
            next = accounts.next();
        }
    }
    Ok(())
}

/// Numbers the messages of an account in the order of their times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageCounter {
    clock: Clock,
    /// The number of the newest message.
    pub(crate) last_message: u64,
    /// When it was sent, on the account's clock.
    pub(crate) last_sent_at: Option<Timestamp>,
}

impl MessageCounter {
    /// Reads a row of `emulator_clock`.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            clock: clock(row)?,
            last_message: row.number("last_message")?,
            last_sent_at: row.optional_timestamp("last_sent_at")?,
        })
    }

    /// The number and the time of a message that is sent at a real time. Callers that send
    /// concurrently have read the real time in any order, so the time is at least that of the
    /// message before.
    pub(crate) fn next(&mut self, real: Timestamp) -> (u64, Timestamp) {
        let now = self.clock.now(real);
        let sent_at = self.last_sent_at.map_or(now, |last| last.max(now));
        self.last_message += 1;
        self.last_sent_at = Some(sent_at);
        (self.last_message, sent_at)
    }

    /// The newest message that is beyond the maximum of the account.
    pub(crate) fn last_surplus(&self) -> Option<i64> {
        self.last_message.checked_sub(MAX_KEPT).filter(|it| *it > 0).map(key)
    }
}

/// What happens to a stored message with this failure.
pub(super) fn fate(failure: Option<u32>) -> MessageFate {
    failure.map_or(MessageFate::Read, MessageFate::Fails)
}

/// The status of a message at a time of the account's clock.
fn status(failure: Option<u32>, sent_at: Timestamp, now: Timestamp) -> MessageStatus {
    let age = now.duration_since(sent_at);
    let reached = timeline(fate(failure)).into_iter().take_while(|step| step.after <= age);
    reached.last().map_or(MessageStatus::Accepted, |step| step.status)
}

/// The message as it was stored with this number and time.
pub(crate) fn sent(new: &NewMessage, number: u64, sent_at: Timestamp) -> StoredMessage {
    StoredMessage {
        id: MessageId { account: new.account, number },
        phone: new.phone.clone(),
        to: new.to.clone(),
        template: new.template,
        sent_template: None,
        version: new.version,
        category: new.category,
        texts: new.texts.clone(),
        failure: new.failure,
        sent_at,
        status: status(new.failure, sent_at, sent_at),
    }
}

/// The message in a row, and the clock of its account. Its status is that of a new message: it depends
/// on the time.
fn message(row: &Row<'_>) -> Result<(StoredMessage, Clock), StoreError> {
    let account = row.account_id("account_id")?;
    let message = StoredMessage {
        id: MessageId { account, number: row.number("number")? },
        phone: row.value("phone_id")?,
        to: row.value("recipient")?,
        template: row.template_id("template_id")?,
        sent_template: sent_template(row)?,
        version: row.number("version")?,
        category: row.category("category")?,
        texts: row.value("texts")?,
        failure: failure(row)?,
        sent_at: row.timestamp("sent_at")?,
        status: MessageStatus::Accepted,
    };
    Ok((message, clock(row)?))
}

/// The columns that [`message`] reads: those of the message `m`, of its account's clock `c`, and of
/// its template `t`, which may be missing.
const COLUMNS: &str = "c.at, c.since, m.account_id, m.number, m.sent_at, m.template_id, m.version, m.failure, \
     m.phone_id, m.recipient, m.category, m.texts, t.name, t.language, t.unique_key IS NULL AS is_deleted";

/// The template in such a row.
fn sent_template(row: &Row<'_>) -> Result<Option<SentTemplate>, StoreError> {
    let Some(name) = row.value("name")? else { return Ok(None) };
    let (language, is_deleted) = (row.value("language")?, row.value("is_deleted")?);
    Ok(Some(SentTemplate { name, language, is_deleted }))
}

pub(super) fn failure(row: &Row<'_>) -> Result<Option<u32>, StoreError> {
    row.optional("failure", |code: i64| u32::try_from(code).ok())
}

/// The callback data as it is stored: without U+0000, which PostgreSQL cannot store.
pub(crate) fn stored_callback_data(new: &NewMessage) -> Option<String> {
    new.callback_data.as_ref().map(|data| data.replace('\0', "\u{fffd}"))
}

/// Messages created at or before this real time have expired.
fn retention_cutoff(at: Timestamp) -> i64 {
    millis(at.saturating_sub(RETENTION).unwrap_or(Timestamp::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn times_never_decrease_although_real_times_do() {
        let clock = Clock { at: at(100), since: Some(at(0)) };
        let mut counter = MessageCounter { clock, last_message: 0, last_sent_at: None };
        assert_eq!(counter.next(at(5)), (1, at(105)));
        assert_eq!(counter.next(at(3)), (2, at(105)));
        assert_eq!(counter.next(at(6)), (3, at(106)));
        assert_eq!(counter.last_surplus(), None);
        counter.last_message = MAX_KEPT;
        assert_eq!(counter.last_surplus(), None);
        assert_eq!(counter.next(at(6)), (MAX_KEPT + 1, at(106)));
        assert_eq!(counter.last_surplus(), Some(1));
    }

    #[test]
    fn a_status_follows_from_the_age_and_the_failure() {
        use MessageStatus::{Accepted, Delivered, Failed, Read, Sent};
        let statuses = |failure| [-1, 0, 1, 2, 3].map(|age| status(failure, at(0), at(age)));
        assert_eq!(statuses(None), [Accepted, Sent, Delivered, Delivered, Read]);
        assert_eq!(statuses(Some(131_026)), [Accepted, Sent, Failed, Failed, Failed]);
    }
}
