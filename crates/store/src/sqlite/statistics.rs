//! Reads what the metrics report of SQLite alone: the lag of the search index, and sizes of files.

use std::{collections::HashMap, path::Path};

use rusqlite::{Connection, OptionalExtension as _};

use super::store_files::SEARCH_INDEX_SUFFIX;
use crate::{
    SearchStatistics, StoreError, partial_file::with_suffix, statistics::IndexBacklog,
    stored_row::StoredRow as _,
};

/// How far the search index is behind the accounts. `index` is the index, if it is built.
pub(super) fn search(
    store: &Connection,
    index: Option<&Connection>,
) -> Result<SearchStatistics, StoreError> {
    let (indexed, is_scanning) = match index {
        Some(index) => index_progress(index)?,
        None => (HashMap::new(), true),
    };
    let mut accounts = store.prepare_cached("SELECT id, last_seq FROM account")?;
    let mut next_event =
        store.prepare_cached("SELECT at FROM event WHERE account_id = ?1 AND seq = ?2")?;
    let mut rows = accounts.query([])?;
    let mut total = SearchStatistics::default();
    while let Some(row) = rows.next()? {
        let (id, last_seq): (i64, i64) = (row.get("id")?, row.get("last_seq")?);
        let seq = indexed.get(&id).copied().unwrap_or(0);
        let next_event_at = if seq < last_seq {
            let read = next_event.query_row([id, seq + 1], |row| Ok(row.timestamp(0))).optional();
            read?.transpose()?
        } else {
            None
        };
        total.add(&IndexBacklog {
            newest: row.number("last_seq")?,
            indexed: u64::try_from(seq).unwrap_or(0),
            is_scanning,
            next_event_at,
        });
    }
    Ok(total)
}

/// The last indexed event of each account, and whether all templates are scanned.
fn index_progress(index: &Connection) -> Result<(HashMap<i64, i64>, bool), StoreError> {
    let scanned: Option<i64> =
        index.prepare_cached("SELECT scanned FROM progress")?.query_row([], |row| row.get(0))?;
    let mut events = index.prepare_cached("SELECT account_id, seq FROM indexed_event")?;
    let indexed = events.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((indexed.collect::<Result<_, _>>()?, scanned.is_some()))
}

/// The sizes of the files that grow. A file that does not exist has size 0.
pub(super) fn part_sizes(store: &Path) -> Vec<(&'static str, u64)> {
    let size = |suffix: &str| with_suffix(store, suffix).metadata().map_or(0, |it| it.len());
    let index_wal = format!("{SEARCH_INDEX_SUFFIX}-wal");
    vec![
        ("database", size("")),
        ("wal", size("-wal")),
        ("search_index", size(SEARCH_INDEX_SUFFIX) + size(&index_wal)),
    ]
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
