//! Reads what the metrics report of PostgreSQL alone: the lag of the search index, and the size of the
//! database.

use super::pool::PgConnection;
use crate::{SearchStatistics, StoreError, statistics::IndexBacklog, stored_row::StoredRow as _};

/// How far the search index is behind the accounts.
pub(super) async fn search(connection: &PgConnection) -> Result<SearchStatistics, StoreError> {
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

pub(super) async fn database_size(connection: &PgConnection) -> Result<u64, StoreError> {
    let rows = connection.query("SELECT pg_database_size(current_database())", &[]).await?;
    rows.first().map_or(Ok(0), |row| row.number(0))
}
