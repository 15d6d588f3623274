//! Reads the audit feed. The changes that it records append to it in their own transactions.

use async_trait::async_trait;
use galley_domain::id::AccountId;

use crate::{AuditEntry, StoreError};

/// How many entries the tokens of an account may cause within 24 hours by creating tokens,
/// registering or changing endpoints and replacing their secrets. Entries are never deleted, so they
/// must not grow at a client's will. What deletes or revokes something is always possible.
pub const MAX_DAILY_CHANGES: u32 = 2_000;

/// Reads the audit feed.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Up to `limit` entries with higher numbers than `after`, oldest first: those of one account,
    /// or all of them. A reader that continues with the last number misses no entry.
    async fn audit_entries(
        &self,
        account: Option<AccountId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}
