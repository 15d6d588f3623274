//! Whether this process serves emulator accounts, who applies the steps of their scripts, and the
//! wake-up of the workers that serve them.

use std::{
    array,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use galley_domain::id::AccountId;
use tokio::sync::{Mutex, MutexGuard, watch};

/// How many locks the accounts share.
const LOCKS: usize = 64;

/// Whether this process serves emulator accounts, and what its calls and workers share about them.
pub(crate) struct EmulatorState {
    is_on: bool,
    changes: watch::Sender<()>,
    step_locks: [Mutex<()>; LOCKS],
}

impl EmulatorState {
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            changes: watch::Sender::new(()),
            step_locks: array::from_fn(|_| Mutex::new(())),
        }
    }

    /// Whether the setting `emulator` is on.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Wakes the workers: an emulator account has changed.
    pub(crate) fn notify(&self) {
        self.changes.send_replace(());
    }

    /// A receiver that is notified after each change of an emulator account by this process.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Waits until no other call moves the clock of the account. While the lock is held, the worker
    /// applies no steps of the account, so that the call counts all of them.
    pub(crate) async fn lock_steps(&self, account: AccountId) -> MutexGuard<'_, ()> {
        self.step_lock(account).lock().await
    }

    /// Like [`EmulatorState::lock_steps`]; `None` if a call moves the clock, which then applies the
    /// steps itself.
    pub(crate) fn try_lock_steps(&self, account: AccountId) -> Option<MutexGuard<'_, ()>> {
        self.step_lock(account).try_lock().ok()
    }

    fn step_lock(&self, account: AccountId) -> &Mutex<()> {
        &self.step_locks[lock_index(account)]
    }
}

/// The lock of an account. Ids are numbers of creation times, whose low bits are usually 0.
fn lock_index(account: AccountId) -> usize {
    let mut hasher = DefaultHasher::new();
    account.hash(&mut hasher);
    usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn accounts_of_different_times_have_different_locks() {
        // Ids of accounts that are created one millisecond after the other.
        let ids = (1..=100).map(|millisecond| AccountId::new(millisecond << 13).unwrap());
        let locks: HashSet<usize> = ids.map(lock_index).collect();
        assert!(locks.len() > LOCKS / 2, "{} locks", locks.len());
    }
}
