//! The pool of idle connections. Reuse saves the TLS handshake, which costs more than the request.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use url::Url;

/// Maximum idle connections per origin.
const MAX_IDLE_PER_ORIGIN: usize = 8;

/// Maximum idle connections in total.
const MAX_IDLE: usize = 64;

/// How long a connection may stay idle. Most receivers and load balancers allow longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The origin of a URL. A connection is never used for another origin, even at the same address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origin {
    pub(super) fn of(url: &Url) -> Self {
        Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default(),
        }
    }
}

/// A connection that can be pooled.
pub(super) trait Poolable: Send + 'static {
    /// Whether the peer has closed the connection.
    fn is_closed(&self) -> bool;
}

/// A pool of idle connections.
pub(super) struct Pool<T>(Arc<Mutex<IdleSet<T>>>);

struct IdleSet<T> {
    /// Oldest first.
    idle: VecDeque<Idle<T>>,
    /// Whether a sweeper task is running.
    has_sweeper: bool,
}

struct Idle<T> {
    origin: Origin,
    expires: Instant,
    connection: T,
}

impl<T: Poolable> Pool<T> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(IdleSet { idle: VecDeque::new(), has_sweeper: false })))
    }

    /// Takes the most recently used connection to an origin.
    pub(super) fn take(&self, origin: &Origin) -> Option<T> {
        self.with_lock(|idle_set| idle_set.take(origin, Instant::now()))
    }

    /// Adds a connection. Evicts the oldest one if a limit is reached.
    pub(super) fn put(&self, origin: Origin, connection: T) {
        let needs_sweeper = self.with_lock(|idle_set| {
            idle_set.put(origin, connection, Instant::now());
            !std::mem::replace(&mut idle_set.has_sweeper, true)
        });
        if needs_sweeper {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
    }

    /// Drops all connections to an origin. Call it after a timeout: if a middlebox has dropped one
    /// connection without closing it, the others are likely dead, too.
    pub(super) fn clear(&self, origin: &Origin) {
        self.with_lock(|idle_set| idle_set.clear(origin));
    }

    fn with_lock<R>(&self, work: impl FnOnce(&mut IdleSet<T>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Drops expired connections, even if no more requests are sent. Ends when the pool is empty or
/// dropped.
async fn sweep<T: Poolable>(pool: Weak<Mutex<IdleSet<T>>>) {
    loop {
        let next = {
            let Some(pool) = pool.upgrade() else { return };
            let mut idle_set = pool.lock().unwrap_or_else(PoisonError::into_inner);
            idle_set.evict_expired(Instant::now());
            let Some(first) = idle_set.idle.front() else {
                idle_set.has_sweeper = false;
                return;
            };
            first.expires
        };
        sleep_until(next).await;
    }
}

impl<T: Poolable> IdleSet<T> {
    fn take(&mut self, origin: &Origin, now: Instant) -> Option<T> {
        self.evict_expired(now);
        let index = self.idle.iter().rposition(|it| it.origin == *origin)?;
        self.idle.remove(index).map(|it| it.connection)
    }

    fn put(&mut self, origin: Origin, connection: T, now: Instant) {
        self.evict_expired(now);
        let mut same = (0..self.idle.len()).filter(|&it| self.idle[it].origin == origin);
        if let Some(oldest) = same.next()
            && same.count() + 1 >= MAX_IDLE_PER_ORIGIN
        {
            self.idle.remove(oldest);
        }
        if self.idle.len() >= MAX_IDLE {
            self.idle.pop_front();
        }
        self.idle.push_back(Idle { origin, expires: now + IDLE_TIMEOUT, connection });
    }

    fn clear(&mut self, origin: &Origin) {
        self.idle.retain(|it| it.origin != *origin);
    }

    fn evict_expired(&mut self, now: Instant) {
        self.idle.retain(|it| it.expires > now && !it.connection.is_closed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fake connection: its number, and whether it is closed.
    struct Fake(usize, bool);

    impl Poolable for Fake {
        fn is_closed(&self) -> bool {
            self.1
        }
    }

    fn origin(url: &str) -> Origin {
        Origin::of(&Url::parse(url).unwrap())
    }

    fn idle_set() -> IdleSet<Fake> {
        IdleSet { idle: VecDeque::new(), has_sweeper: false }
    }

    #[test]
    fn take_returns_the_most_recently_used_connection_of_the_same_origin() {
        let (mut idle_set, now) = (idle_set(), Instant::now());
        let here = origin("https://a.example");
        idle_set.put(here.clone(), Fake(1, false), now);
        idle_set.put(here.clone(), Fake(2, false), now);
        let others = ["http://a.example", "https://a.example:8443", "https://b.example"];
        for other in others {
            assert!(idle_set.take(&origin(other), now).is_none(), "{other}");
        }
        let same = origin("https://A.example:443/other?path");
        assert_eq!(idle_set.take(&same, now).map(|it| it.0), Some(2));
        assert_eq!(idle_set.take(&here, now).map(|it| it.0), Some(1));
        assert!(idle_set.take(&here, now).is_none());
    }

    #[test]
    fn take_skips_closed_and_expired_connections() {
        let (mut idle_set, now) = (idle_set(), Instant::now());
        let here = origin("https://a.example");
        idle_set.put(here.clone(), Fake(1, true), now);
        assert!(idle_set.take(&here, now).is_none());
        idle_set.put(here.clone(), Fake(2, false), now);
        assert!(idle_set.take(&here, now + IDLE_TIMEOUT).is_none());
        assert!(idle_set.idle.is_empty());
    }

    #[test]
    fn clear_drops_only_the_connections_of_one_origin() {
        let (mut idle_set, now) = (idle_set(), Instant::now());
        let [here, there] = ["https://a.example", "https://b.example"].map(origin);
        for it in [&here, &there, &here] {
            idle_set.put(it.clone(), Fake(0, false), now);
        }
        idle_set.clear(&here);
        assert!(idle_set.take(&here, now).is_none());
        assert!(idle_set.take(&there, now).is_some());
    }

    #[test]
    fn put_evicts_the_oldest_connection_at_each_limit() {
        let (mut idle_set, now) = (idle_set(), Instant::now());
        let here = origin("https://a.example");
        for number in 0..20 {
            idle_set.put(here.clone(), Fake(number, false), now);
        }
        let pooled: Vec<usize> = idle_set.idle.iter().map(|it| it.connection.0).collect();
        assert_eq!(pooled, (12..20).collect::<Vec<_>>());
        for number in 0..200 {
            let other = origin(&format!("https://{number}.example"));
            idle_set.put(other, Fake(number, false), now);
        }
        assert_eq!(idle_set.idle.len(), MAX_IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn expired_connections_are_dropped_even_if_no_request_follows() {
        let pool = Pool::new();
        pool.put(origin("https://a.example"), Fake(1, false));
        let idle = || pool.with_lock(|idle_set| idle_set.idle.len());
        assert_eq!(idle(), 1);
        // The sweeper's timer is due before this one.
        sleep_until(Instant::now() + IDLE_TIMEOUT + Duration::from_secs(1)).await;
        assert_eq!(idle(), 0);
    }
}
