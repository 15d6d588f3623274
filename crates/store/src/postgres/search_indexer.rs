//! Keeps the search index up to date with the events. Any instance can update the index of an
//! account; a lock keeps it to one at a time.

use std::collections::HashSet;

use galley_domain::id::{AccountId, TemplateId};

use super::{
    index_state,
    pool::{PgConnection, Values},
    search::quoted,
    transaction::Transaction,
};
use crate::{
    IndexProgress, IndexStep, StoreError,
    encoding::{index_terms, key},
    engine::Dialect,
    stored_row::StoredRow as _,
    templates,
};

/// Number of events or templates that one step indexes.
const STEP_ROWS: i64 = 256;

/// Number of candidate accounts that one step selects.
const CANDIDATE_ACCOUNTS: i64 = 16;

/// Indexes new events of one account, or continues to rebuild the index of one.
pub(super) async fn update_index(
    transaction: &mut Transaction,
) -> Result<IndexProgress, StoreError> {
    transaction.ensure_begun().await?;
    let connection = transaction.connection();
    let behind = connection
        .query(
            "SELECT a.id FROM account a LEFT JOIN search_progress p ON p.account_id = a.id \
             WHERE a.last_seq > coalesce(p.indexed, 0) OR p.scanned IS NOT NULL \
             ORDER BY random() LIMIT $1",
            &[&CANDIDATE_ACCOUNTS],
        )
        .await?;
    for row in &behind {
        let account = row.account_id(0)?;
        if let Some(seen) = index_account(connection, account).await? {
            return Ok(IndexProgress { processed: seen, has_more: true });
        }
    }
    Ok(IndexProgress { processed: 0, has_more: false })
}

/// One step for one account, unless its events up to `newest` are indexed.
pub(super) async fn catch_up(
    transaction: &mut Transaction,
    account: AccountId,
    newest: u64,
) -> Result<IndexStep, StoreError> {
    transaction.ensure_begun().await?;
    let connection = transaction.connection();
    let step = index_account(connection, account).await?;
    let state = index_state::load(connection, account).await?;
    Ok(match step {
        _ if state.contains(newest) => IndexStep::CaughtUp,
        Some(_) => IndexStep::Advanced,
        None => IndexStep::Blocked,
    })
}

/// One step for one account; `None` if another instance is working on it, or has just done so.
async fn index_account(
    connection: &PgConnection,
    account: AccountId,
) -> Result<Option<usize>, StoreError> {
    let account_key = key(account.get());
    connection
        .execute(
            "INSERT INTO search_progress (account_id, indexed) VALUES ($1, 0) ON CONFLICT DO NOTHING",
            &[&account_key],
        )
        .await?;
    let lock = "SELECT p.indexed, p.scanned, a.last_seq FROM search_progress p JOIN account a ON \
                a.id = p.account_id WHERE p.account_id = $1 FOR UPDATE OF p SKIP LOCKED";
    let Some(row) = connection.query(lock, &[&account_key]).await?.into_iter().next() else {
        return Ok(None);
    };
    let (from, scanned): (i64, Option<i64>) = (row.value("indexed")?, row.value("scanned")?);
    if let Some(scanned) = scanned {
        return rebuild(connection, account, scanned).await.map(Some);
    }
    let events = connection
        .query(
            "SELECT seq, template_id FROM event WHERE account_id = $1 AND seq > $2 AND seq <= $3 \
             ORDER BY seq",
            &[&account_key, &from, &(from + STEP_ROWS)],
        )
        .await?;
    let first: Option<i64> = events.first().map(|row| row.value("seq")).transpose()?;
    if first.is_none() && row.value::<i64>("last_seq")? <= from {
        // Another instance has indexed the events.
        return Ok(None);
    }
    if first != Some(from + 1) {
        // Retention has deleted events before they were indexed: starts to index all templates of the
        // account. Changes made meanwhile are indexed afterwards.
        let update = "UPDATE search_progress SET scanned = 0, indexed = (SELECT last_seq FROM account \
                      WHERE id = $1) WHERE account_id = $1";
        connection.execute(update, &[&account_key]).await?;
        return Ok(Some(0));
    }
    let (mut to, mut ids) = (from, HashSet::new());
    for row in &events {
        to = row.value("seq")?;
        // Some events have no template.
        ids.extend(TemplateId::new(row.number("template_id")?));
    }
    write_entries(connection, account, &ids.into_iter().collect::<Vec<_>>()).await?;
    let update = "UPDATE search_progress SET indexed = $2 WHERE account_id = $1";
    connection.execute(update, &[&account_key, &to]).await?;
    Ok(Some(events.len()))
}

/// Indexes the next templates of an account whose index is being rebuilt.
async fn rebuild(
    connection: &PgConnection,
    account: AccountId,
    from: i64,
) -> Result<usize, StoreError> {
    let rows = connection
        .query(
            "SELECT id FROM template WHERE account_id = $1 AND id > $2 AND unique_key IS NOT NULL \
             ORDER BY id LIMIT $3",
            &[&key(account.get()), &from, &STEP_ROWS],
        )
        .await?;
    let ids = rows.iter().map(|row| row.template_id(0)).collect::<Result<Vec<_>, _>>()?;
    write_entries(connection, account, &ids).await?;
    let scanned = ids.last().map(|id| key(id.get()));
    let update = "UPDATE search_progress SET scanned = $2 WHERE account_id = $1";
    connection.execute(update, &[&key(account.get()), &scanned]).await?;
    Ok(ids.len())
}

/// Replaces the index entries of these templates.
async fn write_entries(
    connection: &PgConnection,
    account: AccountId,
    ids: &[TemplateId],
) -> Result<(), StoreError> {
    let keys: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    // The addition keeps the planner from scanning all templates of the account for a few ids.
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY($1) AND account_id + 0 = $2 AND unique_key IS NOT NULL",
        templates::columns(Dialect::Postgres)
    );
    let rows = connection.query(&statement, &[&keys, &key(account.get())]).await?;
    let (mut found, mut vectors) = (Vec::new(), Vec::new());
    for row in &rows {
        match templates::stored(row) {
            Ok(template) => {
                found.push(key(template.id.get()));
                let words = index_terms(account, &template);
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                vectors.push(words.join(" "));
            }
            // One corrupt row must not keep the others from being indexed.
            Err(error) => {
                tracing::warn!(%error, "cannot read a template: searches will not find it");
            }
        }
    }
    let delete = "DELETE FROM search_index WHERE template_id = ANY($1) AND template_id <> ALL($2)";
    let values: Values<'_> = &[&keys, &found];
    connection.execute(delete, values).await?;
    let insert = "INSERT INTO search_index SELECT id, words::tsvector \
                  FROM unnest($1::int8[], $2::text[]) AS new (id, words) \
                  ON CONFLICT (template_id) DO UPDATE SET words = excluded.words";
    connection.execute(insert, &[&found, &vectors]).await.map(drop)
}
