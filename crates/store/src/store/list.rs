//! Lists and searches templates.

use async_trait::async_trait;

use galley_domain::id::AccountId;

use crate::{IndexProgress, IndexStep, ListQuery, Page, StoreError};

/// Upper bound for list counts.
pub const MAX_LIST_COUNT: u64 = 1_000_000;

/// Upper bound for list counts with search terms.
pub const MAX_SEARCH_COUNT: u64 = 10_000;

/// Lists and searches templates.
#[async_trait]
pub trait ListStore: Send + Sync {
    /// A page of an account's templates, which ends before its limit if it has much content. It reflects every committed change, except that search
    /// terms match what is indexed; [`Page::unindexed`] says what is not.
    async fn list(&self, query: ListQuery) -> Result<Page, StoreError>;

    /// The number of templates on all pages of a list, up to [`MAX_LIST_COUNT`], or up to
    /// [`MAX_SEARCH_COUNT`] with search terms.
    async fn count_templates(&self, query: ListQuery) -> Result<u64, StoreError>;

    /// Advances the search index by one step towards the newest events.
    async fn update_search_index(&self) -> Result<IndexProgress, StoreError>;

    /// Advances the search index by one step for one account, ahead of all other accounts, unless
    /// it contains the account's events up to number `newest`.
    async fn index_account(&self, account: AccountId, newest: u64)
    -> Result<IndexStep, StoreError>;
}
