//! Loads how far the search index is behind the writes of an account, or of all accounts.

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, OptionalExtension as _};

use super::{list::List, statements::ready};
use crate::{
    ListQuery, SearchStatistics, StoreError,
    encoding::key,
    lists::{IdRange, IndexBacklog, IndexState, ListReader as _},
    stored_row::StoredRow as _,
};

/// The state of an account in the search index; `None` for an index that is not built.
pub(super) fn load(
    store: &Connection,
    index: Option<&Connection>,
    account: AccountId,
) -> Result<IndexState, StoreError> {
    // First, because the index may advance meanwhile, and must not seem to be ahead.
    let newest = store
        .prepare_cached("SELECT last_seq FROM account WHERE id = ?1")?
        .query_row([key(account.get())], |row| Ok(row.number(0)))
        .optional()?;
    let newest = newest.unwrap_or(Ok(0))?;
    let backlog = backlog(store, index, scanned_of(index)?, account, newest)?;
    let mut unscanned_since = None;
    if let Some(scanned) = backlog.scan_after() {
        let newer_than = TemplateId::new(scanned);
        let range = IdRange { newer_than, ascending: true, ..IdRange::ALL };
        let list = List { store, index: None, query: &ListQuery::new(account, 1), name: None };
        if let Some(first) = ready(list.nearest(range, 1))?.first() {
            let mut query =
                store.prepare_cached("SELECT updated_at FROM template WHERE id = ?1")?;
            let changed_at = query.query_row([key(first.get())], |row| Ok(row.timestamp(0)))??;
            unscanned_since = Some(changed_at);
        }
    }
    Ok(IndexState { backlog, unscanned_since })
}

/// How far the search index is behind the accounts. `index` is the index, if it is built.
pub(super) fn search_statistics(
    store: &Connection,
    index: Option<&Connection>,
) -> Result<SearchStatistics, StoreError> {
    let mut accounts = store.prepare_cached("SELECT id, last_seq FROM account")?;
    let mut rows = accounts.query([])?;
    // One snapshot for all accounts: a transaction for each would cost more than its read.
    let snapshot = index.map(Connection::unchecked_transaction).transpose()?;
    let index = snapshot.as_deref();
    let scanned = scanned_of(index)?;
    let mut total = SearchStatistics::default();
    while let Some(row) = rows.next()? {
        let (account, newest) = (row.account_id("id")?, row.number("last_seq")?);
        total.add(&backlog(store, index, scanned, account, newest)?);
    }
    Ok(total)
}

fn backlog(
    store: &Connection,
    index: Option<&Connection>,
    scanned: Option<u64>,
    account: AccountId,
    newest: u64,
) -> Result<IndexBacklog, StoreError> {
    let indexed = index.map_or(Ok(0), |index| last_indexed(index, account))?;
    let next_event_at = if indexed < newest {
        store
            .prepare_cached("SELECT at FROM event WHERE account_id = ?1 AND seq = ?2")?
            .query_row([key(account.get()), key(indexed + 1)], |row| Ok(row.timestamp(0)))
            .optional()?
            .transpose()?
    } else {
        None
    };
    Ok(IndexBacklog { newest, indexed, next_event_at, scanned })
}

/// The last template that the initial scan has indexed, while it runs.
pub(super) fn scanned(index: &Connection) -> Result<Option<u64>, StoreError> {
    let mut query = index.prepare_cached("SELECT scanned FROM progress")?;
    query.query_row([], |row| Ok(row.optional(0, |id: i64| u64::try_from(id).ok())))?
}

/// The same, if there is an index; otherwise a scan is about to begin.
fn scanned_of(index: Option<&Connection>) -> Result<Option<u64>, StoreError> {
    index.map_or(Ok(Some(0)), scanned)
}

/// The last indexed event of an account.
pub(super) fn last_indexed(index: &Connection, account: AccountId) -> Result<u64, StoreError> {
    let seq = index
        .prepare_cached("SELECT seq FROM indexed_event WHERE account_id = ?1")?
        .query_row([key(account.get())], |row| Ok(row.number(0)))
        .optional()?;
    seq.unwrap_or(Ok(0))
}

#[cfg(test)]
mod tests {
    use crate::{
        SchemaPolicy,
        engine::Dialect,
        sqlite::connection,
        statistics::{CONNECTIONS, ENDPOINTS, pending_reviews},
    };

    #[test]
    fn the_statements_use_an_index_of_templates_events_and_deliveries() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        connection::create_if_missing(&path, false).unwrap();
        let store = connection::open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        let reviews = pending_reviews(Dialect::Sqlite);
        for statement in [&*reviews, ENDPOINTS, CONNECTIONS] {
            let mut plan = store.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
            let steps = plan.raw_query();
            let steps: Vec<String> =
                steps.mapped(|row| row.get("detail")).map(Result::unwrap).collect();
            assert!(steps.iter().any(|it| it.starts_with("SEARCH")), "{steps:?}");
            // Only the tables with a row per account or endpoint are read completely.
            for step in steps.iter().filter(|it| it.starts_with("SCAN")) {
                let is_small = [
                    "SCAN a",
                    "SCAN u",
                    "SCAN w",
                    "SCAN counted",
                    "SCAN due",
                    "SCAN bucket",
                    "SCAN CONSTANT ROW",
                ];
                assert!(is_small.iter().any(|it| step.starts_with(it)), "{steps:?}");
            }
        }
    }
}
