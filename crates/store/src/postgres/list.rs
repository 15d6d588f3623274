//! Lists, as SQL. A list bucket has the templates of an account with the same status, category and
//! language. Lists are read bucket by bucket, so that a filter by these costs a few index seeks,
//! whatever the number of templates. Filters by phone number and time have no index: they read the
//! row of each template, without its content, until the page is full.

use futures_util::future::try_join;
use galley_domain::id::TemplateId;
use tokio_postgres::{Row, types::ToSql};

use super::{index_state, pool::PgConnection, search::SearchQuery, templates};
use crate::{
    ListQuery, MAX_LIST_COUNT, MAX_SEARCH_COUNT, NameFilter, Page, StoreError, StoredTemplate,
    Unindexed,
    encoding::{key, unique_key_hash, without_nul},
    lists::{
        IdRange, MAX_SEARCH_BATCH, MIN_SEARCH_BATCH, PageBuilder, bucket_on_postgres as bucket,
    },
    stored_row::StoredRow as _,
};

/// Takes the templates of a list in its order, until it returns `false`.
type Visit<'v> = &'v mut (dyn FnMut(StoredTemplate) -> bool + Send);

const BUCKET: &str = bucket!();

/// The non-empty buckets of an account, with one index seek each. The last row has no name.
const BUCKETS: &str = concat!(
    "WITH RECURSIVE bucket (name) AS ((SELECT ",
    bucket!(),
    " FROM template WHERE account_id = $1 AND unique_key IS NOT NULL ORDER BY ",
    bucket!(),
    " LIMIT 1) UNION ALL SELECT (SELECT ",
    bucket!(),
    " FROM template WHERE account_id = $1 AND unique_key IS NOT NULL AND ",
    bucket!(),
    " > bucket.name ORDER BY ",
    bucket!(),
    " LIMIT 1) FROM bucket WHERE bucket.name IS NOT NULL)"
);

/// Checks the account of a template that was found by another index. The addition keeps the planner
/// from using the account's index: it assumes that accounts are about equally large, and would scan
/// all templates of a large one instead of checking a few rows.
pub(super) const OWNED: &str = "account_id + 0 = $1";

/// The filters of a list on the template row: statuses, categories, languages, phone numbers and
/// time of the last change. An empty array matches all.
const FILTERS: &str = "(cardinality($2::text[]) = 0 OR coalesce(hold, status) = ANY($2)) AND \
     (cardinality($3::text[]) = 0 OR category = ANY($3)) AND \
     (cardinality($4::text[]) = 0 OR language = ANY($4)) AND \
     (cardinality($5::text[]) = 0 OR phone_id = ANY($5)) AND updated_at >= $6 AND updated_at < $7";

/// The filters of a list on the name of a bucket.
const BUCKET_FILTERS: &str = "(cardinality($2::text[]) = 0 OR split_part(name, ' ', 1) = ANY($2)) \
     AND (cardinality($3::text[]) = 0 OR split_part(name, ' ', 2) = ANY($3)) AND \
     (cardinality($4::text[]) = 0 OR split_part(name, ' ', 3) = ANY($4))";

/// The filters of a list within a bucket. They require its rows.
const ROW_FILTERS: &str = "(cardinality($5::text[]) = 0 OR phone_id = ANY($5)) AND \
     updated_at >= $6 AND updated_at < $7";

/// The same parameters for a list without these filters, which is read from the index alone. Does
/// not depend on the row, so that the server evaluates it once.
const NO_ROW_FILTERS: &str = "$5::text[] IS NOT NULL AND $6::int8 IS NOT NULL AND $7::int8 IS NOT \
     NULL";

/// Whether a reviewer can decide on a template. Must be the exact condition of its index.
const AWAITING_REVIEW: &str = "status = 'PENDING' AND hold IS DISTINCT FROM 'DISABLED'";

/// The filters of a list on the template row.
fn filters(query: &ListQuery) -> String {
    let review = if query.awaiting_review { AWAITING_REVIEW } else { "true" };
    format!("{review} AND {} AND {FILTERS}", query.row_condition())
}

