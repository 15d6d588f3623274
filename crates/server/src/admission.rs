//! Admission: how many requests of an account run at a time and how many wait, how much of the
//! processor large bodies get, and how fast credentials may fail. The reasons are in
//! `docs/decisions/0026-admission.md`.

mod account_load;
mod client_address;
mod failed_credentials;
mod token_bucket;

use std::{num::NonZero, sync::Arc, thread::available_parallelism};

use galley_domain::id::AccountId;
use galley_store::{FairSlots, KeyShare};
use tokio::sync::Semaphore;

use crate::limits::Limits;

pub(crate) use account_load::{AccountLoad, AccountLoads, InFlight, LargeBody, Overload};
pub(crate) use client_address::{client_address, is_ambiguous};
pub(crate) use failed_credentials::{BURST_SECONDS, FailedCredentials};

/// A body with more bytes is large: parsing and checking it takes up to some milliseconds of
/// processor time. Templates usually have one or two KiB.
pub(crate) const LARGE_BODY_BYTES: usize = 16 * 1_024;

/// Part of the connections whose responses may wait because credentials failed too often.
const MAX_DELAYED_SHARE: usize = 4;

/// Part of the connections whose requests may wait for something that is not Galley's work: an event,
/// a provider, a receiver, or the delay of a fault.
const MAX_WAITING_SHARE: usize = 2;

/// Decides which requests run now, which wait and which are refused.
pub(crate) struct Admission {
    pub(crate) loads: Arc<AccountLoads>,
    pub(crate) failed_credentials: FailedCredentials,
    /// The requests of all accounts that wait. They occupy connections, so all kinds of waits share
    /// them. One account alone gets a third, and each of `n` accounts that want more `1 / (n + 2)`.
    pub(crate) waits: FairSlots<AccountId>,
    /// The large bodies of all accounts that are parsed and checked at a time. Requests with small
    /// bodies have the remaining processors.
    processors: Semaphore,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let delayed = limits.connections / MAX_DELAYED_SHARE;
        Self {
            // With two turns, one body is parsed while the other waits for the store.
            loads: Arc::new(AccountLoads::new((processors / 2).max(2))),
            failed_credentials: FailedCredentials::new(limits.failed_credentials, delayed),
            waits: FairSlots::new(limits.connections / MAX_WAITING_SHARE, KeyShare::HalfOfFree),
            processors: Semaphore::new((processors - 1).max(1)),
        }
    }

    /// Parses or checks a document of so many bytes. A large one waits for a processor, which it has
    /// only while `work` runs, never while a request waits for the store or a receiver. Fair, because
    /// each account has only few turns at a time: those of other accounts are not behind all of its
    /// bodies.
    pub(crate) async fn process<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes <= LARGE_BODY_BYTES {
            return work();
        }
        let _processor = self.processors.acquire().await;
        work()
    }

    /// Takes all processors, so that large documents wait.
    #[cfg(test)]
    pub(crate) fn take_processors(&self) -> tokio::sync::SemaphorePermit<'_> {
        let all = u32::try_from(self.processors.available_permits()).expect("few");
        self.processors.try_acquire_many(all).expect("they are free")
    }
}
