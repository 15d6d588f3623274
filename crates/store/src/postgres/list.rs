//! Lists, as SQL. A list bucket has the templates of an account with the same status, category and
//! language. Lists are read bucket by bucket, so that a filter by these costs a few index seeks,
//! whatever the number of templates. Filters by phone number and time have no index: they read the
//! row of each template, without its content, until the page is full.

use galley_domain::id::TemplateId;
use tokio_postgres::Row;

use super::{
    index_state,
    pool::{PgConnection, bound},
    search::SearchQuery,
};
use crate::{
    ListQuery, MAX_LIST_COUNT, MAX_SEARCH_COUNT, NameFilter, Page, StoreError,
    encoding::{key, unique_key_hash, without_nul},
    engine::{Dialect, Value, values},
    lists::{
        self, IdRange, IndexState, ListReader, MAX_PAGE_BYTES, Visit, bucket_on_postgres as bucket,
    },
    stored_row::StoredRow as _,
    templates::{columns, stored},
};

/// A list, and the connection that reads it.
pub(super) struct List<'l> {
    pub(super) connection: &'l PgConnection,
    pub(super) query: &'l ListQuery,
}

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

/// The columns of a page in this order of ids. Rows after the maximum content of a page come without
/// content, so that the page takes little memory.
fn page_columns(order: &str) -> String {
    let content = format!(
        "CASE WHEN sum(octet_length(content)) OVER (ORDER BY id {order}) - octet_length(content) \
         < {MAX_PAGE_BYTES} THEN content END AS content"
    );
    columns(Dialect::Postgres).replace("content", &content)
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
    let page = lists::page(&List { connection, query }).await;
    connection.roll_back().await;
    page
}

impl ListReader for List<'_> {
    type Search = SearchQuery;
    /// Rows, of which some may have no content.
    type Found = Vec<Row>;

    fn query(&self) -> &ListQuery {
        self.query
    }

    async fn index_state(&self) -> Result<IndexState, StoreError> {
        index_state::load(self.connection, self.query.account).await
    }

    async fn by_name(&self, name: &NameFilter, range: IdRange) -> Result<Vec<Row>, StoreError> {
        let (column, hash) = match name {
            NameFilter::UniqueKey(unique_key) => ("unique_key", unique_key_hash(unique_key)),
            NameFilter::TranslationGroup(group) => ("translation_group", group.0),
        };
        let condition = format!("{column} = $8 AND id > $9 AND id < $10");
        let (above, below) = range.bounds();
        self.matching(range, &condition, values![hash, above, below]).await
    }

    /// The nearest ids in each matching bucket, merged, or those that await review. There are few of
    /// these: they have an index of their own, and filters read their rows.
    async fn nearest(&self, range: IdRange, wanted: usize) -> Result<Vec<Row>, StoreError> {
        let order = range.order();
        let (buckets, ids) = if self.query.awaiting_review {
            let filters = filters(self.query);
            let ids = format!(
                "SELECT id FROM template WHERE account_id = $1 AND unique_key IS NOT NULL AND {filters} \
                 AND id > $8 AND id < $9 ORDER BY id {order} LIMIT $10"
            );
            ("", ids)
        } else {
            let filters = row_filters(self.query);
            let ids = format!(
                "SELECT near.id FROM bucket CROSS JOIN LATERAL (SELECT id FROM template WHERE \
                 account_id = $1 AND {BUCKET} = bucket.name AND unique_key IS NOT NULL AND id > $8 AND \
                 id < $9 AND {filters} ORDER BY id {order} LIMIT $10) AS near WHERE bucket.name IS NOT NULL \
                 AND {BUCKET_FILTERS} ORDER BY near.id {order} LIMIT $10"
            );
            (BUCKETS, ids)
        };
        let statement = format!(
            "{buckets} SELECT {} FROM template WHERE id = ANY(ARRAY({ids})) ORDER BY id {order}",
            page_columns(order)
        );
        let (above, below) = range.bounds();
        self.select(&statement, values![above, below, Value::size(wanted)]).await
    }

    fn search(&self) -> Result<SearchQuery, StoreError> {
        Ok(SearchQuery::new(self.query))
    }

    async fn hits(
        &self,
        search: &SearchQuery,
        range: IdRange,
        limit: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        search.ids(self.connection, range, limit).await
    }

    /// Those that match the list, in its order.
    async fn by_ids(&self, range: IdRange, ids: &[TemplateId]) -> Result<Vec<Row>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
        self.matching(range, "id = ANY($8)", values![ids]).await
    }

    /// Reads those again that came without content.
    async fn visit(
        &self,
        range: IdRange,
        mut found: Vec<Row>,
        visit: Visit<'_>,
    ) -> Result<bool, StoreError> {
        loop {
            let mut without_content = Vec::new();
            for row in &found {
                if row.try_get::<_, Option<&str>>("content")?.is_none() {
                    without_content.push(row.template_id("id")?);
                } else if !visit(stored(row)?) {
                    return Ok(false);
                }
            }
            if without_content.is_empty() {
                return Ok(true);
            }
            drop(found);
            found = self.by_ids(range, &without_content).await?;
        }
    }
}

