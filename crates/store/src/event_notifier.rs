//! Notifies subscribers of new events. A notification is only a hint: subscribers read the events
//! from the store.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use galley_domain::id::AccountId;
use tokio::sync::watch;

/// The subscribers to new events, of one account or of all accounts.
#[derive(Debug, Default)]
pub struct EventNotifier {
    accounts: Mutex<HashMap<AccountId, watch::Sender<u64>>>,
    all: watch::Sender<u64>,
}

impl EventNotifier {
    /// A receiver that gets the number of the account's newest event on each commit. It does not
    /// report events committed before this call.
    pub fn subscribe(&self, account: AccountId) -> watch::Receiver<u64> {
        self.accounts().entry(account).or_default().subscribe()
    }

    /// A receiver that changes whenever any account has a new event. Its value has no meaning.
    pub fn subscribe_all(&self) -> watch::Receiver<u64> {
        self.all.subscribe()
    }

    /// Notifies subscribers of the newest event of each of these accounts.
    pub(crate) fn notify(&self, newest: &[(AccountId, u64)]) {
        if newest.is_empty() {
            return;
        }
        let mut accounts = self.accounts();
        for (account, seq) in newest {
            let Some(sender) = accounts.get(account) else { continue };
            if sender.receiver_count() == 0 {
                accounts.remove(account);
            } else {
                sender.send_if_modified(|current| std::mem::replace(current, *seq) != *seq);
            }
        }
        drop(accounts);
        self.all.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The accounts that have a subscriber.
    pub(crate) fn subscribed_accounts(&self) -> Vec<AccountId> {
        let mut accounts = self.accounts();
        accounts.retain(|_, sender| sender.receiver_count() > 0);
        accounts.keys().copied().collect()
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<AccountId, watch::Sender<u64>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
