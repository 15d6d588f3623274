//! SQL for lists and counts of templates.
//!
//! A list is read bucket by bucket. A list bucket (the column `bucket`) contains the templates of an
//! account with the same status, category and language, so a filter by these costs a few index
//! seeks, regardless of the number of templates. Filters by phone number and time have no index:
//! they read the row of each template, without its content, until the page is full.

use galley_domain::{id::TemplateId, rulebook::Category, template::Status};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::{buffered_index::Lookup, index_state, point_readers, search, statements::ready};
use crate::{
    ListQuery, MAX_LIST_COUNT, MAX_SEARCH_COUNT, NameFilter, Page, StoreError,
    encoding::key,
    lists::{self, IdRange, IndexState, ListReader, Visit},
    records::matches_any,
    stored_row::StoredRow as _,
};

/// Number of search results read at once when counting.
const COUNT_BATCH: usize = 1_000;

/// A list, and the connections that read it.
pub(super) struct List<'l> {
    pub(super) store: &'l Connection,
    /// The search index, if it is built.
    pub(super) index: Option<&'l Connection>,
    pub(super) query: &'l ListQuery,
    /// The lookup of the unique key that the list filters by, if it does. It began before the
    /// transaction of the list.
    pub(super) name: Option<Lookup<'l>>,
}

/// One page.
pub(super) fn page(list: &List<'_>) -> Result<Page, StoreError> {
    ready(lists::page(list))
}

/// The number of templates in the list, up to the limit of counting.
pub(super) fn count(list: &List<'_>) -> Result<u64, StoreError> {
    if list.query.name.is_some() {
        return ready(lists::count_by_name(list));
    }
    if !list.query.words.is_empty() {
        return list.count_found();
    }
    if list.query.awaiting_review {
        let max = usize::try_from(MAX_LIST_COUNT).unwrap_or(usize::MAX);
        return Ok(list.awaiting_review(IdRange::ALL, max)?.len() as u64);
    }
    list.count_in_buckets()
}

impl<'l> ListReader for List<'l> {
    /// Without an index, a search finds nothing.
    type Search = Option<search::Query<'l>>;
    type Found = Vec<TemplateId>;

    fn query(&self) -> &ListQuery {
        self.query
    }

    async fn index_state(&self) -> Result<IndexState, StoreError> {
        index_state::load(self.store, self.index, self.query.account)
    }

    async fn by_name(
        &self,
        name: &NameFilter,
        range: IdRange,
    ) -> Result<Vec<TemplateId>, StoreError> {
        let mut ids: Vec<TemplateId> = match name {
            NameFilter::UniqueKey(_) => {
                let Some(name) = &self.name else { return Ok(Vec::new()) };
                let (account, id) = (self.query.account, name.finish(self.store)?);
                let conflict = point_readers::name_conflict(self.store, account, id, name.hash)?;
                conflict.and_then(|conflict| conflict.existing_id).into_iter().collect()
            }
            NameFilter::TranslationGroup(group) => {
                let mut query = self.store.prepare_cached(
                    "SELECT id FROM template INDEXED BY template_of_translation_group WHERE \
                     translation_group = ?1 AND account_id = ?2 AND unique_key IS NOT NULL ORDER BY id",
                )?;
                let values = params![group.0, key(self.query.account.get())];
                let ids = query.query_and_then(values, |row| row.template_id(0))?;
                ids.collect::<Result<_, StoreError>>()?
            }
        };
        ids.retain(|id| range.contains(*id));
        range.sort(&mut ids);
        Ok(ids)
    }