impl List<'_> {
    /// Runs a statement whose first seven parameters are the account and the filters of the list.
    async fn select<const N: usize>(
        &self,
        statement: &str,
        others: [Value<'_>; N],
    ) -> Result<Vec<Row>, StoreError> {
        let query = self.query;
        let (updated_from, updated_before) = query.updated_range();
        let mut values = Vec::from(values![
            query.account,
            query.statuses.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
            query.categories.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
            Value::Texts(query.languages.iter().map(|it| without_nul(it)).collect()),
            Value::Texts(query.phones.iter().map(|it| without_nul(it)).collect()),
            updated_from,
            updated_before,
        ]);
        values.extend(others);
        self.connection.query(statement, &bound(&values)).await
    }

    /// The rows that the condition finds and that match the list, in its order.
    async fn matching<const N: usize>(
        &self,
        range: IdRange,
        condition: &str,
        values: [Value<'_>; N],
    ) -> Result<Vec<Row>, StoreError> {
        let (order, filters) = (range.order(), filters(self.query));
        let statement = format!(
            "SELECT {} FROM template WHERE {condition} AND {OWNED} AND unique_key IS NOT NULL \
             AND {filters} ORDER BY id {order}",
            page_columns(order)
        );
        self.select(&statement, values).await
    }

    /// Counts the templates of the list, up to the maximum.
    pub(super) async fn count(&self) -> Result<u64, StoreError> {
        if self.query.name.is_some() {
            return lists::count_by_name(self).await;
        }
        if self.query.words.is_empty() {
            return self.count_in_buckets().await;
        }
        // If at least half of the newest templates match, the maximum is reached among them. The index
        // would collect all matches of such a common word first.
        let newest = "SELECT template_id FROM (SELECT template_id, words FROM search_index \
                      ORDER BY template_id DESC LIMIT $10) AS newest \
                      WHERE words @@ (SELECT $9::text::tsquery)";
        let count = self.count_hits(newest).await?;
        if count == MAX_SEARCH_COUNT {
            return Ok(count);
        }
        let all = "SELECT template_id FROM search_index WHERE words @@ (SELECT $9::text::tsquery) \
                   LIMIT $10";
        self.count_hits(all).await
    }

    /// Counts the hits of a search statement that match the list, up to the maximum.
    async fn count_hits(&self, hits: &str) -> Result<u64, StoreError> {
        let statement = format!(
            "WITH found AS MATERIALIZED ({hits}) SELECT count(*) FROM (SELECT 1 FROM found \
             JOIN template ON id = template_id WHERE {OWNED} AND unique_key IS NOT NULL AND {} \
             LIMIT $8) AS counted",
            filters(self.query)
        );
        // Some hits may be deleted since they were indexed, but not half of them.
        let search = SearchQuery::new(self.query);
        let values = values![MAX_SEARCH_COUNT, search.text(), 2 * MAX_SEARCH_COUNT];
        let rows = self.select(&statement, values).await?;
        rows.first().map_or(Ok(0), |row| row.number(0))
    }

    /// Counts with the account's index alone if there are no filters, else in the matching buckets.
    async fn count_in_buckets(&self) -> Result<u64, StoreError> {
        let query = self.query;
        let has_bucket_filters = !(query.statuses.is_empty()
            && query.categories.is_empty()
            && query.languages.is_empty());
        let rows = if query.awaiting_review {
            let statement = format!(
                "SELECT count(*) FROM (SELECT 1 FROM template WHERE account_id = $1 AND unique_key IS NOT \
                 NULL AND {} LIMIT $8) AS counted",
                filters(query)
            );
            self.select(&statement, values![MAX_LIST_COUNT]).await?
        } else if has_bucket_filters || query.has_row_filters() {
            let statement = format!(
                "{BUCKETS} SELECT count(*) FROM (SELECT 1 FROM bucket CROSS JOIN LATERAL (SELECT 1 \
                 FROM template WHERE account_id = $1 AND {BUCKET} = bucket.name AND unique_key IS NOT NULL \
                 AND {} OFFSET 0) AS there WHERE bucket.name IS NOT NULL AND {BUCKET_FILTERS} LIMIT $8) \
                 AS counted",
                row_filters(query)
            );
            self.select(&statement, values![MAX_LIST_COUNT]).await?
        } else {
            let statement = "SELECT count(*) FROM (SELECT 1 FROM template WHERE account_id = $1 AND \
                             unique_key IS NOT NULL LIMIT $2) AS counted";
            self.connection
                .query(statement, &bound(&values![query.account, MAX_LIST_COUNT]))
                .await?
        };
        rows.first().map_or(Ok(0), |row| row.number(0))
    }
}
