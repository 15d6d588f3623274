//! How a list is read, from a snapshot of either engine.

use futures_util::future::try_join;
use galley_domain::id::TemplateId;

use super::{IdRange, IndexState, PageBuilder};
use crate::{ListQuery, NameFilter, Page, StoreError, StoredTemplate};

/// Minimum number of search results to read at once: some of the templates may have been deleted
/// since they were indexed.
const MIN_SEARCH_BATCH: usize = 16;

/// Maximum number of search results to read at once.
const MAX_SEARCH_BATCH: usize = 4_096;

/// Takes the templates of a list in its order, until it returns `false`.
pub(crate) type Visit<'v> = &'v mut (dyn FnMut(StoredTemplate) -> bool + Send);

/// A list with the connections to one snapshot of an engine, in which its indexes find candidates.
pub(crate) trait ListReader {
    /// The search terms and filters in the language of the search index.
    type Search;
    /// Candidates, of which an engine has read as much as it reads at once.
    type Found;

    fn query(&self) -> &ListQuery;

    /// How far the search index is behind the account.
    async fn index_state(&self) -> Result<IndexState, StoreError>;

    /// The templates in the range with the name; there are few.
    async fn by_name(&self, name: &NameFilter, range: IdRange) -> Result<Self::Found, StoreError>;

    /// The first templates in the range that match a list without a name and without search terms.
    async fn nearest(&self, range: IdRange, wanted: usize) -> Result<Self::Found, StoreError>;

    fn search(&self) -> Result<Self::Search, StoreError>;

    /// The first templates in the range that the search index finds.
    async fn hits(
        &self,
        search: &Self::Search,
        range: IdRange,
        limit: usize,
    ) -> Result<Vec<TemplateId>, StoreError>;

    /// The templates with these ids.
    async fn by_ids(&self, range: IdRange, ids: &[TemplateId]) -> Result<Self::Found, StoreError>;

    /// Visits those that match the filters of the list. Returns whether the visitor wants more.
    async fn visit(
        &self,
        range: IdRange,
        found: Self::Found,
        visit: Visit<'_>,
    ) -> Result<bool, StoreError>;
}

/// Reads one page.
pub(crate) async fn page(list: &impl ListReader) -> Result<Page, StoreError> {
    let query = list.query();
    let mut page = PageBuilder::new(query.limit);
    let unindexed = async {
        let uses_index = query.uses_search_index();
        Ok(if uses_index { list.index_state().await?.unindexed() } else { None })
    };
    let mut add = |template| page.add(template);
    let found = find(list, IdRange::of(query), query.limit + 1, &mut add);
    // The state of the index before the search: what is indexed meanwhile is found, but reported as
    // missing at worst. PostgreSQL gets the first statements of both together.
    let (unindexed, ()) = try_join(unindexed, found).await?;
    let mut is_beyond_cursor = false;
    if let Some(beyond) = IdRange::beyond_cursor(query) {
        let mut visit = |_| {
            is_beyond_cursor = true;
            false
        };
        find(list, beyond, 1, &mut visit).await?;
    }
    let PageBuilder { mut templates, has_more, .. } = page;
    if query.before.is_some() {
        templates.reverse();
        return Ok(Page {
            templates,
            has_next: is_beyond_cursor,
            has_previous: has_more,
            unindexed,
        });
    }
    Ok(Page { templates, has_next: has_more, has_previous: is_beyond_cursor, unindexed })
}

/// The number of templates in a list that filters by a name.
pub(crate) async fn count_by_name(list: &impl ListReader) -> Result<u64, StoreError> {
    let mut count = 0;
    let mut visit = |_| {
        count += 1;
        true
    };
    find(list, IdRange::ALL, usize::MAX, &mut visit).await?;
    Ok(count)
}

/// Visits the templates in the range that match the list, of which at most `wanted` are needed.
async fn find(
    list: &impl ListReader,
    mut range: IdRange,
    wanted: usize,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    let query = list.query();
    if let Some(name) = &query.name {
        let found = list.by_name(name, range).await?;
        let mut visit = |template| !query.matches_words(&template) || visit(template);
        return list.visit(range, found, &mut visit).await.map(drop);
    }
    if query.words.is_empty() {
        let found = list.nearest(range, wanted).await?;
        return list.visit(range, found, visit).await.map(drop);
    }
    let (search, mut batch) = (list.search()?, wanted.max(MIN_SEARCH_BATCH));
    loop {
        let ids = list.hits(&search, range, batch).await?;
        let found = list.by_ids(range, &ids).await?;
        if !list.visit(range, found, visit).await? {
            return Ok(());
        }
        let Some(end) = ids.last().filter(|_| ids.len() == batch) else { return Ok(()) };
        range = range.resuming_after(*end);
        // The filters match few of the results, and every search looks the words up again.
        batch = (4 * batch).min(MAX_SEARCH_BATCH);
    }
}
