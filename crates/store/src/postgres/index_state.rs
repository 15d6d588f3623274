//! Loads how far the search index is behind the writes of an account, or of all accounts.

use galley_domain::id::{AccountId, TemplateId};
use tokio_postgres::Row;

use super::{list::List, pool::PgConnection};
use crate::{
    ListQuery, SearchStatistics, StoreError,
    encoding::key,
    lists::{IdRange, IndexBacklog, IndexState, ListReader as _},
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
    let backlog = backlog(row)?;
    let mut unscanned_since = None;
    if let Some(scanned) = backlog.scan_after() {
        let newer_than = TemplateId::new(scanned);
        let range = IdRange { newer_than, ascending: true, ..IdRange::ALL };
        let list = List { connection, query: &ListQuery::new(account, 1) };
        let first = list.nearest(range, 1).await?;
        unscanned_since = first.first().map(|row| row.timestamp("updated_at")).transpose()?;
    }
    Ok(IndexState { backlog, unscanned_since })
}

fn backlog(row: &Row) -> Result<IndexBacklog, StoreError> {
    Ok(IndexBacklog {
        newest: row.number("last_seq")?,
        indexed: row.number("indexed")?,
        next_event_at: row.optional_timestamp("next_event_at")?,
        scanned: row.optional("scanned", |scanned: i64| u64::try_from(scanned).ok())?,
    })
}

/// How far the search index is behind the accounts.
pub(super) async fn search_statistics(
    connection: &PgConnection,
) -> Result<SearchStatistics, StoreError> {
    let statement = "SELECT a.last_seq, coalesce(p.indexed, 0) AS indexed, \
         p.scanned, (SELECT at FROM event e WHERE \
         e.account_id = a.id AND e.seq = coalesce(p.indexed, 0) + 1) AS next_event_at \
         FROM account a LEFT JOIN search_progress p ON p.account_id = a.id \
         WHERE a.last_seq > coalesce(p.indexed, 0) OR p.scanned IS NOT NULL";
    let mut total = SearchStatistics::default();
    for row in connection.query(statement, &[]).await? {
        total.add(&backlog(&row)?);
    }
    Ok(total)
}
