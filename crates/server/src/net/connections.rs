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

/// Time that a client has to send the next part of its body, or to read the next part of its response,
/// although others wait for its connection: a round trip of a slow network.
const MIN_STALL_TIME: Duration = Duration::from_millis(250);

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

    /// Asks a connection without a request to close, if there is one that has been idle for this long.
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
        if self.evict_next() {
            return;
        }
        let waits = self.open.iter().filter_map(|(id, activity)| {
            let wait = activity.client_wait()?;
            Some((rank(&wait, min_idle)?, wait.time, Reverse(*id), wait.state))
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable();
        let used_often = waits.partition_point(|(rank, ..)| *rank <= Rank::Used);
        // Of the ranks that change within a second, one is closed, and only if there is no other.
        let first =
            if used_often == waits.len() { used_often.saturating_sub(1) } else { used_often };
        let candidates = waits.into_iter().skip(first);
        self.candidates = candidates.map(|(_, _, Reverse(id), state)| (id, state)).collect();
        self.evict_next();
    }

    /// Evicts the next connection that has not changed since the last scan. Returns whether there is
    /// one.
    fn evict_next(&mut self) -> bool {
        while let Some((id, state)) = self.candidates.pop() {
            if self.open.get(&id).is_some_and(|activity| activity.evict(state)) {
                return true;
            }
        }
        false
    }
}

/// Connections with the highest rank are closed first, and among them the one that has waited longest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Idle, but used a moment ago.
    UsedOften,
    /// A body or a response does not go on.
    Stalled,
    /// Idle, but used within the last second.
    Used,
    /// The header is incomplete.
    SlowHeader,
    /// Idle for long.
    LongIdle,
}

