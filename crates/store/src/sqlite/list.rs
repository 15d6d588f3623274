//! SQL for lists and counts of templates.
//!
//! A list is read bucket by bucket. A list bucket (the column `bucket`) contains the templates of an
//! account with the same status, category and language, so a filter by these costs a few index
//! seeks, regardless of the number of templates. Filters by phone number and time have no index:
//! they read the row of each template, without its content, until the page is full.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::Status,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::{
    buffered_index::{BufferedIndex, Lookup},
    index_state, search, templates,
};
use crate::{
    ListQuery, MAX_LIST_COUNT, MAX_SEARCH_COUNT, NameFilter, Page, StoreError, StoredTemplate,
    encoding::{key, unique_key_hash},
    lists::{IdRange, MAX_SEARCH_BATCH, MIN_SEARCH_BATCH, PageBuilder},
    records::matches_any,
    stored_row::StoredRow as _,
};

/// Number of search results read at once when counting.
const COUNT_BATCH: usize = 1_000;

/// Takes the templates of a list in its order, until it returns `false`.
type Visit<'v> = &'v mut dyn FnMut(StoredTemplate) -> bool;

/// Begins to look up the unique key that the list filters by, if it does, before the transaction of
/// the list.
pub(super) fn look_up_name<'i>(
    names: &'i BufferedIndex,
    listing: &ListQuery,
) -> Option<Lookup<'i>> {
    match &listing.name {
        Some(NameFilter::UniqueKey(unique_key)) => Some(names.lookup(unique_key_hash(unique_key))),
        Some(NameFilter::TranslationGroup(_)) | None => None,
    }
}

/// One page. `index` is the search index, if it is built; `name` is the result of [`look_up_name`].
pub(super) fn page(
    connection: &Connection,
    index: Option<&Connection>,
    listing: &ListQuery,
    name: Option<&Lookup<'_>>,
) -> Result<Page, StoreError> {
    // All statements read from one snapshot.
    let snapshot = connection.unchecked_transaction()?;
    let range = IdRange::of(listing);
    // Before the search: what is indexed meanwhile is found, but reported as missing at worst.
    let unindexed = if listing.uses_search_index() {
        index_state::load(&snapshot, index, listing.account)?.unindexed()
    } else {
        None
    };
    let mut page = PageBuilder::new(listing.limit);
    let wanted = listing.limit + 1;
    find(&snapshot, index, listing, name, range, wanted, &mut |template| page.add(template))?;
    let mut is_beyond_cursor = false;
    if let Some(beyond) = IdRange::beyond_cursor(listing) {
        find(&snapshot, index, listing, name, beyond, 1, &mut |_| {
            is_beyond_cursor = true;
            false
        })?;
    }
    Ok(Page { unindexed, ..IdRange::page(listing, page, is_beyond_cursor) })
}

/// Visits the templates in the range that match the list, of which at most `wanted` are needed.
fn find(
    connection: &Connection,
    index: Option<&Connection>,
    listing: &ListQuery,
    name: Option<&Lookup<'_>>,
    range: IdRange,
    wanted: usize,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    if let Some(mut ids) = ids_of_name(connection, listing, name)? {
        ids.retain(|id| range.contains(*id));
        range.sort(&mut ids);
        let mut visit = |template| !listing.matches_words(&template) || visit(template);
        return fetch(connection, listing, ids, &mut visit).map(drop);
    }
    if listing.words.is_empty() {
        let ids = nearest(connection, listing, range, wanted)?;
        return fetch(connection, listing, ids, visit).map(drop);
    }
    match index {
        Some(index) => search(connection, index, listing, range, wanted, visit),
        None => Ok(()),
    }
}

