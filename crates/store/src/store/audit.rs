//! Reads the audit feed. The changes that it records append to it in their own transactions.

use async_trait::async_trait;
use galley_domain::id::AccountId;

use crate::{AuditEntry, StoreError};

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
