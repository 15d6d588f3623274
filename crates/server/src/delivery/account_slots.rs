//! Slots that accounts share: one account cannot take them all.
//!
//! An account may take a slot while it holds less than half as many as are free. Alone, it gets up to
//! a third of the slots. `n` accounts that want as many as they may get `1 / (n + 2)` each, and twice
//! as much stays free, so that an account that holds none gets one at once.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use galley_domain::id::AccountId;
use tokio::sync::oneshot;

/// Slots that accounts share.
#[derive(Clone)]
pub(crate) struct AccountSlots(Arc<Mutex<SlotTable>>);

/// A slot. Dropping it frees it.
pub(crate) struct AccountSlot {
    account: AccountId,
    slots: AccountSlots,
}

struct SlotTable {
    free: usize,
    held: HashMap<AccountId, usize>,
    /// The requests of each account that has to wait, oldest first.
    queues: HashMap<AccountId, VecDeque<Waiter>>,
    /// The accounts that wait, in the order of their turns.
    turns: VecDeque<AccountId>,
    last_waiter: u64,
}

struct Waiter {
    id: u64,
    sender: oneshot::Sender<AccountSlot>,
}

/// Whether an account that holds this many slots may take one of those that are free.
fn may_take(held: usize, free: usize) -> bool {
    2 * held < free
}

impl AccountSlots {
    pub(crate) fn new(total: usize) -> Self {
        Self(Arc::new(Mutex::new(SlotTable {
            free: total,
            held: HashMap::new(),
            queues: HashMap::new(),
            turns: VecDeque::new(),
            last_waiter: 0,
        })))
    }

    /// Waits for a slot. Waiting accounts take turns; within an account, the oldest request comes
    /// first. Dropping the future gives up the place in the queue.
    pub(crate) async fn acquire(&self, account: AccountId) -> AccountSlot {
        let (id, receiver) = {
            let mut table = self.lock();
            if !table.queues.contains_key(&account) && table.try_take(account) {
                return AccountSlot { account, slots: self.clone() };
            }
            table.enqueue(account)
        };
        let _place = QueuePlace { slots: self, account, id };
        receiver.await.expect("a waiter leaves the queue with a slot or by dropping this future")
    }

    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AccountSlot {
    fn drop(&mut self) {
        let mut next = Vec::new();
        {
            let mut table = self.slots.lock();
            table.free(self.account);
            while let Some(served) = table.serve_next() {
                next.push(served);
            }
        }
        // Outside the lock: a slot whose waiter has just left is freed again by its drop.
        for (account, waiter) in next {
            drop(waiter.sender.send(AccountSlot { account, slots: self.slots.clone() }));
        }
    }
}

/// Removes a waiter from its queue if it gives up.
struct QueuePlace<'s> {
    slots: &'s AccountSlots,
    account: AccountId,
    id: u64,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.slots.lock().leave(self.account, self.id);
    }
}

impl SlotTable {
    fn try_take(&mut self, account: AccountId) -> bool {
        let is_allowed = may_take(self.held_by(account), self.free);
        if is_allowed {
            self.free -= 1;
            *self.held.entry(account).or_default() += 1;
        }
        is_allowed
    }

    fn held_by(&self, account: AccountId) -> usize {
        self.held.get(&account).copied().unwrap_or_default()
    }

    fn free(&mut self, account: AccountId) {
        self.free += 1;
        let held = self.held_by(account).saturating_sub(1);
        if held == 0 {
            self.held.remove(&account);
        } else {
            self.held.insert(account, held);
        }
    }

    fn enqueue(&mut self, account: AccountId) -> (u64, oneshot::Receiver<AccountSlot>) {
        let (sender, receiver) = oneshot::channel();
        self.last_waiter += 1;
        let queue = self.queues.entry(account).or_default();
        if queue.is_empty() {
            self.turns.push_back(account);
        }
        queue.push_back(Waiter { id: self.last_waiter, sender });
        (self.last_waiter, receiver)
    }