/// The ids of the templates with the name that the list filters by, if it does.
fn ids_of_name(
    connection: &Connection,
    listing: &ListQuery,
    name: Option<&Lookup<'_>>,
) -> Result<Option<Vec<TemplateId>>, StoreError> {
    Ok(match &listing.name {
        Some(NameFilter::UniqueKey(_)) => {
            let Some(name) = name else { return Ok(Some(Vec::new())) };
            let id = name.finish(connection)?;
            let conflict = templates::name_conflict(connection, listing.account, id, name.hash())?;
            Some(conflict.and_then(|conflict| conflict.existing_id).into_iter().collect())
        }
        Some(NameFilter::TranslationGroup(group)) => {
            let mut query = connection.prepare_cached(
                "SELECT id FROM template INDEXED BY template_of_translation_group WHERE \
                 translation_group = ?1 AND account_id = ?2 AND unique_key IS NOT NULL ORDER BY id",
            )?;
            let values = params![group.0, key(listing.account.get())];
            let ids = query.query_and_then(values, |row| row.template_id(0))?;
            Some(ids.collect::<Result<_, StoreError>>()?)
        }
        None => None,
    })
}

/// Visits the templates with these ids that match the filters of the list. Returns whether the
/// visitor wants more.
fn fetch(
    connection: &Connection,
    listing: &ListQuery,
    ids: impl IntoIterator<Item = TemplateId>,
    visit: Visit<'_>,
) -> Result<bool, StoreError> {
    let mut rows = RowReader::new(connection, listing)?;
    for id in ids {
        // Content is long: it is read and decoded only if the rest of the row matches.
        if listing.has_row_filters() && !rows.matches(id)? {
            continue;
        }
        let template = templates::one(connection, listing.account, id)?;
        if let Some(template) = template.filter(|template| listing.passes_filters(template))
            && !visit(template)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads candidates from the search index and filters them by their current rows.
fn search(
    connection: &Connection,
    index: &Connection,
    listing: &ListQuery,
    mut range: IdRange,
    wanted: usize,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    let query = search::Query::new(index, listing)?;
    let mut batch = wanted.max(MIN_SEARCH_BATCH);
    loop {
        let ids = query.ids(index, range, batch)?;
        let next = ids.last().copied().filter(|_| ids.len() == batch);
        if !fetch(connection, listing, ids, visit)? {
            return Ok(());
        }
        let Some(last) = next else { return Ok(()) };
        range = range.resuming_after(last);
        // The filters match few of the results, and every query looks the words up again.
        batch = (4 * batch).min(MAX_SEARCH_BATCH);
    }
}

/// The number of templates in the list, up to the limit of counting.
pub(super) fn count(
    connection: &Connection,
    index: Option<&Connection>,
    listing: &ListQuery,
    name: Option<&Lookup<'_>>,
) -> Result<u64, StoreError> {
    let snapshot = connection.unchecked_transaction()?;
    if listing.name.is_some() {
        let mut count = 0;
        find(&snapshot, index, listing, name, IdRange::ALL, usize::MAX, &mut |_| {
            count += 1;
            true
        })?;
        return Ok(count);
    }
    if listing.words.is_empty() && listing.awaiting_review {
        let max = usize::try_from(MAX_LIST_COUNT).unwrap_or(usize::MAX);
        return Ok(awaiting_review(&snapshot, listing, IdRange::ALL, max)?.len() as u64);
    }
    if listing.words.is_empty() {
        return count_buckets(&snapshot, listing);
    }
    match index {
        Some(index) => count_found(&snapshot, index, listing),
        None => Ok(0),
    }
}

/// Counts list buckets in the database index, without reading rows.
fn count_buckets(connection: &Connection, listing: &ListQuery) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT count(*) FROM (SELECT 1 FROM template INDEXED BY template_in_bucket \
         WHERE account_id = ?1 AND bucket = ?2 AND unique_key IS NOT NULL AND {} LIMIT ?3)",
        RowFilters::sql(4, listing)
    ))?;
    let RowFilters { is_set, from, before, phones } = RowFilters::new(listing);
    let mut count = 0;
    for bucket in
        buckets(connection, listing.account)?.iter().filter(|it| listing.includes_bucket(it))
    {
        let rest = key(MAX_LIST_COUNT - count);
        let account = key(listing.account.get());
        let values = params![account, bucket, rest, is_set, from, before, phones];
        let in_bucket: i64 = query.query_row(values, |row| row.get(0))?;
        count += u64::try_from(in_bucket).unwrap_or(0);
    }
    Ok(count)
}

