//! The open connections of a listener. Their number is limited; when the limit is reached, the
//! connection that has been idle longest is closed to make room.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    activity::{ConnectionActivity, Phase},
    slow_clients::SlowClientLog,
};

/// The open connections of a listener.
pub(super) struct OpenConnections {
    slots: Arc<Semaphore>,
    limit: u32,
    /// Pause between two searches for an idle connection.
    retry_interval: Duration,
    table: Mutex<Table>,
    slow_clients: SlowClientLog,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    /// By id, which is the order in which they were accepted.
    open: BTreeMap<u64, Arc<ConnectionActivity>>,
    /// Connections that were idle at the last scan, with their state at that time. The one that
    /// had been idle longest is the last. As long as its state has not changed, no other connection
    /// has been idle for longer, so that many evictions need only one scan.
    idle: Vec<(u64, u64)>,
}

impl OpenConnections {
    pub(super) fn new(limit: usize, retry_interval: Duration) -> Arc<Self> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let slots = Arc::new(Semaphore::new(limit as usize));
        let (table, slow_clients) = (Mutex::default(), SlowClientLog::default());
        Arc::new(Self { slots, limit, retry_interval, table, slow_clients })
    }

    /// Takes a slot for a new connection. If there is none, evicts the connection that has been
    /// idle longest, or waits for one that ends or becomes idle.
    pub(super) async fn admit(self: &Arc<Self>) -> OpenConnection {
        let permit = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => Some(permit),
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

    /// Asks the connection that has been idle longest to close, if there is one.
    pub(super) fn evict_longest_idle(&self) {
        self.table().evict_longest_idle();
    }

    /// Asks all connections to end after their running requests.
    pub(super) fn shut_down(&self) {
        self.table().open.values().for_each(|activity| activity.shut_down());
    }

    async fn make_room(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            self.evict_longest_idle();
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

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn evict_longest_idle(&mut self) {
        if self.evict_next() {
            return;
        }
        let idle = self.open.iter().filter_map(|(id, activity)| {
            activity.idle_polls().map(|(polls, state)| (polls, Reverse(*id), state))
        });
        let mut idle: Vec<_> = idle.collect();
        idle.sort_unstable();
        self.idle = idle.into_iter().map(|(_, Reverse(id), state)| (id, state)).collect();
        self.evict_next();
    }

    /// Evicts the next connection that has been idle since the last scan. Returns whether there is
    /// one.
    fn evict_next(&mut self) -> bool {
        while let Some((id, state)) = self.idle.pop() {
            if self.open.get(&id).is_some_and(|activity| activity.evict(state)) {
                return true;
            }
        }
        false
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
    use crate::{limits::Limits, net::activity::CloseRequest};

    /// A full table. Each connection has been idle for that many polls, or is busy (`None`).
    async fn full(idle_polls: &[Option<u32>]) -> (Arc<OpenConnections>, Vec<OpenConnection>) {
        let connections = OpenConnections::new(idle_polls.len(), Duration::from_millis(1));
        let mut open = Vec::new();
        for polls in idle_polls {
            let connection = connections.admit().await;
            if polls.is_none() {
                connection.activity.enter(Phase::Processing);
            }
            for _ in 0..=polls.unwrap_or(9) {
                connection.activity.poll_deadlines(&Limits::default());
            }
            open.push(connection);
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

    #[tokio::test]
    async fn the_connection_that_has_been_idle_longest_makes_room() {
        let (connections, open) = full(&[Some(2), None, Some(5), Some(2), Some(1)]).await;
        assert_eq!(evicted(&connections, open, 4).await, [2, 0, 3, 4]);
    }

    #[tokio::test]
    async fn a_connection_that_is_busy_again_is_not_evicted() {
        let (connections, open) = full(&[Some(9), Some(5), Some(2)]).await;
        connections.table().evict_longest_idle();
        assert_eq!(connections.table().idle.len(), 2, "one scan serves many evictions");
        open[0].activity.enter(Phase::Processing);
        open[1].activity.enter(Phase::Processing);
        assert_eq!(evicted(&connections, open, 1).await, [2]);
    }

    #[tokio::test]
    async fn without_an_idle_connection_a_new_one_waits() {
        // A connection that was accepted a moment ago may be about to send its request.
        let (connections, mut open) = full(&[None, Some(0)]).await;
        let mut waiting = Box::pin(connections.admit());
        let interval = Duration::from_millis(20);
        assert!(timeout(interval, waiting.as_mut()).await.is_err());
        let busy = open.remove(0);
        assert!(timeout(Duration::ZERO, open[0].activity.close_requested()).await.is_err());
        drop(busy);
        waiting.await;
    }
}
