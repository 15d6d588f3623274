//! A limited number of slots that keys (accounts) share fairly: each key has a limit of its own, and
//! keys that wait take turns.
//!
//! A caller that waits because its key has reached its limit takes no place in the common queue, so
//! it delays no other key. Dropping a wait or a slot at any time is safe.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// Slots that keys share. Clones share the same slots.
#[derive(Debug)]
pub struct FairSlots<K: Copy + Eq + Hash> {
    total: usize,
    per_key: usize,
    state: Arc<Mutex<State<K>>>,
}

/// A slot in use. Dropping it hands it to the next caller.
#[derive(Debug)]
#[must_use = "dropping a slot frees it"]
pub struct FairSlot<K: Copy + Eq + Hash> {
    slots: FairSlots<K>,
    key: K,
}

#[derive(Debug)]
struct State<K: Copy + Eq + Hash> {
    in_use: usize,
    next_ticket: u64,
    /// The keys that use a slot or wait for one.
    keys: HashMap<K, KeyState<K>>,
    /// The keys that wait and are below their own limit, in the order of their turns.
    turns: VecDeque<K>,
}

#[derive(Debug)]
struct KeyState<K: Copy + Eq + Hash> {
    in_use: usize,
    /// The callers that wait, in the order of their tickets.
    waiting: BTreeMap<u64, oneshot::Sender<FairSlot<K>>>,
    /// Whether the key is in `turns`.
    has_turn: bool,
}

/// A slot that is counted as in use, and the caller that gets it.
type Grant<K> = (oneshot::Sender<FairSlot<K>>, FairSlot<K>);

impl<K: Copy + Eq + Hash> FairSlots<K> {
    /// `total` slots, of which one key uses at most `per_key`. Both are at least one.
    #[must_use]
    pub fn new(total: usize, per_key: usize) -> Self {
        let state =
            State { in_use: 0, next_ticket: 0, keys: HashMap::new(), turns: VecDeque::new() };
        Self { total: total.max(1), per_key: per_key.max(1), state: Arc::new(Mutex::new(state)) }
    }

    /// Waits for a slot. Cancel-safe: dropping the future gives up the place in the queue.
    pub async fn acquire(&self, key: K) -> FairSlot<K> {
        let (receiver, ticket) = {
            let mut state = self.state();
            if self.is_free(&state, key) {
                return self.take(&mut state, key);
            }
            let (sender, receiver) = oneshot::channel();
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.key(key).waiting.insert(ticket, sender);
            state.give_turn(key, self.per_key);
            (receiver, ticket)
        };
        let _waiting = Waiting { slots: self, key, ticket };
        receiver.await.expect("a caller that waits leaves the queue only with a slot")
    }

    /// A slot, if one is free for the key now.
    #[must_use]
    pub fn try_acquire(&self, key: K) -> Option<FairSlot<K>> {
        let mut state = self.state();
        self.is_free(&state, key).then(|| self.take(&mut state, key))
    }

    /// How many callers wait, of all keys.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().keys.values().map(|it| it.waiting.len()).sum()
    }

    /// How many slots are in use, of all keys.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.state().in_use
    }

    /// Whether the key gets a slot at once. No key that could use a free slot ever waits, so a free
    /// one belongs to the caller.
    fn is_free(&self, state: &State<K>, key: K) -> bool {
        let in_use = state.keys.get(&key).map_or(0, |it| it.in_use);
        state.in_use < self.total && in_use < self.per_key
    }

    /// Counts a slot of the key as in use.
    fn take(&self, state: &mut State<K>, key: K) -> FairSlot<K> {
        state.in_use += 1;
        state.key(key).in_use += 1;
        FairSlot { slots: self.clone(), key }
    }

    /// Takes a slot for the key whose turn it is.
    fn next_grant(&self, state: &mut State<K>) -> Option<Grant<K>> {
        while state.in_use < self.total {
            let key = state.turns.pop_front()?;
            let entry = state.key(key);
            entry.has_turn = false;
            // The callers may have left since the key got its turn.
            let Some((_, caller)) = entry.waiting.pop_first() else {
                state.forget_if_unused(key);
                continue;
            };
            let slot = self.take(state, key);
            state.give_turn(key, self.per_key);
            return Some((caller, slot));
        }
        None
    }

    fn release(&self, key: K) {
        let grant = {
            let mut state = self.state();
            state.in_use -= 1;
            state.key(key).in_use -= 1;
            state.give_turn(key, self.per_key);
            let grant = self.next_grant(&mut state);
            state.forget_if_unused(key);
            grant
        };
        // Without the lock: if the caller has left meanwhile, this drops the slot, which releases it.
        if let Some((caller, slot)) = grant {
            let _ = caller.send(slot);
        }
    }

    fn leave(&self, key: K, ticket: u64) {
        let mut state = self.state();
        if let Some(entry) = state.keys.get_mut(&key) {
            entry.waiting.remove(&ticket);
        }
        state.forget_if_unused(key);
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Clone for FairSlots<K> {
    fn clone(&self) -> Self {
        Self { total: self.total, per_key: self.per_key, state: Arc::clone(&self.state) }
    }
}

impl<K: Copy + Eq + Hash> Drop for FairSlot<K> {
    fn drop(&mut self) {
        self.slots.release(self.key);
    }
}

impl<K: Copy + Eq + Hash> State<K> {
    fn key(&mut self, key: K) -> &mut KeyState<K> {
        let unused = || KeyState { in_use: 0, waiting: BTreeMap::new(), has_turn: false };
        self.keys.entry(key).or_insert_with(unused)
    }

    /// Puts the key at the end of the turns, if it waits for others only.
    fn give_turn(&mut self, key: K, per_key: usize) {
        let entry = self.key(key);
        if !entry.has_turn && !entry.waiting.is_empty() && entry.in_use < per_key {
            entry.has_turn = true;
            self.turns.push_back(key);
        }
    }

    /// A key in `turns` stays until its turn comes.
    fn forget_if_unused(&mut self, key: K) {
        let is_unused = |it: &KeyState<K>| it.in_use == 0 && it.waiting.is_empty() && !it.has_turn;
        if self.keys.get(&key).is_some_and(is_unused) {
            self.keys.remove(&key);
        }
    }
}

/// A place in the queue. Dropping it leaves the queue.
struct Waiting<'a, K: Copy + Eq + Hash> {
    slots: &'a FairSlots<K>,
    key: K,
    ticket: u64,
}

impl<K: Copy + Eq + Hash> Drop for Waiting<'_, K> {
    fn drop(&mut self) {
        self.slots.leave(self.key, self.ticket);
    }
}

#[cfg(test)]
mod tests;
