//! Loads how far the search index is behind the writes of an account, or of all accounts.

use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;

use super::{list::List, pool::PgConnection};
use crate::{
    ListQuery, SearchStatistics, StoreError,
    encoding::key,
    lists::{IdRange, IndexState, ListReader as _},
    statistics::IndexBacklog,
    stored_row::StoredRow as _,
};

/// The state of an account in the search index.
pub(super) async fn load(
    connection: &PgConnection,
    account: AccountId,
) -> Result<IndexState, StoreError> {
    let statement = "SELECT a.last_seq, coalesce(p.indexed, 0) AS indexed, p.scanned, (SELECT at FROM event \
                     WHERE account_id = $1 AND seq = coalesce(p.indexed, 0) + 1) AS next_event_at \
                     FROM account a LEFT JOIN search_progress p ON p.account_id = a.id WHERE a.id = $1";
    let rows = connection.query(statement, &[&key(account.get())]).await?;
    let Some(row) = rows.first() else { return Ok(IndexState::default()) };
    let (newest, indexed) = (row.number("last_seq")?, row.number("indexed")?);
    let next_event_at = row.optional_timestamp("next_event_at")?;
    // If retention has deleted the next event, the indexer is about to scan all templates.
    let is_gap = indexed < newest && next_event_at.is_none();
    let scanned = row.value::<Option<i64>>("scanned")?.or(is_gap.then_some(0));
    let unscanned_since = match scanned {
        Some(scanned) => first_unscanned(connection, account, scanned).await?,
        None => None,
    };
    Ok(IndexState { newest, indexed, next_event_at, unscanned_since })
}

/// When the account's first template after `scanned` changed.
async fn first_unscanned(
    connection: &PgConnection,
    account: AccountId,
    scanned: i64,
) -> Result<Option<Timestamp>, StoreError> {
    let newer_than = u64::try_from(scanned).ok().and_then(TemplateId::new);
    let range = IdRange { newer_than, ascending: true, ..IdRange::ALL };
    let rows = List { connection, query: &ListQuery::new(account, 1) }.nearest(range, 1).await?;
    rows.first().map(|row| row.timestamp("updated_at")).transpose()
}

/// How far the search index is behind the accounts.
pub(super) async fn search_statistics(
    connection: &PgConnection,
) -> Result<SearchStatistics, StoreError> {
    let statement = "SELECT a.last_seq, coalesce(p.indexed, 0) AS indexed, \
         p.scanned IS NOT NULL AS is_scanning, (SELECT at FROM event e WHERE \
         e.account_id = a.id AND e.seq = coalesce(p.indexed, 0) + 1) AS next_event_at \
         FROM account a LEFT JOIN search_progress p ON p.account_id = a.id \
         WHERE a.last_seq > coalesce(p.indexed, 0) OR p.scanned IS NOT NULL";
    let mut total = SearchStatistics::default();
    for row in connection.query(statement, &[]).await? {
        total.add(&IndexBacklog {
            newest: row.number("last_seq")?,
            indexed: row.number("indexed")?,
            is_scanning: row.value("is_scanning")?,
            next_event_at: row.optional_timestamp("next_event_at")?,
        });
    }
    Ok(total)
}
