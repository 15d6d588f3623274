//! Bounds the memory of bodies that clients have not sent or read completely: in total, and per
//! account.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use axum::body::Bytes;
use galley_domain::id::AccountId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Bodies up to this size are not charged: they fit into the buffers of a connection, whose number
/// is limited.
pub(crate) const MAX_UNCHARGED_BYTES: usize = 32 * 1_024;

/// Total size of a budget.
const TOTAL_KIB: u32 = 128 * 1_024;

/// The part of a budget that one account may use. Four accounts that do not read fill a budget.
const ACCOUNT_KIB: u32 = TOTAL_KIB / 4;

/// Room that a large body needs. A template has up to 256 KiB, and responses add to it.
const LARGE_BODY_KIB: usize = 512;

/// Total size of the bodies that are in memory and wait for the budget.
const WAITING_KIB: u32 = TOTAL_KIB / 4;

/// How long a body waits for the budget.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Number of accounts in the table at which those without a charge are removed.
const MAX_IDLE_ACCOUNTS: usize = 1_024;

/// A budget in units of KiB. Waiting bodies are served in order, per account and then in total.
pub(crate) struct MemoryBudget {
    total: Arc<Semaphore>,
    waiting: Semaphore,
    /// The shares in use: a permit keeps its semaphore alive.
    shares: Mutex<BTreeMap<AccountId, Weak<Semaphore>>>,
}

/// A part of a budget. Dropping it returns it.
pub(crate) struct MemoryCharge {
    _account: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self {
            total: Arc::new(Semaphore::new(TOTAL_KIB as usize)),
            waiting: Semaphore::new(WAITING_KIB as usize),
            shares: Mutex::default(),
        }
    }
}

impl MemoryBudget {
    /// Charges bytes that are about to be received. Waits until the account has room for them;
    /// `None` if it has none in time.
    pub(crate) async fn charge(&self, account: AccountId, bytes: usize) -> Option<MemoryCharge> {
        timeout(MAX_WAIT, self.acquire(account, units(bytes))).await.ok().flatten()
    }

    /// Charges bytes that are in memory already. Like [`Self::charge`], but only a limited number of
    /// bytes can wait.
    pub(crate) async fn charge_built(
        &self,
        account: AccountId,
        bytes: usize,
    ) -> Option<MemoryCharge> {
        let units = units(bytes);
        if let Some(charge) = self.try_acquire(account, units) {
            return Some(charge);
        }
        let _waiting = self.waiting.try_acquire_many(units.min(WAITING_KIB)).ok()?;
        timeout(MAX_WAIT, self.acquire(account, units)).await.ok().flatten()
    }

    /// Whether an account has no room for a further large body, or its bodies wait for room.
    pub(crate) fn is_used_up(&self, account: AccountId) -> bool {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let share = shares.get(&account).and_then(Weak::upgrade);
        share.is_some_and(|share| share.available_permits() < LARGE_BODY_KIB)
    }

    fn try_acquire(&self, account: AccountId, units: u32) -> Option<MemoryCharge> {
        let account = self.share(account).try_acquire_many_owned(units).ok()?;
        let total = Arc::clone(&self.total).try_acquire_many_owned(units).ok()?;
        Some(MemoryCharge { _account: account, _total: total })
    }

    async fn acquire(&self, account: AccountId, units: u32) -> Option<MemoryCharge> {
        let account = self.share(account).acquire_many_owned(units).await.ok()?;
        let total = Arc::clone(&self.total).acquire_many_owned(units).await.ok()?;
        Some(MemoryCharge { _account: account, _total: total })
    }

    /// The share of an account.
    fn share(&self, account: AccountId) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&account).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() >= MAX_IDLE_ACCOUNTS {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(ACCOUNT_KIB as usize));
        shares.insert(account, Arc::downgrade(&share));
        share
    }
}

impl MemoryCharge {
    /// Returns the charge when the last reference to the bytes is dropped.
    pub(crate) fn attach_to(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        struct Charged<B> {
            bytes: B,
            _charge: MemoryCharge,
        }
        impl<B: AsRef<[u8]>> AsRef<[u8]> for Charged<B> {
            fn as_ref(&self) -> &[u8] {
                self.bytes.as_ref()
            }
        }
        Bytes::from_owner(Charged { bytes, _charge: self })
    }
}

/// The units of a body. A body that is larger than the share of an account takes all of it.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX).min(ACCOUNT_KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: usize = ACCOUNT_KIB as usize * 1_024;

    fn account(number: u64) -> AccountId {
        AccountId::new(number).expect("an id")
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_uses_its_share_and_leaves_the_rest_to_others() {
        let budget = MemoryBudget::default();
        let first = budget.charge(account(1), SHARE / 2).await.expect("there is room");
        let _second = budget.charge(account(1), SHARE / 2).await.expect("there is room");
        assert!(budget.charge(account(1), 1).await.is_none());
        assert!(budget.charge(account(2), SHARE).await.is_some());
        assert_eq!([1, 2].map(|it| budget.is_used_up(account(it))), [true, false]);
        drop(first);
        assert!(!budget.is_used_up(account(1)));
        assert!(budget.charge(account(1), SHARE / 2).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn all_accounts_together_use_the_total() {
        let budget = MemoryBudget::default();
        let mut charges = Vec::new();
        for number in 1..=4 {
            charges.push(budget.charge(account(number), SHARE).await.expect("there is room"));
        }
        assert!(budget.charge(account(5), 1).await.is_none());
        charges.pop();
        assert!(budget.charge(account(5), 1).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_gets_the_room_of_one_that_was_read() {
        let budget = MemoryBudget::default();
        // Larger than the share: it takes all of it.
        let charge = budget.charge_built(account(1), 10 * SHARE).await.expect("there is room");
        let read = async {
            tokio::time::sleep(MAX_WAIT / 2).await;
            drop(charge);
        };
        let (waited, ()) = tokio::join!(budget.charge_built(account(1), SHARE), read);
        assert!(waited.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_limited_number_of_bytes_waits_in_memory() {
        let budget = MemoryBudget::default();
        let _charge = budget.charge(account(1), SHARE).await.expect("there is room");
        let started = tokio::time::Instant::now();
        let waiting = budget.charge_built(account(1), WAITING_KIB as usize * 1_024);
        let refused = async {
            let charge = budget.charge_built(account(1), 1).await;
            (charge.is_none(), started.elapsed())
        };
        let (waited, refused) = tokio::join!(waiting, refused);
        assert!(waited.is_none());
        assert_eq!(started.elapsed(), MAX_WAIT);
        assert_eq!(refused, (true, Duration::ZERO));
    }

    #[tokio::test]
    async fn a_charge_ends_with_the_last_slice_of_its_bytes() {
        let budget = MemoryBudget::default();
        let charge = budget.charge(account(1), SHARE).await.expect("there is room");
        let bytes = charge.attach_to(vec![7; 100]);
        let slice = bytes.slice(..10);
        drop(bytes);
        assert!(budget.try_acquire(account(1), 1).is_none());
        drop(slice);
        assert!(budget.try_acquire(account(1), 1).is_some());
    }
}
