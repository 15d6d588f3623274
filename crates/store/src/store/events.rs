//! Reads and expires events. The changes that they describe append them.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{EventNotifier, Feed, StoreError};

/// Reads and expires events. The changes that they describe append them.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// The account's events after `after`, or from the oldest stored one, in order. Never skips an
    /// event: if the next one has been deleted, returns [`Feed::Expired`].
    async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError>;

    /// The number of the account's newest event; 0 before the first.
    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError>;

    /// Notifies subscribers of events that this process commits or that [`EventStore::poll_events`]
    /// finds.
    fn event_notifier(&self) -> &EventNotifier;

    /// Checks for events that other processes have committed and notifies their subscribers.
    async fn poll_events(&self) -> Result<(), StoreError>;

    /// Deletes a batch of events older than `since` that no endpoint still needs, oldest first,
    /// with their deliveries. Returns how many rows it deleted; 0 when nothing is left to delete.
    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError>;
}
