//! Telling those who wait that there are new events. Only ever a hint to look: what there is
//! stands in the store.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use galley_domain::id::AccountId;
use tokio::sync::watch;

/// Who waits for the events of which account.
#[derive(Debug, Default)]
pub struct EventNotifier {
    accounts: Mutex<HashMap<AccountId, watch::Sender<u64>>>,
    anybody: watch::Sender<u64>,
}

impl EventNotifier {
    /// Changes to the number of the account's newest event whenever one is committed. What was
    /// committed before this call has to be looked for.
    pub fn of(&self, account: AccountId) -> watch::Receiver<u64> {
        self.accounts().entry(account).or_default().subscribe()
    }

    /// Changes whenever there is an event in whatever account.
    pub fn of_anybody(&self) -> watch::Receiver<u64> {
        self.anybody.subscribe()
    }

    /// Tells that these are the newest events of their accounts.
    pub(crate) fn tell(&self, newest: &[(AccountId, u64)]) {
        if newest.is_empty() {
            return;
        }
        let mut accounts = self.accounts();
        for (account, seq) in newest {
            let Some(waiting) = accounts.get(account) else { continue };
            if waiting.receiver_count() == 0 {
                accounts.remove(account);
            } else {
                waiting.send_if_modified(|known| std::mem::replace(known, *seq) != *seq);
            }
        }
        drop(accounts);
        self.anybody.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The accounts that somebody waits for.
    pub(crate) fn wanted(&self) -> Vec<AccountId> {
        let mut accounts = self.accounts();
        accounts.retain(|_, waiting| waiting.receiver_count() > 0);
        accounts.keys().copied().collect()
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<AccountId, watch::Sender<u64>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
