//! Idle connections, kept a while for the next message to the same receiver: a handshake for each
//! message would be most of the work.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use url::Url;

/// As many are kept for one origin.
const MOST_OF_ONE: usize = 8;

/// As many are kept in all.
const MOST: usize = 64;

/// So long is one kept. Receivers and what stands before them usually wait longer.
const KEPT: Duration = Duration::from_secs(30);

/// To whom a connection leads. A connection is used for no other, even at the same address.
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

/// What can be kept.
pub(super) trait Poolable: Send + 'static {
    /// Whether it was closed from the other side.
    fn is_closed(&self) -> bool;
}

pub(super) struct Pool<T>(Arc<Mutex<Shelf<T>>>);

struct Shelf<T> {
    /// The one kept longest is in front.
    idle: VecDeque<Idle<T>>,
    /// Whether a task is there that drops what has been kept long enough.
    swept: bool,
}

struct Idle<T> {
    origin: Origin,
    until: Instant,
    connection: T,
}

impl<T: Poolable> Pool<T> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Shelf { idle: VecDeque::new(), swept: false })))
    }

    /// The connection to this origin that was used last.
    pub(super) fn take(&self, origin: &Origin) -> Option<T> {
        self.with(|shelf| shelf.take(origin, Instant::now()))
    }

    /// Keeps a connection, in the place of another one if there is no room.
    pub(super) fn put(&self, origin: Origin, connection: T) {
        let unswept = self.with(|shelf| {
            shelf.put(origin, connection, Instant::now());
            !std::mem::replace(&mut shelf.swept, true)
        });
        if unswept {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
    }

    /// Gives up all connections to this origin: one was found to lead nowhere without having been
    /// closed, as when something on the way has forgotten it, and the others are no better.
    pub(super) fn clear(&self, origin: &Origin) {
        self.with(|shelf| shelf.clear(origin));
    }

    fn with<R>(&self, work: impl FnOnce(&mut Shelf<T>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Drops what has been kept long enough, also when nothing is sent any more. Ends when nothing is
/// kept, or with the pool.
async fn sweep<T: Poolable>(pool: Weak<Mutex<Shelf<T>>>) {
    loop {
        let next = {
            let Some(pool) = pool.upgrade() else { return };
            let mut shelf = pool.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.forget(Instant::now());
            let Some(first) = shelf.idle.front() else {
                shelf.swept = false;
                return;
            };
            first.until
        };
        sleep_until(next).await;
    }
}

impl<T: Poolable> Shelf<T> {
    fn take(&mut self, origin: &Origin, now: Instant) -> Option<T> {
        self.forget(now);
        let place = self.idle.iter().rposition(|it| it.origin == *origin)?;
        self.idle.remove(place).map(|it| it.connection)
    }

    fn put(&mut self, origin: Origin, connection: T, now: Instant) {
        self.forget(now);
        let mut same = (0..self.idle.len()).filter(|&it| self.idle[it].origin == origin);
        if let Some(oldest) = same.next()
            && same.count() + 1 >= MOST_OF_ONE
        {
            self.idle.remove(oldest);
        }
        if self.idle.len() >= MOST {
            self.idle.pop_front();
        }
        self.idle.push_back(Idle { origin, until: now + KEPT, connection });
    }

    fn clear(&mut self, origin: &Origin) {
        self.idle.retain(|it| it.origin != *origin);
    }

    fn forget(&mut self, now: Instant) {
        self.idle.retain(|it| it.until > now && !it.connection.is_closed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that knows its number and whether it is closed.
    struct Fake(usize, bool);

    impl Poolable for Fake {
        fn is_closed(&self) -> bool {
            self.1
        }
    }

    fn origin(url: &str) -> Origin {
        Origin::of(&Url::parse(url).unwrap())
    }

    fn shelf() -> Shelf<Fake> {
        Shelf { idle: VecDeque::new(), swept: false }
    }

    #[test]
    fn the_last_used_comes_first_and_only_for_its_own_origin() {
        let (mut shelf, now) = (shelf(), Instant::now());
        let here = origin("https://a.example");
        shelf.put(here.clone(), Fake(1, false), now);
        shelf.put(here.clone(), Fake(2, false), now);
        let others = ["http://a.example", "https://a.example:8443", "https://b.example"];
        for other in others {
            assert!(shelf.take(&origin(other), now).is_none(), "{other}");
        }
        let same = origin("https://A.example:443/other?path");
        assert_eq!(shelf.take(&same, now).map(|it| it.0), Some(2));
        assert_eq!(shelf.take(&here, now).map(|it| it.0), Some(1));
        assert!(shelf.take(&here, now).is_none());
    }

    #[test]
    fn what_is_closed_or_was_kept_too_long_is_not_given_out() {
        let (mut shelf, now) = (shelf(), Instant::now());
        let here = origin("https://a.example");
        shelf.put(here.clone(), Fake(1, true), now);
        assert!(shelf.take(&here, now).is_none());
        shelf.put(here.clone(), Fake(2, false), now);
        assert!(shelf.take(&here, now + KEPT).is_none());
        assert!(shelf.idle.is_empty());
    }

    #[test]
    fn an_origin_is_cleared_and_no_other() {
        let (mut shelf, now) = (shelf(), Instant::now());
        let [here, there] = ["https://a.example", "https://b.example"].map(origin);
        for place in [&here, &there, &here] {
            shelf.put(place.clone(), Fake(0, false), now);
        }
        shelf.clear(&here);
        assert!(shelf.take(&here, now).is_none());
        assert!(shelf.take(&there, now).is_some());
    }

    #[test]
    fn there_is_room_for_eight_of_one_origin_and_for_so_many_in_all() {
        let (mut shelf, now) = (shelf(), Instant::now());
        let here = origin("https://a.example");
        for number in 0..20 {
            shelf.put(here.clone(), Fake(number, false), now);
        }
        let kept: Vec<usize> = shelf.idle.iter().map(|it| it.connection.0).collect();
        assert_eq!(kept, (12..20).collect::<Vec<_>>());
        for number in 0..200 {
            let other = origin(&format!("https://{number}.example"));
            shelf.put(other, Fake(number, false), now);
        }
        assert_eq!(shelf.idle.len(), MOST);
    }
}
