//! Statuses of messages: which endpoints have due ones, and which are sent next.

use galley_domain::{
    emulator::{
        clock::Clock,
        messages::{MessageId, timeline},
        recipients::MessageFate,
    },
    id::AccountId,
    rulebook::Category,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    DueStatus, StatusCursor, StoreError,
    emulator::{
        clock,
        messages::{failure, fate},
    },
    stored_row::{Row, StoredRow as _},
};

/// The number of statuses of a message that does not fail.
pub(crate) const POSITIONS: usize = 3;

/// Whether the endpoint `w` of the account `a` gets statuses, as SQL.
pub(crate) const RECEIVES_STATUSES: &str = "w.format = 'whatsapp' AND w.disabled_at IS NULL AND \
     a.disabled_at IS NULL AND (a.emulator = 'standard' OR (a.emulator = 'faithful' AND \
     w.subscribed))";

/// The time of each position after the send. It is the same for all messages.
fn offsets() -> [SignedDuration; POSITIONS] {
    let steps = timeline(MessageFate::Read);
    std::array::from_fn(|position| steps[position].after)
}

/// For each position, the time of the latest send whose status is due at a time of the account's
/// clock. No message is sent before the one with the number before, so the first message after that
/// time ends the search for due ones.
pub(crate) fn latest_due_sends(now: Timestamp) -> [Timestamp; POSITIONS] {
    offsets().map(|offset| now.checked_sub(offset).unwrap_or(Timestamp::MIN))
}

impl StatusCursor {
    /// Reads the columns `sent`, `delivered` and `read`.
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self::from([row.number("sent")?, row.number("delivered")?, row.number("read")?]))
    }

    /// The numbers by the positions of the statuses.
    pub(crate) fn numbers(self) -> [u64; POSITIONS] {
        [self.sent, self.delivered, self.read]
    }
}

impl From<[u64; POSITIONS]> for StatusCursor {
    fn from([sent, delivered, read]: [u64; POSITIONS]) -> Self {
        Self { sent, delivered, read }
    }
}

/// What the search for work knows of an endpoint.
pub(crate) struct EndpointStatuses {
    clock: Clock,
    last_message: u64,
    /// `None` before the first lease.
    cursor: Option<StatusCursor>,
    /// For each position, when the first message beyond the cursor was sent, if it is kept.
    first: [Option<Timestamp>; POSITIONS],
    leased_until: Option<Timestamp>,
    resting_until: Option<Timestamp>,
}

impl EndpointStatuses {
    /// Reads a row with the columns of the endpoint, its cursor and its account's clock.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let has_cursor = row.value::<Option<i64>>("sent")?.is_some();
        Ok(Self {
            clock: clock(row)?,
            last_message: row.number("last_message")?,
            cursor: has_cursor.then(|| StatusCursor::from_row(row)).transpose()?,
            first: [
                row.optional_timestamp("first_sent")?,
                row.optional_timestamp("first_delivered")?,
                row.optional_timestamp("first_read")?,
            ],
            leased_until: row.optional_timestamp("leased_until")?,
            resting_until: row.optional_timestamp("resting_until")?,
        })
    }

    /// Whether a lease would return statuses or move the cursor at a real time.
    pub(crate) fn has_work(&self, at: Timestamp) -> bool {
        if [self.leased_until, self.resting_until].into_iter().flatten().any(|until| until > at) {
            return false;
        }
        let Some(cursor) = self.cursor else { return self.last_message > 0 };
        let now = self.clock.now(at);
        let positions = cursor.numbers().into_iter().zip(self.first).zip(offsets());
        positions.into_iter().any(|((number, first), offset)| {
            // Without a first message, those beyond the cursor were deleted.
            number < self.last_message && first.is_none_or(|sent_at| sent_at + offset <= now)
        })
    }
}

/// A message without its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentMessage {
    number: u64,
    pub(crate) sent_at: Timestamp,
    failure: Option<u32>,
    phone: String,
    to: String,
    category: Category,
    callback_data: Option<String>,
}

impl SentMessage {
    /// The columns that [`read`](Self::read) needs.
    pub(crate) const COLUMNS: &str =
        "number, sent_at, failure, phone_id, recipient, category, callback_data";

    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            number: row.number("number")?,
            sent_at: row.timestamp("sent_at")?,
            failure: failure(row)?,
            phone: row.value("phone_id")?,
            to: row.value("recipient")?,
            category: row.category("category")?,
            callback_data: row.value("callback_data")?,
        })
    }
}

/// The messages whose statuses an endpoint has not got, from one snapshot.
pub(crate) struct PendingStatuses {
    pub(crate) account: AccountId,
    pub(crate) cursor: StatusCursor,
    /// The number of the account's newest message.
    pub(crate) last_message: u64,
    /// For each position, the messages beyond the cursor whose status is due, and the next one, in the
    /// order of their numbers; at most `limit`.
    pub(crate) messages: [Vec<SentMessage>; POSITIONS],
    pub(crate) limit: usize,
}

/// The statuses to send next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NextStatuses {
    pub(crate) statuses: Vec<DueStatus>,
    /// The cursor before the first of them: beyond what is deleted or has no status.
    pub(crate) cursor: StatusCursor,
    /// If there are none, when more may be due on the account's clock.
    pub(crate) next_at: Option<Timestamp>,
}

impl PendingStatuses {
    /// Merges the positions by time, number and position, up to a time of the account's clock.
    ///
    /// Each position comes later than the one before. So in this order, a status comes after the
    /// earlier ones of its message, also where `limit` cuts the list off.
    pub(crate) fn next(self, now: Timestamp) -> NextStatuses {
        let mut cursor = self.cursor.numbers();
        let mut times = Vec::new();
        for (position, messages) in self.messages.iter().enumerate() {
            if messages.is_empty() {
                cursor[position] = cursor[position].max(self.last_message);
            }
            let offset = offsets()[position];
            times.extend(messages.iter().map(|it| (it.sent_at + offset, it.number, position, it)));
        }
        times.sort_unstable_by_key(|(time, number, position, _)| (*time, *number, *position));
        let due = times.partition_point(|(time, ..)| *time <= now);
        let limit = self.limit.max(1);
        let taken = due.min(limit);
        // More messages may follow where the limit has cut a position off.
        let is_cut_off = taken > 0 && self.messages.iter().any(|it| it.len() >= limit);
        let mut next = NextStatuses {
            statuses: Vec::new(),
            cursor: cursor.into(),
            next_at: if is_cut_off { Some(now) } else { times.get(taken).map(|it| it.0) },
        };
        for (at, number, position, message) in &times[..taken] {
            cursor[*position] = *number;
            let step = timeline(fate(message.failure)).into_iter().nth(*position);
            if let Some(step) = step {
                next.statuses.push(DueStatus {
                    message: MessageId { account: self.account, number: *number },
                    phone: message.phone.clone(),
                    to: message.to.clone(),
                    category: message.category,
                    status: step.status,
                    code: step.code,
                    at: *at,
                    callback_data: message.callback_data.clone(),
                    cursor: cursor.into(),
                });
            } else {
                // A failed message is never read: the cursor passes that position.
                let passed = next.statuses.last_mut().map(|last| &mut last.cursor);
                *passed.unwrap_or(&mut next.cursor) = cursor.into();
            }
        }
        next
    }
}

#[cfg(test)]
mod tests;
