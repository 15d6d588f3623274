//! A limited number of slots that keys (accounts) share fairly: each key has a share, and keys that
//! wait take turns.
//!
//! A key that has reached its share delays no other key, and goes to the end of the turns when it gives
//! up a slot. Dropping a wait or a slot at any time is safe.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// Slots that keys share. Clones share the same slots.
#[derive(Clone, Debug)]
pub struct FairSlots<K: Copy + Eq + Hash> {
    total: usize,
    share: KeyShare,
    state: Arc<Mutex<State<K>>>,
}

/// How many slots one key may use.
#[derive(Clone, Copy, Debug)]
pub enum KeyShare {
    /// At most this number, and at least one.
    AtMost(usize),
    /// A further one while it uses less than half as many as are free. Alone, a key gets up to a third
    /// of the slots. `n` keys that want as many as they may get `1 / (n + 2)` each, and twice as much
    /// stays free, so that a key that uses none gets one at once.
    HalfOfFree,
}

impl KeyShare {
    /// Whether a key that uses this many slots may take one of those that are free.
    fn allows(self, in_use: usize, free: usize) -> bool {
        match self {
            Self::AtMost(max) => free > 0 && in_use < max.max(1),
            Self::HalfOfFree => 2 * in_use < free,
        }
    }
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
    /// The keys that wait, in the order of their turns.
    turns: VecDeque<K>,
}

#[derive(Debug)]
struct KeyState<K: Copy + Eq + Hash> {
    in_use: usize,
    /// The callers that wait, in the order of their tickets.
    waiting: BTreeMap<u64, oneshot::Sender<FairSlot<K>>>,
}

/// A slot that is counted as in use, and the caller that gets it.
type Grant<K> = (oneshot::Sender<FairSlot<K>>, FairSlot<K>);

impl<K: Copy + Eq + Hash> FairSlots<K> {
    /// `total` slots, at least one, of which each key has a share.
    #[must_use]
    pub fn new(total: usize, share: KeyShare) -> Self {
        let state =
            State { in_use: 0, next_ticket: 0, keys: HashMap::new(), turns: VecDeque::new() };
        Self { total: total.max(1), share, state: Arc::new(Mutex::new(state)) }
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
            if state.key(key).waiting.len() == 1 {
                state.turns.push_back(key);
            }
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

    /// How many slots there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// How many slots are in use, of all keys.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.state().in_use
    }

    /// How many slots the key uses.
    #[must_use]
    pub fn in_use_by(&self, key: K) -> usize {
        self.state().keys.get(&key).map_or(0, |it| it.in_use)
    }

    /// Whether the key gets a slot at once. No key that could use a free slot ever waits, so a free
    /// one belongs to the caller.
    fn is_free(&self, state: &State<K>, key: K) -> bool {
        let in_use = state.keys.get(&key).map_or(0, |it| it.in_use);
        self.share.allows(in_use, self.total - state.in_use)
    }

    /// Counts a slot of the key as in use.
    fn take(&self, state: &mut State<K>, key: K) -> FairSlot<K> {
        state.in_use += 1;
        state.key(key).in_use += 1;
        FairSlot { slots: self.clone(), key }
    }

    /// Takes a slot for the next key that may have one.
    fn next_grant(&self, state: &mut State<K>) -> Option<Grant<K>> {
        let turn = state.turns.iter().position(|key| self.is_free(state, *key))?;
        let key = state.turns.remove(turn)?;
        let (_, caller) = state.key(key).waiting.pop_first()?;
        if !state.key(key).waiting.is_empty() {
            state.turns.push_back(key);
        }
        Some((caller, self.take(state, key)))
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Drop for FairSlot<K> {
    fn drop(&mut self) {
        let Self { slots, key } = self;
        let grants: Vec<Grant<K>> = {
            let mut state = slots.state();
            state.in_use -= 1;
            state.key(*key).in_use -= 1;
            // A key that gives up a slot and still waits leaves the next turn to the others.
            if !state.key(*key).waiting.is_empty() {
                state.turns.retain(|it| it != key);
                state.turns.push_back(*key);
            }
            let grants = std::iter::from_fn(|| slots.next_grant(&mut state)).collect();
            state.forget_if_unused(*key);
            grants
        };
        // Without the lock: if a caller has left meanwhile, this drops its slot, which releases it.
        for (caller, slot) in grants {
            let _ = caller.send(slot);
        }
    }
}

impl<K: Copy + Eq + Hash> State<K> {
    fn key(&mut self, key: K) -> &mut KeyState<K> {
        let unused = || KeyState { in_use: 0, waiting: BTreeMap::new() };
        self.keys.entry(key).or_insert_with(unused)
    }

    fn forget_if_unused(&mut self, key: K) {
        let is_unused = |it: &KeyState<K>| it.in_use == 0 && it.waiting.is_empty();
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
        let mut state = self.slots.state();
        let Some(entry) = state.keys.get_mut(&self.key) else { return };
        if entry.waiting.remove(&self.ticket).is_some() && entry.waiting.is_empty() {
            state.turns.retain(|it| *it != self.key);
        }
        state.forget_if_unused(self.key);
    }
}

#[cfg(test)]
mod tests;