/// The account and the filters of a list, as the first seven parameters of a statement.
struct Filters {
    account: i64,
    statuses: Vec<&'static str>,
    categories: Vec<&'static str>,
    languages: Vec<String>,
    phones: Vec<String>,
    updated_from: i64,
    updated_before: i64,
}

impl Filters {
    fn new(query: &ListQuery) -> Self {
        let (updated_from, updated_before) = query.updated_range();
        let without_nul = |values: &[String]| -> Vec<String> {
            values.iter().map(|it| without_nul(it).into_owned()).collect()
        };
        Self {
            account: key(query.account.get()),
            phones: without_nul(&query.phones),
            updated_from,
            updated_before,
            statuses: query.statuses.iter().map(|it| it.as_str()).collect(),
            categories: query.categories.iter().map(|it| it.as_str()).collect(),
            languages: without_nul(&query.languages),
        }
    }

    /// Whether every bucket matches.
    fn are_empty(&self) -> bool {
        self.statuses.is_empty() && self.categories.is_empty() && self.languages.is_empty()
    }

    /// All parameters of a statement; `others` are those after the filters.
    fn followed_by<'a>(&'a self, others: &[&'a (dyn ToSql + Sync)]) -> Vec<&'a (dyn ToSql + Sync)> {
        let filters: [&'a (dyn ToSql + Sync); 7] = [
            &self.account,
            &self.statuses,
            &self.categories,
            &self.languages,
            &self.phones,
            &self.updated_from,
            &self.updated_before,
        ];
        [&filters, others].concat()
    }
}

/// The filters of a list within a bucket.
fn row_filters(query: &ListQuery) -> String {
    if query.has_row_filters() {
        format!("{} AND {ROW_FILTERS}", query.row_condition())
    } else {
        NO_ROW_FILTERS.to_owned()
    }
}

/// Reads one page from a snapshot.
pub(super) async fn page(connection: &PgConnection, query: &ListQuery) -> Result<Page, StoreError> {
    connection.begin_snapshot().await?;
    let page = read_page(connection, query).await;
    connection.roll_back().await;
    page
}

async fn read_page(connection: &PgConnection, query: &ListQuery) -> Result<Page, StoreError> {
    let range = IdRange::of(query);
    let mut page = PageBuilder::new(query.limit);
    let mut add = |template| page.add(template);
    // Sent together with the first statement of the search.
    let found = find(connection, query, range, query.limit + 1, &mut add);
    let (unindexed, ()) = try_join(unindexed(connection, query), found).await?;
    let mut is_beyond_cursor = false;
    if let Some(beyond) = IdRange::beyond_cursor(query) {
        let mut visit = |_| {
            is_beyond_cursor = true;
            false
        };
        find(connection, query, beyond, 1, &mut visit).await?;
    }
    Ok(Page { unindexed, ..IdRange::page(query, page, is_beyond_cursor) })
}

/// What the search index lacks, if the list uses it.
async fn unindexed(
    connection: &PgConnection,
    query: &ListQuery,
) -> Result<Option<Unindexed>, StoreError> {
    if !query.uses_search_index() {
        return Ok(None);
    }
    Ok(index_state::load(connection, query.account).await?.unindexed())
}

/// Visits the templates in an id range that match the list query, of which at most `wanted` are
/// needed.
async fn find(
    connection: &PgConnection,
    query: &ListQuery,
    range: IdRange,
    wanted: usize,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    if query.name.is_some() {
        let rows = by_name(connection, query, range).await?;
        let mut visit = |template| !query.matches_words(&template) || visit(template);
        return visit_rows(connection, query, range, rows, &mut visit).await.map(drop);
    }
    if query.words.is_empty() {
        let rows = if query.awaiting_review {
            awaiting_review(connection, query, range, wanted).await?
        } else {
            from_buckets(connection, query, range, wanted).await?
        };
        return visit_rows(connection, query, range, rows, visit).await.map(drop);
    }
    by_words(connection, query, range, wanted, visit).await
}

/// Visits the templates in these rows, and reads again those that came without content. Returns
/// whether the visitor wants more.
async fn visit_rows(
    connection: &PgConnection,
    query: &ListQuery,
    range: IdRange,
    mut rows: Vec<Row>,
    visit: Visit<'_>,
) -> Result<bool, StoreError> {
    loop {
        let mut without_content = Vec::new();
        for row in &rows {
            if !templates::has_content(row)? {
                without_content.push(row.template_id("id")?);
            } else if !visit(templates::stored(row)?) {
                return Ok(false);
            }
        }
        if without_content.is_empty() {
            return Ok(true);
        }
        drop(rows);
        rows = fetch(connection, query, range, &without_content).await?;
    }
}

/// The templates with the name; there are few.
async fn by_name(
    connection: &PgConnection,
    query: &ListQuery,
    range: IdRange,
) -> Result<Vec<Row>, StoreError> {
    let (column, hash) = match &query.name {
        Some(NameFilter::UniqueKey(unique_key)) => ("unique_key", unique_key_hash(unique_key)),
        Some(NameFilter::TranslationGroup(group)) => ("translation_group", group.0),
        None => return Ok(Vec::new()),
    };
    let statement = format!(
        "SELECT {} FROM template WHERE {column} = $8 AND {OWNED} AND unique_key IS NOT NULL \
         AND {} AND id > $9 AND id < $10 ORDER BY id {}",
        templates::page_columns(range.order()),
        filters(query),
        range.order()
    );
    let (above, below) = range.bounds();
    let filters = Filters::new(query);
    connection.query(&statement, &filters.followed_by(&[&&hash[..], &above, &below])).await
}

/// The nearest ids in each matching bucket, merged.
pub(super) async fn from_buckets(
    connection: &PgConnection,
    query: &ListQuery,
    range: IdRange,
    wanted: usize,
) -> Result<Vec<Row>, StoreError> {
    let order = range.order();
    let statement = format!(
        "{BUCKETS} SELECT {} FROM template WHERE id = ANY(ARRAY(SELECT near.id FROM bucket \
         CROSS JOIN LATERAL (SELECT id FROM template WHERE account_id = $1 AND \
         {BUCKET} = bucket.name AND unique_key IS NOT NULL AND id > $8 AND id < $9 AND {} \
         ORDER BY id {order} LIMIT $10) AS near WHERE bucket.name IS NOT NULL AND {BUCKET_FILTERS} \
         ORDER BY near.id {order} LIMIT $10)) ORDER BY id {order}",
        templates::page_columns(order),
        row_filters(query)
    );
    let (above, below) = range.bounds();
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
    let filters = Filters::new(query);
    connection.query(&statement, &filters.followed_by(&[&above, &below, &wanted])).await
}

/// The first templates in the range that await review. There are few: they have an index of their
/// own, and filters read their rows.
async fn awaiting_review(
    connection: &PgConnection,
    query: &ListQuery,
    range: IdRange,
    wanted: usize,
) -> Result<Vec<Row>, StoreError> {
    let order = range.order();
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY(ARRAY(SELECT id FROM template WHERE \
         account_id = $1 AND unique_key IS NOT NULL AND {} AND id > $8 AND id < $9 ORDER BY id {order} \
         LIMIT $10)) ORDER BY id {order}",
        templates::page_columns(order),
        filters(query)
    );
    let (above, below) = range.bounds();
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
    let filters = Filters::new(query);
    connection.query(&statement, &filters.followed_by(&[&above, &below, &wanted])).await
}