    /// Takes a slot for the next waiter that may have one.
    fn serve_next(&mut self) -> Option<(AccountId, Waiter)> {
        let may_take = |account: &AccountId| may_take(self.held_by(*account), self.free);
        let turn = self.turns.iter().position(may_take)?;
        let account = self.turns.remove(turn)?;
        let queue = self.queues.get_mut(&account)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&account);
        } else {
            self.turns.push_back(account);
        }
        self.try_take(account);
        waiter.map(|waiter| (account, waiter))
    }

    fn leave(&mut self, account: AccountId, id: u64) {
        let Some(queue) = self.queues.get_mut(&account) else { return };
        queue.retain(|it| it.id != id);
        if queue.is_empty() {
            self.queues.remove(&account);
            self.turns.retain(|it| *it != account);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::{Pin, pin},
        task::Poll,
    };

    use super::*;

    fn account(number: u64) -> AccountId {
        AccountId::new(number).unwrap()
    }

    /// The slot, if it is there without waiting.
    async fn now(mut acquire: Pin<&mut impl Future<Output = AccountSlot>>) -> Option<AccountSlot> {
        std::future::poll_fn(|context| match acquire.as_mut().poll(context) {
            Poll::Ready(slot) => Poll::Ready(Some(slot)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// All slots that the account may take now.
    async fn take_all(slots: &AccountSlots, number: u64) -> Vec<AccountSlot> {
        let mut taken = Vec::new();
        while let Some(slot) = now(pin!(slots.acquire(account(number)))).await {
            taken.push(slot);
        }
        taken
    }

    #[tokio::test]
    async fn an_account_alone_gets_a_third_of_the_slots_and_less_beside_others() {
        let slots = AccountSlots::new(512);
        let mut first = take_all(&slots, 1).await;
        let (second, third) = (take_all(&slots, 2).await, take_all(&slots, 3).await);
        assert_eq!([first.len(), second.len(), third.len()], [171, 114, 76]);
        first.truncate(100);
        let more = take_all(&slots, 3).await;
        assert_eq!(third.len() + more.len(), 100, "shares become equal as slots are freed");
        drop((first, second, third, more));
        assert_eq!(slots.lock().free, 512);
        assert!(slots.lock().held.is_empty());
    }

    #[tokio::test]
    async fn an_account_that_holds_no_slot_gets_one_while_eight_others_take_all_they_may() {
        let slots = AccountSlots::new(512);
        let mut held = Vec::new();
        for number in 1..=8 {
            held.push(take_all(&slots, number).await);
        }
        assert!(now(pin!(slots.acquire(account(9)))).await.is_some());
    }

    #[tokio::test]
    async fn waiting_accounts_take_turns_and_a_waiter_that_leaves_takes_no_slot() {
        let slots = AccountSlots::new(2);
        let (first, second) = (slots.acquire(account(1)).await, slots.acquire(account(2)).await);
        let mut oldest = pin!(slots.acquire(account(3)));
        let mut next_of_same = pin!(slots.acquire(account(3)));
        let mut leaving = Box::pin(slots.acquire(account(5)));
        let mut other = pin!(slots.acquire(account(4)));
        assert!(now(oldest.as_mut()).await.is_none());
        assert!(now(next_of_same.as_mut()).await.is_none());
        assert!(now(leaving.as_mut()).await.is_none());
        assert!(now(other.as_mut()).await.is_none());
        drop((leaving, first));
        let served = now(oldest.as_mut()).await.expect("the oldest request comes first");
        drop(second);
        let served_too = now(other.as_mut()).await.expect("then it is the other account's turn");
        assert!(now(next_of_same.as_mut()).await.is_none());
        drop((served, served_too));
        drop(now(next_of_same.as_mut()).await.expect("both slots are free"));
        let table = slots.lock();
        assert!(table.queues.is_empty() && table.turns.is_empty() && table.free == 2);
    }
}
