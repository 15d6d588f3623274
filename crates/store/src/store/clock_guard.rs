//! Remembers the time, so that a clock that jumps deletes nothing.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{ClockStatus, StoreError};

/// Remembers the time, so that a clock that jumps deletes nothing.
#[async_trait]
pub trait ClockStore: Send + Sync {
    /// Records the present time. Returns whether rows may be deleted by age. Call it before each
    /// deletion.
    async fn observe_clock(&self, now: Timestamp) -> Result<ClockStatus, StoreError>;

    /// Like [`ClockStore::observe_clock`], but records nothing; `None` in a database
    /// without tables.
    async fn check_clock(&self, now: Timestamp) -> Result<Option<ClockStatus>, StoreError>;

    /// Trusts the present time, which an operator has confirmed.
    async fn accept_clock(&self, now: Timestamp) -> Result<(), StoreError>;
}