    /// The first ids in the range, merged from all buckets that match the list.
    async fn nearest(&self, range: IdRange, wanted: usize) -> Result<Vec<TemplateId>, StoreError> {
        if self.query.awaiting_review {
            return self.awaiting_review(range, wanted);
        }
        let mut query = self.store.prepare_cached(&format!(
            "SELECT id FROM template INDEXED BY template_in_bucket WHERE account_id = ?1 AND \
             bucket = ?2 AND id < ?3 AND id > ?4 AND unique_key IS NOT NULL AND {} ORDER BY id {} LIMIT ?5",
            RowFilters::sql(6, self.query),
            range.order()
        ))?;
        let RowFilters { is_set, from, before, phones } = RowFilters::new(self.query);
        let mut ids: Vec<TemplateId> = Vec::new();
        let limit = i64::try_from(wanted).unwrap_or(i64::MAX);
        for bucket in self.buckets()? {
            // Ids beyond the last one found so far cannot be on the page.
            let near = ids.get(wanted - 1).map_or(range, |last| range.stopping_before(*last));
            let (above, below) = near.bounds();
            let account = key(self.query.account.get());
            let values =
                params![account, bucket, below, above, limit, is_set, from, before, phones];
            for id in query.query_and_then(values, |row| row.template_id(0))? {
                ids.push(id?);
            }
            range.sort(&mut ids);
            ids.truncate(wanted);
        }
        Ok(ids)
    }

    fn search(&self) -> Result<Self::Search, StoreError> {
        self.index.map(|index| search::Query::new(index, self.query)).transpose()
    }

    async fn hits(
        &self,
        search: &Self::Search,
        range: IdRange,
        limit: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        search.as_ref().map_or(Ok(Vec::new()), |search| search.ids(range, limit))
    }

    async fn by_ids(&self, _: IdRange, ids: &[TemplateId]) -> Result<Vec<TemplateId>, StoreError> {
        Ok(ids.to_vec())
    }

    async fn visit(
        &self,
        _: IdRange,
        found: Vec<TemplateId>,
        visit: Visit<'_>,
    ) -> Result<bool, StoreError> {
        let mut rows = RowReader::new(self)?;
        for id in found {
            // Content is long: it is read and decoded only if the rest of the row matches.
            if self.query.has_row_filters() && !rows.matches(id)? {
                continue;
            }
            let template = point_readers::template(self.store, self.query.account, id)?;
            if let Some(template) = template.filter(|template| self.query.passes_filters(template))
                && !visit(template)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl List<'_> {
    /// Counts list buckets in the database index, without reading rows.
    fn count_in_buckets(&self) -> Result<u64, StoreError> {
        let mut query = self.store.prepare_cached(&format!(
            "SELECT count(*) FROM (SELECT 1 FROM template INDEXED BY template_in_bucket \
             WHERE account_id = ?1 AND bucket = ?2 AND unique_key IS NOT NULL AND {} LIMIT ?3)",
            RowFilters::sql(4, self.query)
        ))?;
        let RowFilters { is_set, from, before, phones } = RowFilters::new(self.query);
        let mut count = 0;
        for bucket in self.buckets()? {
            let rest = key(MAX_LIST_COUNT - count);
            let account = key(self.query.account.get());
            let values = params![account, bucket, rest, is_set, from, before, phones];
            let in_bucket: i64 = query.query_row(values, |row| row.get(0))?;
            count += u64::try_from(in_bucket).unwrap_or(0);
        }
        Ok(count)
    }

    /// Counts the search results that match the filters.
    fn count_found(&self) -> Result<u64, StoreError> {
        let Some(search) = self.search()? else { return Ok(0) };
        let mut rows = RowReader::new(self)?;
        let (mut range, mut count) = (IdRange::ALL, 0);
        loop {
            let ids = search.ids(range, COUNT_BATCH)?;
            for id in &ids {
                count += u64::from(rows.matches(*id)?);
                if count == MAX_SEARCH_COUNT {
                    return Ok(count);
                }
            }
            match ids.last() {
                Some(last) if ids.len() == COUNT_BATCH => range = range.resuming_after(*last),
                _ => return Ok(count),
            }
        }
    }

    /// The first ids in the range that match a list of templates that await review. There are few:
    /// they have an index of their own, and filters read their rows.
    fn awaiting_review(
        &self,
        range: IdRange,
        wanted: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        let mut query = self.store.prepare_cached(&format!(
            "SELECT id, bucket FROM template INDEXED BY template_awaiting_review WHERE \
             account_id = ?1 AND id < ?2 AND id > ?3 AND unique_key IS NOT NULL AND {AWAITING_REVIEW} AND {} \
             ORDER BY id {}",
            RowFilters::sql(4, self.query),
            range.order()
        ))?;
        let RowFilters { is_set, from, before, phones } = RowFilters::new(self.query);
        let (above, below) = range.bounds();
        let account = key(self.query.account.get());
        let mut rows = query.query(params![account, below, above, is_set, from, before, phones])?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next()?.filter(|_| ids.len() < wanted) {
            if self.query.includes_bucket(&row.get::<_, String>(1)?) {
                ids.push(row.template_id(0)?);
            }
        }
        Ok(ids)
    }

    /// The list buckets of the account that are not empty, with one index seek for each, of which
    /// those that match the list.
    fn buckets(&self) -> Result<Vec<String>, StoreError> {
        let mut query = self.store.prepare_cached(
            "SELECT bucket FROM template INDEXED BY template_in_bucket WHERE account_id = ?1 AND \
             bucket > ?2 AND unique_key IS NOT NULL ORDER BY bucket LIMIT 1",
        )?;
        let mut buckets: Vec<String> = Vec::new();
        loop {
            let last = buckets.last().map_or("", String::as_str);
            let values = params![key(self.query.account.get()), last];
            let Some(next) = query.query_row(values, |row| row.get(0)).optional()? else { break };
            buckets.push(next);
        }
        buckets.retain(|bucket| self.query.includes_bucket(bucket));
        Ok(buckets)
    }
}

/// Checks rows against the filters of a list. Reads the columns before the content only.
struct RowReader<'a> {
    query: CachedStatement<'a>,
    listing: &'a ListQuery,
    filters: RowFilters,
}

impl<'a> RowReader<'a> {
    fn new(list: &'a List<'_>) -> Result<Self, StoreError> {
        let (store, listing) = (list.store, list.query);
        let query = store.prepare_cached(&format!(
            "SELECT bucket, {AWAITING_REVIEW} FROM template WHERE id = ?1 AND account_id = ?2 AND \
             unique_key IS NOT NULL AND {}",
            RowFilters::sql(3, listing)
        ))?;
        Ok(Self { query, listing, filters: RowFilters::new(listing) })
    }

