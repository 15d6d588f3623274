//! The open connections of a listener. Their number is limited; when the limit is reached, a
//! connection whose client sends no request, or does not read its response, is closed to make room.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{
    activity::{Awaited, ClientWait, ConnectionActivity, Phase},
    slow_clients::SlowClientLog,
};

/// An idle connection is closed first if no request has come for this long.
const LONG_IDLE: Duration = Duration::from_secs(1);

/// A connection that is idle for less than this is closed only once all have been taken for as long:
/// its own client uses it, and the next request may be on the way.
const MIN_IDLE: Duration = Duration::from_millis(250);

/// Time that a client has for its header although others wait for its connection. Most headers arrive
/// in one packet.
const MIN_HEADER_TIME: Duration = Duration::from_millis(100);

/// How long a client may let the server wait for its body, or for room for its response, although others
/// wait for its connection: a round trip of a slow network.
const MIN_STALL_TIME: Duration = Duration::from_millis(250);

/// The same, once all connections have been taken for [`MIN_IDLE`] and none is idle: longer than from one
/// packet to the next.
const MIN_TRANSFER_WAIT: Duration = Duration::from_millis(25);

/// Maximum pause between two searches for a connection to close. The one that was found may have got a
/// request in the meantime, or needs a moment to close.
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The open connections of a listener.
pub(super) struct OpenConnections {
    slots: Arc<Semaphore>,
    limit: u32,
    /// Pause between two searches for a connection to close.
    retry_interval: Duration,
    table: Mutex<Table>,
    /// Since when each new connection had to wait for a slot.
    full_since: Mutex<Option<Instant>>,
    slow_clients: SlowClientLog,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    /// By id, which is the order in which they were accepted.
    open: BTreeMap<u64, Arc<ConnectionActivity>>,
    /// Connections without a request at the last scan, with their state at that time, except those that
    /// were used within the last second. The first one to close is the last. As long as its state has
    /// not changed, no other connection has waited for longer, so that many evictions need only one scan.
    candidates: Vec<(u64, u64)>,
    /// The connection that was asked to close last, with its state at that time.
    closing: Option<(u64, u64)>,
}

impl OpenConnections {
    pub(super) fn new(limit: usize, retry_interval: Duration) -> Arc<Self> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let slots = Arc::new(Semaphore::new(limit as usize));
        let (table, full_since) = (Mutex::default(), Mutex::default());
        let slow_clients = SlowClientLog::default();
        let retry_interval = retry_interval.min(MAX_RETRY_INTERVAL);
        Arc::new(Self { slots, limit, retry_interval, table, full_since, slow_clients })
    }

    /// Takes a slot for a new connection. If there is none, evicts a connection without a request, or
    /// waits for one that ends or becomes idle.
    pub(super) async fn admit(self: &Arc<Self>) -> OpenConnection {
        let permit = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => {
                *self.full_since() = None;
                Some(permit)
            }
            Err(_) => self.make_room().await,
        };
        let activity = Arc::new(ConnectionActivity::new(Phase::New));
        let mut table = self.table();
        let id = table.next_id;
        table.next_id += 1;
        table.open.insert(id, Arc::clone(&activity));
        drop(table);
        OpenConnection { id, activity, connections: Arc::clone(self), _permit: permit }
    }

    /// Asks a connection that waits for its client to close. Of those that are used, only one that has
    /// been idle for this long.
    pub(super) fn evict(&self, min_idle: Duration) {
        self.table().evict(min_idle);
    }

    /// Asks all connections to end after their running requests.
    pub(super) fn shut_down(&self) {
        self.table().open.values().for_each(|activity| activity.shut_down());
    }

    async fn make_room(&self) -> Option<OwnedSemaphorePermit> {
        let full_since = *self.full_since().get_or_insert_with(Instant::now);
        loop {
            self.evict(if full_since.elapsed() < MIN_IDLE { MIN_IDLE } else { Duration::ZERO });
            let slot = Arc::clone(&self.slots).acquire_owned();
            if let Ok(permit) = timeout(self.retry_interval, slot).await {
                return permit.ok();
            }
        }
    }

    /// Waits until all connections are closed.
    pub(super) async fn closed(&self) {
        let _ = self.slots.acquire_many(self.limit).await;
    }

    fn full_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.full_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn evict(&mut self, min_idle: Duration) {
        // A connection needs a moment to close. It stays open only if its state changes before.
        let is_closing = self.closing.is_some_and(|(id, state)| self.evict_unchanged(id, state));
        if is_closing || self.evict_next() {
            return;
        }
        let waits = self.open.iter().filter_map(|(id, activity)| {
            let wait = activity.client_wait()?;
            Some((rank(&wait, min_idle)?, wait.time, Reverse(*id), wait.state))
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable();
        let changing = waits.partition_point(|(rank, ..)| *rank <= Rank::Stalled);
        // Of the ranks that change within a second, one is closed, and only if there is no other.
        let first = if changing == waits.len() { changing.saturating_sub(1) } else { changing };
        let candidates = waits.into_iter().skip(first);
        self.candidates = candidates.map(|(_, _, Reverse(id), state)| (id, state)).collect();
        self.evict_next();
    }

    /// Evicts the next connection that has not changed since the last scan. Returns whether there is
    /// one.
    fn evict_next(&mut self) -> bool {
        self.closing = loop {
            match self.candidates.pop() {
                Some((id, state)) if !self.evict_unchanged(id, state) => {}
                found => break found,
            }
        };
        self.closing.is_some()
    }

    /// Asks a connection to close if it is open and in this state.
    fn evict_unchanged(&self, id: u64, state: u64) -> bool {
        self.open.get(&id).is_some_and(|activity| activity.evict(state))
    }
}

/// Connections with the highest rank are closed first, and among them the one that has waited longest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A header, a body or a response goes on slowly.
    Slow,
    /// Idle, but used a moment ago.
    UsedOften,
    /// Idle, but used within the last second.
    Used,
    /// A body or a response does not go on.
    Stalled,
    /// The header is incomplete.
    SlowHeader,
    /// Idle for long.
    LongIdle,
}

/// The rank of a connection that waits for its client; `None` if it is not closed now.
fn rank(wait: &ClientWait, min_idle: Duration) -> Option<Rank> {
    match (wait.awaited, wait.time) {
        (Awaited::Body | Awaited::Response, time) if time >= MIN_STALL_TIME => Some(Rank::Stalled),
        (Awaited::Header, time) if time >= MIN_HEADER_TIME => Some(Rank::SlowHeader),
        (Awaited::Header | Awaited::Body | Awaited::Response, time) => {
            (min_idle.is_zero() && time >= MIN_TRANSFER_WAIT).then_some(Rank::Slow)
        }
        (Awaited::Request, time) if time >= LONG_IDLE => Some(Rank::LongIdle),
        (Awaited::Request, time) if time >= MIN_IDLE => Some(Rank::Used),
        (Awaited::Request, time) => (time >= min_idle).then_some(Rank::UsedOften),
    }
}

/// An open connection. Dropping it frees its slot.
pub(super) struct OpenConnection {
    id: u64,
    pub(super) activity: Arc<ConnectionActivity>,
    connections: Arc<OpenConnections>,
    /// `None` only if the slots were closed, which does not happen.
    _permit: Option<OwnedSemaphorePermit>,
}

impl OpenConnection {
    /// The log of clients of the listener that do not read.
    pub(super) fn slow_clients(&self) -> &SlowClientLog {
        &self.connections.slow_clients
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.table().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
