//! Full-text search: queries of the index.

use galley_domain::id::TemplateId;
use tokio_postgres::Row;

use super::pool::PgConnection;
use crate::{
    ListQuery, StoreError,
    encoding::{account_prefix, without_nul},
    lists::{IdRange, filter_terms},
    stored_row::StoredRow as _,
};

/// Scan steps before the GIN index is used: the number of templates to scan from the cursor on, and
/// the number of hits that earlier steps must have found to make the scan worthwhile. Common words
/// are found in the first templates; the GIN index collects all matches before it returns one.
const SCAN_STEPS: [(i64, usize); 3] = [(100, 0), (2_000, 0), (20_000, 3)];

/// Maximum number of GIN index hits, all of which are sorted. For words with more hits, a scan
/// finds the first ones quickly.
const MAX_INDEX_HITS: i64 = 20_000;

/// The search of a list as a `tsquery`. Statements use it in a scalar subquery, so that it is
/// parsed once and not for every row, and so that the plan does not depend on the words.
pub(super) struct SearchQuery(String);

impl SearchQuery {
    pub(super) fn new(query: &ListQuery) -> Self {
        let prefix = account_prefix(query.account);
        let prefix_term = |word: &String| format!("{}:*", quoted(&format!("{prefix}{word}")));
        let mut terms: Vec<String> = query.words.iter().map(prefix_term).collect();
        terms.extend(filter_terms(query, quoted, " | "));
        Self(terms.join(" & "))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The first hits in an id range; fewer than wanted only if there are no more. A scan finds
    /// common words, the GIN index rare ones.
    pub(super) async fn ids(
        &self,
        connection: &PgConnection,
        range: IdRange,
        wanted: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        let mut found: Vec<TemplateId> = Vec::new();
        let mut rest = range;
        for (max_rows, min_hits) in SCAN_STEPS {
            if found.len() < min_hits {
                break;
            }
            let (ids, last) = self.scan_first(connection, rest, max_rows).await?;
            found.extend(ids);
            let Some(last) = last.filter(|_| found.len() < wanted) else {
                found.truncate(wanted);
                return Ok(found);
            };
            rest = rest.resuming_after(last);
        }
        let missing = wanted - found.len();
        found.extend(match self.query_index(connection, rest, missing).await? {
            Some(ids) => ids,
            None => self.scan(connection, rest, missing).await?,
        });
        Ok(found)
    }

    /// Scans the first templates of an id range. Returns the hits in list order, and the last scanned
    /// template, if there are more.
    async fn scan_first(
        &self,
        connection: &PgConnection,
        range: IdRange,
        max_rows: i64,
    ) -> Result<(Vec<TemplateId>, Option<TemplateId>), StoreError> {
        let (order, last) = (range.order(), if range.ascending { "max" } else { "min" });
        let statement = format!(
            "SELECT array_agg(template_id ORDER BY template_id {order}) FILTER (WHERE \
             words @@ (SELECT $1::text::tsquery)) AS ids, CASE WHEN count(*) = $4 THEN {last}(template_id) \
             END AS last FROM (SELECT template_id, words FROM search_index WHERE template_id > $2 AND \
             template_id < $3 ORDER BY template_id {order} LIMIT $4) AS near"
        );
        let (above, below) = range.bounds();
        let rows = connection.query(&statement, &[&self.0, &above, &below, &max_rows]).await?;
        let Some(row) = rows.first() else { return Ok((Vec::new(), None)) };
        let last = row.optional("last", |id: i64| TemplateId::new(u64::try_from(id).ok()?))?;
        Ok((ids(row)?, last))
    }

    /// Queries the GIN index; `None` if there are too many hits.
    async fn query_index(
        &self,
        connection: &PgConnection,
        range: IdRange,
        wanted: usize,
    ) -> Result<Option<Vec<TemplateId>>, StoreError> {
        let statement = format!(
            "WITH hit AS MATERIALIZED (SELECT template_id FROM search_index WHERE \
             words @@ (SELECT $1::text::tsquery) LIMIT $5) SELECT (SELECT count(*) FROM hit) AS hits, \
             ARRAY(SELECT template_id FROM hit WHERE template_id > $2 AND template_id < $3 \
             ORDER BY template_id {} LIMIT $4) AS ids",
            range.order()
        );
        let ((above, below), max_hits) = (range.bounds(), MAX_INDEX_HITS + 1);
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let rows =
            connection.query(&statement, &[&self.0, &above, &below, &wanted, &max_hits]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let is_complete = row.value::<i64>("hits")? <= MAX_INDEX_HITS;
        Ok(if is_complete { Some(ids(row)?) } else { None })
    }

    /// Scans the templates until there are enough hits.
    async fn scan(
        &self,
        connection: &PgConnection,
        range: IdRange,
        wanted: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        // OFFSET 0 keeps the subquery separate. Otherwise the planner would use the GIN index
        // again.
        let statement = format!(
            "SELECT ARRAY(SELECT template_id FROM (SELECT template_id, words FROM search_index WHERE \
             template_id > $2 AND template_id < $3 ORDER BY template_id {} OFFSET 0) AS scanned \
             WHERE words @@ (SELECT $1::text::tsquery) LIMIT $4) AS ids",
            range.order()
        );
        let (above, below) = range.bounds();
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let rows = connection.query(&statement, &[&self.0, &above, &below, &wanted]).await?;
        rows.first().map_or(Ok(Vec::new()), ids)
    }
}

fn ids(row: &Row) -> Result<Vec<TemplateId>, StoreError> {
    let stored: Option<Vec<i64>> = row.try_get("ids")?;
    let stored = stored.unwrap_or_default().into_iter();
    Ok(stored.filter_map(|id| TemplateId::new(u64::try_from(id).ok()?)).collect())
}

/// A word quoted for a `tsvector` or `tsquery`.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", without_nul(word).replace('\\', "\\\\").replace('\'', "''"))
}
