//! Webhook requests that a fault of an emulator account holds back until the next one to the same
//! endpoint was sent.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use galley_domain::id::{AccountId, WebhookId};
use galley_store::{FairSlot, FairSlots, KeyShare};

use crate::delivery::PostRequest;

/// How many requests all endpoints together hold back or send late. Each has a body in memory.
const MAX_REQUESTS: usize = 1_000;

/// The requests that are held back, in their order, and room for those that are sent late.
pub(crate) struct HeldRequests {
    held: Mutex<Held>,
    room: FairSlots<AccountId>,
}

impl Default for HeldRequests {
    fn default() -> Self {
        Self { held: Mutex::default(), room: FairSlots::new(MAX_REQUESTS, KeyShare::HalfOfFree) }
    }
}

#[derive(Default)]
struct Held {
    next_number: u64,
    requests: HashMap<WebhookId, Vec<(u64, PostRequest)>>,
}

impl HeldRequests {
    /// Room for a request of the account until it was sent; `None` if there are too many already.
    pub(crate) fn room(&self, account: AccountId) -> Option<FairSlot<AccountId>> {
        self.room.try_acquire(account)
    }

    /// Holds a request back. Returns its number.
    pub(crate) fn hold(&self, endpoint: WebhookId, request: PostRequest) -> u64 {
        let mut held = self.held();
        let number = held.next_number;
        held.next_number += 1;
        held.requests.entry(endpoint).or_default().push((number, request));
        number
    }

    /// All requests that are held back from an endpoint; they are no longer.
    pub(crate) fn take(&self, endpoint: WebhookId) -> Vec<PostRequest> {
        let requests = self.held().requests.remove(&endpoint).unwrap_or_default();
        requests.into_iter().map(|(_, request)| request).collect()
    }

    /// One request, if it is still held back; it is no longer.
    pub(crate) fn take_one(&self, endpoint: WebhookId, number: u64) -> Option<PostRequest> {
        let mut held = self.held();
        let requests = held.requests.get_mut(&endpoint)?;
        let index = requests.iter().position(|(other, _)| *other == number)?;
        let (_, request) = requests.remove(index);
        if requests.is_empty() {
            held.requests.remove(&endpoint);
        }
        Some(request)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