/// The search index finds candidates; their rows are checked against the filters.
async fn by_words(
    connection: &PgConnection,
    query: &ListQuery,
    mut range: IdRange,
    wanted: usize,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    let (search, mut step) = (SearchQuery::new(query), wanted.max(MIN_SEARCH_BATCH));
    loop {
        let ids = search.ids(connection, range, step).await?;
        let next = ids.last().copied().filter(|_| ids.len() == step);
        let rows = fetch(connection, query, range, &ids).await?;
        if !visit_rows(connection, query, range, rows, visit).await? {
            return Ok(());
        }
        let Some(last) = next else { return Ok(()) };
        range = range.resuming_after(last);
        // The filters match few of the hits, and every search begins anew.
        step = (4 * step).min(MAX_SEARCH_BATCH);
    }
}

/// The rows of the templates with these ids that match the list query, in list order.
async fn fetch(
    connection: &PgConnection,
    query: &ListQuery,
    range: IdRange,
    ids: &[TemplateId],
) -> Result<Vec<Row>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY($8) AND {OWNED} AND unique_key IS NOT NULL \
         AND {} ORDER BY id {}",
        templates::page_columns(range.order()),
        filters(query),
        range.order()
    );
    let ids: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    let filters = Filters::new(query);
    connection.query(&statement, &filters.followed_by(&[&ids])).await
}

