//! Limits of concurrent longer reads: one for each kind, and within it a share for each account. An
//! account that lists or searches without pause delays itself, and not others.

use std::time::Duration;

use galley_domain::id::AccountId;
use tokio::time::timeout;

use crate::{
    FairSlot, FairSlots,
    KeyShare::{AtMost, HalfOfFree},
    PoolActivity, ReadKind, StoreError,
    activity::CountedSlots,
};

/// How long a read waits for a slot: as long as the slowest read that may be ahead of it.
pub(crate) const MAX_SLOT_WAIT: Duration = Duration::from_secs(10);

/// How many parts of files are read from a database server at a time: the reads are short, and the
/// downloads of one account must not take the connections of the others.
const MEDIA_SLOTS: usize = 1;

/// How many are read in this process at a time: unauthenticated downloads must not delay other reads.
const MEDIA_SLOTS_IN_PROCESS: usize = 4;

/// How many lists, searches and reads of feeds wait for a slot at a time, a quarter of the default of
/// `max_connections`: each of them occupies a connection of its client.
const MAX_WAITING: usize = 256;

/// The slots of a store.
pub(crate) struct ReadSlots {
    /// The reads of all accounts that wait for a slot. Each account has a share.
    waiting: FairSlots<AccountId>,
    lists: CountedSlots<AccountId>,
    searches: CountedSlots<AccountId>,
    feeds: CountedSlots<AccountId>,
    /// Downloads of files. Their clients belong to no account.
    pub(crate) media: CountedSlots<()>,
}

impl ReadSlots {
    /// Slots for a database in this process. Lists and feeds take a millisecond; four of an account
    /// keep two processors busy. A search can use a processor for seconds: an account gets two.
    pub(crate) fn in_process() -> Self {
        Self {
            waiting: FairSlots::new(MAX_WAITING, HalfOfFree),
            lists: CountedSlots::new(8, AtMost(4)),
            searches: CountedSlots::new(8, AtMost(2)),
            feeds: CountedSlots::new(8, AtMost(4)),
            media: CountedSlots::new(MEDIA_SLOTS_IN_PROCESS, AtMost(MEDIA_SLOTS_IN_PROCESS)),
        }
    }

    /// Slots for a database server with this many connections for lists, searches and files.
    /// Together, they leave one of at least four to background work. Feeds share other connections.
    pub(crate) fn for_connections(connections: usize) -> Self {
        let lists_and_searches = connections.saturating_sub(MEDIA_SLOTS + 1);
        let searches = lists_and_searches / 2;
        let lists = lists_and_searches - searches;
        let half = |total: usize| AtMost(total.div_ceil(2));
        Self {
            waiting: FairSlots::new(MAX_WAITING, HalfOfFree),
            lists: CountedSlots::new(lists, half(lists)),
            searches: CountedSlots::new(searches, half(searches)),
            feeds: CountedSlots::new(16, AtMost(4)),
            media: CountedSlots::new(MEDIA_SLOTS, AtMost(MEDIA_SLOTS)),
        }
    }

    /// Waits for a slot, up to [`MAX_SLOT_WAIT`]. Fails at once if too many reads wait already.
    pub(crate) async fn acquire(
        &self,
        kind: ReadKind,
        account: AccountId,
    ) -> Result<FairSlot<AccountId>, StoreError> {
        let slots = match kind {
            ReadKind::List => &self.lists,
            ReadKind::Search => &self.searches,
            ReadKind::Feed => &self.feeds,
        };
        if let Some(slot) = slots.slots.try_acquire(account) {
            return Ok(slot);
        }
        let too_many = StoreError::TooManyReads(kind);
        let Some(_place) = self.waiting.try_acquire(account) else { return Err(too_many) };
        timeout(MAX_SLOT_WAIT, slots.wait(account)).await.map_err(|_| too_many)
    }

    /// Waits for the right to read a part of a file from a server, up to [`MAX_SLOT_WAIT`].
    pub(crate) async fn acquire_media(&self) -> Result<FairSlot<()>, StoreError> {
        timeout(MAX_SLOT_WAIT, self.media.acquire(())).await.map_err(|_| StoreError::Busy)
    }

    /// How the slots are used.
    pub(crate) fn activity(&self) -> Vec<PoolActivity> {
        vec![
            self.lists.activity("lists"),
            self.searches.activity("searches"),
            self.feeds.activity("feeds"),
            self.media.activity("media"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn account(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_with_all_its_searches_running_delays_only_its_own_searches() {
        for slots in [ReadSlots::in_process(), ReadSlots::for_connections(8)] {
            let (busy, other) = (account(1), account(2));
            let mut running = Vec::new();
            let refused = loop {
                match slots.acquire(ReadKind::Search, busy).await {
                    Ok(slot) => running.push(slot),
                    Err(refused) => break refused,
                }
            };
            assert!(matches!(refused, StoreError::TooManyReads(ReadKind::Search)), "{refused:?}");
            assert_eq!(running.len(), 2);
            for (kind, account) in [
                (ReadKind::Search, other),
                (ReadKind::List, other),
                (ReadKind::Feed, other),
                (ReadKind::List, busy),
                (ReadKind::Feed, busy),
            ] {
                assert!(slots.acquire(kind, account).await.is_ok(), "{kind:?}");
            }
        }
    }

    #[tokio::test]
    async fn an_account_whose_reads_wait_leaves_places_to_others() {
        for slots in [ReadSlots::in_process(), ReadSlots::for_connections(8)] {
            let mut context = Context::from_waker(Waker::noop());
            let mut waits = Vec::new();
            // 512 lists and as many searches of each account arrive, and nothing ends.
            let mut waiting = |id: u64| {
                let before = waits.len();
                for kind in [ReadKind::List, ReadKind::Search].repeat(512) {
                    let mut wait = Box::pin(slots.acquire(kind, account(id)));
                    match wait.as_mut().poll(&mut context) {
                        Poll::Pending => waits.push(wait),
                        Poll::Ready(Ok(slot)) => std::mem::forget(slot),
                        Poll::Ready(Err(error)) => {
                            assert!(matches!(error, StoreError::TooManyReads(it) if it == kind));
                        }
                    }
                }
                waits.len() - before
            };
            let counts = [1, 2, 3, 4].map(&mut waiting);
            assert!(counts[0] <= MAX_WAITING / 3 + 1, "{counts:?}");
            assert!(counts[3] >= MAX_WAITING / 16, "{counts:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lists_searches_and_files_together_leave_a_connection() {
        for connections in [4, 5, 8, 30, 31] {
            let slots = ReadSlots::for_connections(connections);
            let mut held = Vec::new();
            for id in 1..100 {
                held.extend(slots.lists.slots.try_acquire(account(id)));
                held.extend(slots.searches.slots.try_acquire(account(id)));
            }
            let mut media = Vec::new();
            while let Ok(slot) = slots.acquire_media().await {
                media.push(slot);
            }
            let used = held.len() + media.len();
            assert_eq!(used, connections - 1, "of {connections}");
        }
    }
}
