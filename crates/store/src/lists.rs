//! Lists and searches of templates. Each engine reads them in its own way; this is what they share.

mod id_range;
mod page_size;
mod reader;
mod search_index;
mod search_terms;

use galley_domain::id::AccountId;

pub(crate) use self::{
    id_range::IdRange,
    page_size::{MAX_PAGE_BYTES, PageBuilder},
    reader::{ListReader, Visit, count_by_name, page},
    search_index::{IndexBacklog, IndexState},
    search_terms::{filter_terms, is_short, max_expansion},
};
use crate::{IndexProgress, IndexStep, ListQuery, Page, Store, StoreFuture};

/// Upper bound for list counts.
pub const MAX_LIST_COUNT: u64 = 1_000_000;

/// Upper bound for list counts with search terms.
pub const MAX_SEARCH_COUNT: u64 = 10_000;

/// The list bucket of a template on PostgreSQL: its status, category and language. Must be the exact
/// expression of its index. SQLite has a column for it.
macro_rules! bucket_on_postgres {
    () => {
        r#"((coalesce(hold, status) || ' ' || category || ' ' || language) COLLATE "C")"#
    };
}
pub(crate) use bucket_on_postgres;

impl Store {
    /// A page of an account's templates, which ends before its limit if it has much content. It
    /// reflects every committed change, except that search terms match what is indexed;
    /// [`Page::unindexed`] says what is not.
    pub fn list(&self, query: ListQuery) -> StoreFuture<'_, Page> {
        self.with_faults_of("list", self.engine.list(query))
    }

    /// The number of templates on all pages of a list, up to [`MAX_LIST_COUNT`], or up to
    /// [`MAX_SEARCH_COUNT`] with search terms.
    pub fn count_templates(&self, query: ListQuery) -> StoreFuture<'_, u64> {
        self.with_faults_of("count_templates", self.engine.count_templates(query))
    }

    /// Advances the search index by one step towards the newest events.
    pub fn update_search_index(&self) -> StoreFuture<'_, IndexProgress> {
        self.with_faults_of("update_search_index", self.engine.update_search_index())
    }

    /// Advances the search index by one step for one account, ahead of all other accounts, unless
    /// it contains the account's events up to number `newest`.
    pub fn index_account(&self, account: AccountId, newest: u64) -> StoreFuture<'_, IndexStep> {
        self.with_faults_of("index_account", self.engine.index_account(account, newest))
    }
}