    /// Whether the template exists and matches the filters other than name and search terms.
    fn matches(&mut self, id: TemplateId) -> Result<bool, StoreError> {
        let RowFilters { is_set, from, before, phones } = &self.filters;
        let (id, account) = (key(id.get()), key(self.listing.account.get()));
        let mut rows = self.query.query(params![id, account, is_set, from, before, phones])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        Ok(self.listing.includes_bucket(&row.get::<_, String>(0)?)
            && (!self.listing.awaiting_review || row.get(1)?))
    }
}

impl ListQuery {
    /// Whether the templates in a list bucket match these filters.
    fn includes_bucket(&self, bucket: &str) -> bool {
        let mut parts = bucket.split(' ');
        let mut part = || parts.next().unwrap_or_default();
        let (status, category, language) = (part(), part(), part());
        matches_any(&self.statuses, |wanted: &Status| wanted.as_str() == status)
            && matches_any(&self.categories, |wanted: &Category| wanted.as_str() == category)
            && matches_any(&self.languages, |wanted| wanted == language)
    }
}

/// The filters that no index contains, as SQL parameters. SQLite reads the row of an index entry
/// only if one of them is set.
struct RowFilters {
    is_set: bool,
    from: i64,
    before: i64,
    /// Each in a line, between line breaks; `None` matches all.
    phones: Option<String>,
}

impl RowFilters {
    fn new(listing: &ListQuery) -> Self {
        let ((from, before), is_set) = (listing.updated_range(), listing.has_row_filters());
        let phones =
            (!listing.phones.is_empty()).then(|| format!("\n{}\n", listing.phones.join("\n")));
        Self { is_set, from, before, phones }
    }

    /// The condition, with its four parameters from number `first` on.
    fn sql(first: usize, listing: &ListQuery) -> String {
        let (from, before, phones) = (first + 1, first + 2, first + 3);
        let condition = listing.row_condition();
        format!(
            "(NOT ?{first} OR updated_at >= ?{from} AND updated_at < ?{before} AND {condition} AND \
             (?{phones} IS NULL OR instr(?{phones}, char(10) || phone_id || char(10))))"
        )
    }
}

/// Whether a reviewer can decide on a template. Must be the exact condition of its index.
const AWAITING_REVIEW: &str = "status = 'PENDING' AND hold IS NOT 'DISABLED'";
