//! Loads how far the search index is behind the writes of an account.

use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use super::{list::List, statements::ready};
use crate::{
    ListQuery, StoreError,
    encoding::key,
    lists::{IdRange, IndexState, ListReader as _},
    stored_row::StoredRow as _,
};

/// The state of an account in the search index; `None` for an index that is not built.
pub(super) fn load(
    store: &Connection,
    index: Option<&Connection>,
    account: AccountId,
) -> Result<IndexState, StoreError> {
    let account_key = key(account.get());
    // First, because the index may advance meanwhile, and must not seem to be ahead.
    let newest: Option<i64> = store
        .prepare_cached("SELECT last_seq FROM account WHERE id = ?1")?
        .query_row([account_key], |row| row.get(0))
        .optional()?;
    let newest = newest.unwrap_or(0);
    let (indexed, mut scanned) = match index {
        Some(index) => progress(index, account_key)?,
        None => (0, Some(0)),
    };
    let mut next_event_at = None;
    if indexed < newest {
        next_event_at = store
            .prepare_cached("SELECT at FROM event WHERE account_id = ?1 AND seq = ?2")?
            .query_row([account_key, indexed + 1], |row| Ok(row.timestamp(0)))
            .optional()?
            .transpose()?;
        if next_event_at.is_none() {
            // Retention has deleted the event: the indexer is about to scan all templates.
            scanned = Some(0);
        }
    }
    let unscanned_since = match scanned {
        Some(scanned) => first_unscanned(store, account, scanned)?,
        None => None,
    };
    let number = |seq: i64| u64::try_from(seq).unwrap_or(0);
    Ok(IndexState {
        newest: number(newest),
        indexed: number(indexed),
        next_event_at,
        unscanned_since,
    })
}

/// The last indexed event of an account, and the last scanned template during a scan.
fn progress(index: &Connection, account: i64) -> Result<(i64, Option<i64>), StoreError> {
    let scanned = index
        .prepare_cached("SELECT scanned FROM progress")?
        .query_row([], |row| row.get::<_, Option<i64>>(0))?;
    Ok((last_indexed(index, account)?, scanned))
}

/// The last indexed event of an account.
pub(super) fn last_indexed(index: &Connection, account: i64) -> Result<i64, StoreError> {
    let seq = index
        .prepare_cached("SELECT seq FROM indexed_event WHERE account_id = ?1")?
        .query_row([account], |row| row.get(0))
        .optional()?;
    Ok(seq.unwrap_or(0))
}

/// When the account's first template after `scanned` changed.
fn first_unscanned(
    store: &Connection,
    account: AccountId,
    scanned: i64,
) -> Result<Option<Timestamp>, StoreError> {
    let newer_than = u64::try_from(scanned).ok().and_then(TemplateId::new);
    let range = IdRange { newer_than, ascending: true, ..IdRange::ALL };
    let list = List { store, index: None, query: &ListQuery::new(account, 1), name: None };
    let first = ready(list.nearest(range, 1))?;
    let Some(id) = first.first() else { return Ok(None) };
    store
        .prepare_cached("SELECT updated_at FROM template WHERE id = ?1")?
        .query_row([key(id.get())], |row| Ok(row.timestamp(0)))?
        .map(Some)
}