/// Counts the search results that match the filters.
fn count_found(
    connection: &Connection,
    index: &Connection,
    listing: &ListQuery,
) -> Result<u64, StoreError> {
    let mut rows = RowReader::new(connection, listing)?;
    let query = search::Query::new(index, listing)?;
    let (mut range, mut count) = (IdRange::ALL, 0);
    loop {
        let ids = query.ids(index, range, COUNT_BATCH)?;
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

/// Checks rows against the filters of a list. Reads the columns before the content only.
struct RowReader<'a> {
    query: CachedStatement<'a>,
    listing: &'a ListQuery,
    filters: RowFilters,
}

impl<'a> RowReader<'a> {
    fn new(connection: &'a Connection, listing: &'a ListQuery) -> Result<Self, StoreError> {
        let query = connection.prepare_cached(&format!(
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

/// The first ids in the range that match a list of templates that await review. There are few: they
/// have an index of their own, and filters read their rows.
fn awaiting_review(
    connection: &Connection,
    listing: &ListQuery,
    range: IdRange,
    wanted: usize,
) -> Result<Vec<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT id, bucket FROM template INDEXED BY template_awaiting_review WHERE \
         account_id = ?1 AND id < ?2 AND id > ?3 AND unique_key IS NOT NULL AND {AWAITING_REVIEW} AND {} \
         ORDER BY id {}",
        RowFilters::sql(4, listing),
        range.order()
    ))?;
    let RowFilters { is_set, from, before, phones } = RowFilters::new(listing);
    let (above, below) = range.bounds();
    let account = key(listing.account.get());
    let mut rows = query.query(params![account, below, above, is_set, from, before, phones])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()?.filter(|_| ids.len() < wanted) {
        if listing.includes_bucket(&row.get::<_, String>(1)?) {
            ids.push(row.template_id(0)?);
        }
    }
    Ok(ids)
}

/// The first ids in the range, merged from all buckets that match the list.
pub(super) fn nearest(
    connection: &Connection,
    listing: &ListQuery,
    range: IdRange,
    wanted: usize,
) -> Result<Vec<TemplateId>, StoreError> {
    if listing.awaiting_review {
        return awaiting_review(connection, listing, range, wanted);
    }
    let mut query = connection.prepare_cached(&format!(
        "SELECT id FROM template INDEXED BY template_in_bucket WHERE account_id = ?1 AND \
         bucket = ?2 AND id < ?3 AND id > ?4 AND unique_key IS NOT NULL AND {} ORDER BY id {} LIMIT ?5",
        RowFilters::sql(6, listing),
        range.order()
    ))?;
    let RowFilters { is_set, from, before, phones } = RowFilters::new(listing);
    let mut ids: Vec<TemplateId> = Vec::new();
    let limit = i64::try_from(wanted).unwrap_or(i64::MAX);
    for bucket in
        buckets(connection, listing.account)?.iter().filter(|it| listing.includes_bucket(it))
    {
        // Ids beyond the last one found so far cannot be on the page.
        let near = ids.get(wanted - 1).map_or(range, |last| range.stopping_before(*last));
        let (above, below) = near.bounds();
        let account = key(listing.account.get());
        let values = params![account, bucket, below, above, limit, is_set, from, before, phones];
        for id in query.query_and_then(values, |row| row.template_id(0))? {
            ids.push(id?);
        }
        range.sort(&mut ids);
        ids.truncate(wanted);
    }
    Ok(ids)
}

/// The list buckets of an account that are not empty, with one index seek for each.
fn buckets(connection: &Connection, account: AccountId) -> Result<Vec<String>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT bucket FROM template INDEXED BY template_in_bucket WHERE account_id = ?1 AND \
         bucket > ?2 AND unique_key IS NOT NULL ORDER BY bucket LIMIT 1",
    )?;
    let mut buckets: Vec<String> = Vec::new();
    loop {
        let values = params![key(account.get()), buckets.last().map_or("", String::as_str)];
        match query.query_row(values, |row| row.get(0)).optional()? {
            Some(bucket) => buckets.push(bucket),
            None => return Ok(buckets),
        }
    }
}