/// Counts the templates of a list, up to the maximum.
pub(super) async fn count(connection: &PgConnection, query: &ListQuery) -> Result<u64, StoreError> {
    if query.name.is_some() {
        let mut count = 0;
        let mut visit = |_| {
            count += 1;
            true
        };
        find(connection, query, IdRange::ALL, usize::MAX, &mut visit).await?;
        return Ok(count);
    }
    if query.words.is_empty() {
        return count_in_buckets(connection, query).await;
    }
    // If at least half of the newest templates match, the maximum is reached among them. The index
    // would collect all matches of such a common word first.
    let newest = "SELECT template_id FROM (SELECT template_id, words FROM search_index \
                  ORDER BY template_id DESC LIMIT $10) AS newest \
                  WHERE words @@ (SELECT $9::text::tsquery)";
    let count = count_hits(connection, query, newest).await?;
    if count == MAX_SEARCH_COUNT {
        return Ok(count);
    }
    let all =
        "SELECT template_id FROM search_index WHERE words @@ (SELECT $9::text::tsquery) LIMIT $10";
    count_hits(connection, query, all).await
}

/// Counts the hits of a search statement that match the list query, up to the maximum.
async fn count_hits(
    connection: &PgConnection,
    query: &ListQuery,
    hits: &str,
) -> Result<u64, StoreError> {
    let statement = format!(
        "WITH found AS MATERIALIZED ({hits}) SELECT count(*) FROM (SELECT 1 FROM found \
         JOIN template ON id = template_id WHERE {OWNED} AND unique_key IS NOT NULL AND {} \
         LIMIT $8) AS counted",
        filters(query)
    );
    let max = key(MAX_SEARCH_COUNT);
    // Some hits may be deleted since they were indexed, but not half of them.
    let (search, max_hits) = (SearchQuery::new(query), key(2 * MAX_SEARCH_COUNT));
    let (filters, search) = (Filters::new(query), search.text());
    let values = filters.followed_by(&[&max, &search, &max_hits]);
    let rows = connection.query(&statement, &values).await?;
    rows.first().map_or(Ok(0), |row| row.number(0))
}

/// Counts with the account's index alone if there are no filters, else in the matching buckets.
async fn count_in_buckets(connection: &PgConnection, query: &ListQuery) -> Result<u64, StoreError> {
    let (filters, max) = (Filters::new(query), key(MAX_LIST_COUNT));
    let rows = if query.awaiting_review {
        let statement = format!(
            "SELECT count(*) FROM (SELECT 1 FROM template WHERE account_id = $1 AND unique_key IS NOT \
             NULL AND {} LIMIT $8) AS counted",
            self::filters(query)
        );
        connection.query(&statement, &filters.followed_by(&[&max])).await?
    } else if filters.are_empty() && !query.has_row_filters() {
        let statement = "SELECT count(*) FROM (SELECT 1 FROM template WHERE account_id = $1 AND \
                         unique_key IS NOT NULL LIMIT $2) AS counted";
        connection.query(statement, &[&filters.account, &max]).await?
    } else {
        let statement = format!(
            "{BUCKETS} SELECT count(*) FROM (SELECT 1 FROM bucket CROSS JOIN LATERAL (SELECT 1 \
             FROM template WHERE account_id = $1 AND {BUCKET} = bucket.name AND unique_key IS NOT NULL \
             AND {} OFFSET 0) AS there WHERE bucket.name IS NOT NULL AND {BUCKET_FILTERS} LIMIT $8) \
             AS counted",
            row_filters(query)
        );
        connection.query(&statement, &filters.followed_by(&[&max])).await?
    };
    rows.first().map_or(Ok(0), |row| row.number(0))
}
