//! Reports what the store does and contains, for the metrics.

use async_trait::async_trait;

use crate::{StoreActivity, StoreError, StoreStatistics};

/// Reports what the store does and contains, for the metrics.
#[async_trait]
pub trait StatisticsStore: Send + Sync {
    /// What this process has counted in memory. Reads nothing from the database.
    fn activity(&self) -> StoreActivity;

    /// Totals of all accounts. Takes a few index seeks per account and per endpoint, whatever the
    /// number of templates, and is not one transaction.
    async fn statistics(&self) -> Result<StoreStatistics, StoreError>;
}