/// The rank of a connection that waits for its client; `None` if it is not closed now.
fn rank(wait: &ClientWait, min_idle: Duration) -> Option<Rank> {
    match (wait.awaited, wait.time) {
        (Awaited::Body | Awaited::Response, time) => {
            (time >= MIN_STALL_TIME).then_some(Rank::Stalled)
        }
        (Awaited::Header, time) => (time >= MIN_HEADER_TIME).then_some(Rank::SlowHeader),
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
mod tests {
    use super::*;
    use crate::net::activity::CloseRequest;

    /// What a connection does, and since how many milliseconds.
    enum Doing {
        Idle(u64),
        Header(u64),
        Body(u64),
        Response(u64),
        Nothing(u64),
        Request,
    }
    use Doing::{Body, Header, Idle, Nothing, Request, Response};

    /// A full table.
    async fn full(doing: &[Doing]) -> (Arc<OpenConnections>, Vec<OpenConnection>) {
        let connections = OpenConnections::new(doing.len(), Duration::from_millis(1));
        let mut open = Vec::new();
        for _ in doing {
            let connection = connections.admit().await;
            connection.activity.enter(Phase::Processing);
            open.push(connection);
        }
        // Back from the longest one.
        for millis in (0..=10_000).rev() {
            for (at, connection) in open.iter_mut().enumerate() {
                match doing[at] {
                    Idle(since) if since == millis => connection.activity.enter(Phase::Idle),
                    Header(since) if since == millis => {
                        connection.activity.enter(Phase::Idle);
                        connection.activity.record_read(true);
                    }
                    Body(since) if since == millis => connection.activity.wait_for_body(),
                    Response(since) if since == millis => {
                        connection.activity.begin_response();
                        connection.activity.record_write(None);
                    }
                    Nothing(since) if since == millis => {
                        let activity = Arc::new(ConnectionActivity::new(Phase::New));
                        connections.table().open.insert(connection.id, Arc::clone(&activity));
                        connection.activity = activity;
                    }
                    _ => {}
                }
            }
            if millis > 0 {
                tokio::time::advance(Duration::from_millis(1)).await;
            }
        }
        (connections, open)
    }

    /// Closes the connections that are evicted, in this order, as new ones arrive.
    async fn evicted(
        connections: &Arc<OpenConnections>,
        mut open: Vec<OpenConnection>,
        count: usize,
    ) -> Vec<u64> {
        let (mut order, mut admitted) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let close = async {
                let waits = open.iter().map(|it| Box::pin(it.activity.close_requested()));
                let index = first_of(waits.collect()).await;
                order.push(open.remove(index).id);
            };
            let (new, ()) = tokio::join!(connections.admit(), close);
            new.activity.enter(Phase::Processing);
            admitted.push(new);
        }
        order
    }

    /// The index of the first future that completes.
    async fn first_of<F: Future<Output = CloseRequest> + Unpin>(mut futures: Vec<F>) -> usize {
        std::future::poll_fn(|context| {
            let mut all = futures.iter_mut();
            match all.position(|it| std::pin::Pin::new(it).poll(context).is_ready()) {
                Some(index) => std::task::Poll::Ready(index),
                None => std::task::Poll::Pending,
            }
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_has_been_idle_longest_makes_room() {
        let doing = [Idle(2_000), Request, Idle(5_000), Idle(2_000), Idle(1_000)];
        let (connections, open) = full(&doing).await;
        assert_eq!(evicted(&connections, open, 4).await, [2, 0, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn incomplete_headers_make_room_before_connections_that_are_used_often() {
        let doing = [Idle(900), Header(150), Request, Idle(250), Nothing(200), Idle(1_500)];
        let (connections, open) = full(&doing).await;
        assert_eq!(evicted(&connections, open, 5).await, [5, 4, 1, 0, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_go_on_makes_room_after_connections_without_a_request() {
        let doing = [Body(900), Idle(260), Body(240), Header(110), Idle(1_000), Body(300)];
        let (connections, open) = full(&doing).await;
        assert_eq!(evicted(&connections, open, 5).await, [4, 3, 1, 0, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_read_makes_room_after_connections_without_a_request() {
        let doing = [Response(900), Idle(260), Response(240), Body(300), Idle(100)];
        let (connections, open) = full(&doing).await;
        assert_eq!(evicted(&connections, open, 3).await, [1, 0, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_client_waits_for_no_responses_that_are_not_read_again_and_again() {
        let (connections, open) = full(&[Response(0), Response(10), Idle(0), Request]).await;
        let used = async {
            let mut often = tokio::time::interval(Duration::from_millis(5));
            loop {
                often.tick().await;
                open[2].activity.enter(Phase::Processing);
                open[2].activity.enter(Phase::Idle);
            }
        };
        let waits = open.iter().map(|it| Box::pin(it.activity.close_requested()));
        let began = Instant::now();
        let evicted = tokio::select! {
            _ = connections.admit() => unreachable!("all connections stay open"),
            () = used => unreachable!("it is used for ever"),
            evicted = first_of(waits.collect()) => evicted,
        };
        assert_eq!(evicted, 1);
        assert!(began.elapsed() < 2 * MIN_IDLE, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn clients_of_connections_that_are_always_used_let_each_new_one_in_at_once() {
        let (connections, open) = full(&[Idle(0), Idle(0), Idle(0)]).await;
        let mut tasks = tokio::task::JoinSet::new();
        for connection in open {
            // Until it is closed, it has a request every 5 ms, and its client comes back at once.
            let connections = Arc::clone(&connections);
            tasks.spawn(async move {
                let mut connection = connection;
                loop {
                    let used = async {
                        let mut often = tokio::time::interval(Duration::from_millis(5));
                        loop {
                            connection.activity.enter(Phase::Processing);
                            connection.activity.enter(Phase::Idle);
                            often.tick().await;
                        }
                    };
                    tokio::select! {
                        () = used => {}
                        _ = connection.activity.close_requested() => {}
                    }
                    drop(connection);
                    connection = connections.admit().await;
                }
            });
        }
        let mut slowest = [Duration::ZERO; 2];
        for number in 0..40 {
            let began = Instant::now();
            drop(connections.admit().await);
            let slowest = &mut slowest[usize::from(number > 0)];
            *slowest = began.elapsed().max(*slowest);
        }
        assert!(slowest[0] < 2 * MIN_IDLE, "{slowest:?}");
        assert!(slowest[1] < MIN_IDLE / 5, "{slowest:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_busy_again_is_not_evicted() {
        let (connections, open) = full(&[Idle(9_000), Idle(5_000), Idle(2_000)]).await;
        connections.evict(MIN_IDLE);
        assert_eq!(connections.table().candidates.len(), 2, "one scan serves many evictions");
        open[0].activity.enter(Phase::Processing);
        open[1].activity.enter(Phase::Processing);
        assert_eq!(evicted(&connections, open, 1).await, [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_request_may_be_on_the_way_is_not_evicted() {
        let (connections, mut open) = full(&[Request, Idle(200), Header(50), Nothing(50)]).await;
        let mut waiting = Box::pin(connections.admit());
        assert!(timeout(Duration::from_millis(40), waiting.as_mut()).await.is_err());
        for connection in &open {
            let closes = timeout(Duration::ZERO, connection.activity.close_requested()).await;
            assert!(closes.is_err());
        }
        // One that ends makes room.
        drop(open.remove(0));
        waiting.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_a_bounded_time_for_connections_that_are_always_used() {
        let (connections, open) = full(&[Request, Idle(0), Idle(1)]).await;
        let used = async {
            let mut often = tokio::time::interval(Duration::from_millis(5));
            loop {
                often.tick().await;
                for connection in &open[1..] {
                    connection.activity.enter(Phase::Processing);
                    connection.activity.enter(Phase::Idle);
                }
            }
        };
        let waits = open[1..].iter().map(|it| Box::pin(it.activity.close_requested()));
        let evicted = async {
            let began = Instant::now();
            tokio::select! {
                _ = connections.admit() => unreachable!("all connections stay open"),
                () = used => unreachable!("they are used for ever"),
                _ = first_of(waits.collect()) => began.elapsed(),
            }
        };
        assert!(evicted.await < 2 * MIN_IDLE);
    }
}
