//! Full-text search: queries, and the index, which follows the events. Any instance can update the
//! index of an account; a lock keeps it to one at a time.

use std::collections::HashSet;

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::{account_id, get, key, number, optional, without_nul},
    pool::{PgConnection, Values},
    templates,
    transaction::Transaction,
};
use crate::{
    IndexProgress, ListQuery, StoreError, StoredTemplate,
    encoding::{account_prefix, filter_term, index_terms},
    id_range::IdRange,
};

/// Number of events or templates that one step indexes.
const STEP_ROWS: i64 = 256;

/// Number of candidate accounts that one step selects.
const CANDIDATE_ACCOUNTS: i64 = 16;

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

/// The result of a scan.
struct Scan {
    /// Hits, in list order.
    ids: Vec<TemplateId>,
    /// The last scanned template, if there are more.
    last: Option<TemplateId>,
}

impl SearchQuery {
    pub(super) fn new(query: &ListQuery) -> Self {
        let prefix = account_prefix(query.account);
        let prefix_term = |word: &String| format!("{}:*", quoted(&format!("{prefix}{word}")));
        let mut terms: Vec<String> = query.words.iter().map(prefix_term).collect();
        let any_of = |kind, values: Vec<&str>| {
            let alternatives =
                values.iter().map(|value| quoted(&format!("{prefix}{}", filter_term(kind, value))));
            let alternatives: Vec<String> = alternatives.collect();
            (!alternatives.is_empty()).then(|| format!("({})", alternatives.join(" | ")))
        };
        let filters = [
            any_of('s', query.statuses.iter().map(|status| status.as_str()).collect()),
            any_of('c', query.categories.iter().map(|category| category.as_str()).collect()),
            any_of('l', query.languages.iter().map(String::as_str).collect()),
        ];
        terms.extend(filters.into_iter().flatten());
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
            let Scan { ids, last } = self.scan_first(connection, rest, max_rows).await?;
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

    /// Scans the first templates of an id range.
    async fn scan_first(
        &self,
        connection: &PgConnection,
        range: IdRange,
        max_rows: i64,
    ) -> Result<Scan, StoreError> {
        let (order, last) = (range.order(), if range.backwards { "max" } else { "min" });
        let statement = format!(
            "SELECT array_agg(template_id ORDER BY template_id {order}) FILTER (WHERE \
             words @@ (SELECT $1::text::tsquery)) AS ids, CASE WHEN count(*) = $4 THEN {last}(template_id) \
             END AS last FROM (SELECT template_id, words FROM found_by WHERE template_id > $2 AND \
             template_id < $3 ORDER BY template_id {order} LIMIT $4) AS near"
        );
        let (above, below) = range.bounds();
        let rows = connection.query(&statement, &[&self.0, &above, &below, &max_rows]).await?;
        let Some(row) = rows.first() else { return Ok(Scan { ids: Vec::new(), last: None }) };
        let last = optional(row, "last", |id: i64| TemplateId::new(u64::try_from(id).ok()?))?;
        Ok(Scan { ids: ids(get(row, "ids")?), last })
    }

    /// Queries the GIN index; `None` if there are too many hits.
    async fn query_index(
        &self,
        connection: &PgConnection,
        range: IdRange,
        wanted: usize,
    ) -> Result<Option<Vec<TemplateId>>, StoreError> {
        let statement = format!(
            "WITH hit AS MATERIALIZED (SELECT template_id FROM found_by WHERE \
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
        let is_complete = get::<i64>(row, "hits")? <= MAX_INDEX_HITS;
        Ok(if is_complete { Some(ids(get(row, "ids")?)) } else { None })
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
            "SELECT ARRAY(SELECT template_id FROM (SELECT template_id, words FROM found_by WHERE \
             template_id > $2 AND template_id < $3 ORDER BY template_id {} OFFSET 0) AS walked \
             WHERE words @@ (SELECT $1::text::tsquery) LIMIT $4) AS ids",
            range.order()
        );
        let (above, below) = range.bounds();
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let rows = connection.query(&statement, &[&self.0, &above, &below, &wanted]).await?;
        rows.first().map_or(Ok(Vec::new()), |row| Ok(ids(get(row, "ids")?)))
    }
}

fn ids(stored: Option<Vec<i64>>) -> Vec<TemplateId> {
    let stored = stored.unwrap_or_default().into_iter();
    stored.filter_map(|id| TemplateId::new(u64::try_from(id).ok()?)).collect()
}

/// A word quoted for a `tsvector` or `tsquery`.
fn quoted(word: &str) -> String {
    format!("'{}'", without_nul(word).replace('\\', "\\\\").replace('\'', "''"))
}

/// Indexes new events of one account, or continues to rebuild the index of one.
pub(super) async fn update_index(
    transaction: &mut Transaction,
) -> Result<IndexProgress, StoreError> {
    let behind = transaction
        .query(
            "SELECT a.id FROM account a LEFT JOIN followed f ON f.account_id = a.id \
             WHERE a.last_seq > coalesce(f.seq, 0) OR f.walked IS NOT NULL \
             ORDER BY random() LIMIT $1",
            &[&CANDIDATE_ACCOUNTS],
        )
        .await?;
    for row in &behind {
        let account = account_id(row, 0)?;
        if let Some(seen) = index_account(transaction, account).await? {
            return Ok(IndexProgress { processed: seen, has_more: true });
        }
    }
    Ok(IndexProgress { processed: 0, has_more: false })
}

/// One step for one account; `None` if another instance is working on it, or has just done so.
async fn index_account(
    transaction: &Transaction,
    account: AccountId,
) -> Result<Option<usize>, StoreError> {
    let account_key = key(account.get());
    transaction
        .execute("INSERT INTO followed VALUES ($1, 0) ON CONFLICT DO NOTHING", &[&account_key])
        .await?;
    let lock = "SELECT f.seq, f.walked, a.last_seq FROM followed f JOIN account a ON \
                a.id = f.account_id WHERE f.account_id = $1 FOR UPDATE OF f SKIP LOCKED";
    let Some(row) = transaction.query_one(lock, &[&account_key]).await? else { return Ok(None) };
    let (from, walked): (i64, Option<i64>) = (get(&row, "seq")?, get(&row, "walked")?);
    if let Some(walked) = walked {
        return rebuild(transaction, account, walked).await.map(Some);
    }
    let events = transaction
        .query(
            "SELECT seq, template_id FROM event WHERE account_id = $1 AND seq > $2 AND seq <= $3 \
             ORDER BY seq",
            &[&account_key, &from, &(from + STEP_ROWS)],
        )
        .await?;
    let first: Option<i64> = events.first().map(|row| get(row, "seq")).transpose()?;
    let Some(last) = events.last() else {
        // Either another instance has indexed the events, or retention has deleted them before
        // they were indexed.
        let is_behind = get::<i64>(&row, "last_seq")? > from;
        return if is_behind {
            begin_rebuild(transaction, account).await.map(Some)
        } else {
            Ok(None)
        };
    };
    if first != Some(from + 1) {
        return begin_rebuild(transaction, account).await.map(Some);
    }
    let to: i64 = get(last, "seq")?;
    let mut ids = HashSet::new();
    for row in &events {
        // Some events have no template.
        ids.extend(TemplateId::new(number(row, "template_id")?));
    }
    write_entries(transaction, account, &ids.into_iter().collect::<Vec<_>>()).await?;
    let update = "UPDATE followed SET seq = $2 WHERE account_id = $1";
    transaction.execute(update, &[&account_key, &to]).await?;
    Ok(Some(events.len()))
}

/// Starts to index all templates of the account. Changes made meanwhile are indexed afterwards.
async fn begin_rebuild(transaction: &Transaction, account: AccountId) -> Result<usize, StoreError> {
    let update = "UPDATE followed SET walked = 0, seq = (SELECT last_seq FROM account WHERE id = $1) \
                WHERE account_id = $1";
    transaction.execute(update, &[&key(account.get())]).await?;
    Ok(0)
}

/// Indexes the next templates of an account whose index is being rebuilt.
async fn rebuild(
    transaction: &Transaction,
    account: AccountId,
    from: i64,
) -> Result<usize, StoreError> {
    let rows = transaction
        .query(
            "SELECT id FROM template WHERE account_id = $1 AND id > $2 AND claim IS NOT NULL \
             ORDER BY id LIMIT $3",
            &[&key(account.get()), &from, &STEP_ROWS],
        )
        .await?;
    let ids: Result<Vec<TemplateId>, StoreError> =
        rows.iter().map(|row| super::columns::template_id(row, 0)).collect();
    let ids = ids?;
    write_entries(transaction, account, &ids).await?;
    let walked = ids.last().map(|id| key(id.get()));
    let update = "UPDATE followed SET walked = $2 WHERE account_id = $1";
    transaction.execute(update, &[&key(account.get()), &walked]).await?;
    Ok(ids.len())
}

/// Replaces the index entries of these templates.
async fn write_entries(
    transaction: &Transaction,
    account: AccountId,
    ids: &[TemplateId],
) -> Result<(), StoreError> {
    let keys: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    // The addition keeps the planner from scanning all templates of the account for a few ids.
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY($1) AND account_id + 0 = $2 AND claim IS NOT NULL",
        templates::COLUMNS
    );
    let rows = transaction.query(&statement, &[&keys, &key(account.get())]).await?;
    let (mut found, mut vectors) = (Vec::new(), Vec::new());
    for row in &rows {
        match templates::stored(row) {
            Ok(template) => {
                found.push(key(template.id.get()));
                vectors.push(vector(account, &template));
            }
            // One corrupt row must not keep the others from being indexed.
            Err(error) => {
                tracing::warn!(%error, "cannot read a template: searches will not find it");
            }
        }
    }
    let delete = "DELETE FROM found_by WHERE template_id = ANY($1) AND template_id <> ALL($2)";
    let values: Values<'_> = &[&keys, &found];
    transaction.execute(delete, values).await?;
    let insert = "INSERT INTO found_by SELECT id, words::tsvector \
                  FROM unnest($1::int8[], $2::text[]) AS new (id, words) \
                  ON CONFLICT (template_id) DO UPDATE SET words = excluded.words";
    transaction.execute(insert, &[&found, &vectors]).await.map(drop)
}

/// The `tsvector` of a template.
fn vector(account: AccountId, template: &StoredTemplate) -> String {
    let words: Vec<String> =
        index_terms(account, template).iter().map(|word| quoted(word)).collect();
    words.join(" ")
}
