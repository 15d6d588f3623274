//! Counts the bytes that templates take, and deletes the templates whose last event has expired.

use std::collections::HashMap;

use galley_domain::{id::AccountId, template::lifecycle::EventType};
use rusqlite::{Connection, params};

use super::{
    SqliteStore,
    cancellation::Cancellation,
    columns::key,
    reader_pool::{ReaderPool, run_blocking_in_background},
    writer::Batch,
};
use crate::{
    StoreError, VERSION_OVERHEAD_BYTES,
    decisions::stored_bytes::{
        DeletedTemplate, EXCESS, MAX_PURGE_TEMPLATES, OldestVersions, PurgePlan, StoredBytes,
        stored_bytes_columns,
    },
};

/// Quota bytes to add to the total of an account, by its id.
type Corrections = Vec<(i64, i64)>;

impl SqliteStore {
    /// Counts without keeping writes waiting. Writes add what they change to the total all the
    /// time; the count finds out by how much the total was wrong at one moment, and corrects it.
    pub(super) async fn count_bytes(&self, all: bool) -> Result<usize, StoreError> {
        let uncounted = "SELECT 1 FROM account WHERE ?1 OR counting IS NOT NULL";
        if !self.readers.read(|connection| Ok(connection.prepare(uncounted)?.exists([all])?))? {
            return Ok(0);
        }
        let begin = "UPDATE account SET counting = 0 WHERE ?1 OR counting IS NOT NULL";
        self.writer.write(move |batch| Ok(batch.connection().execute(begin, [all])?)).await?;
        let count = |readers: &ReaderPool, cancellation: &Cancellation| {
            readers.cancellable_read(cancellation, corrections)
        };
        let corrections = run_blocking_in_background(&self.readers, count).await?;
        self.writer.write(move |batch| correct(batch, &corrections)).await
    }
}

/// By how much the totals of the accounts are wrong, all at the same moment.
fn corrections(connection: &Connection) -> Result<Corrections, StoreError> {
    let snapshot = connection.unchecked_transaction()?;
    // Summed up here, because SQLite would sort all rows to group them.
    let mut bytes = HashMap::<i64, i64>::new();
    for rows in [
        "SELECT account_id, octet_length(content) + ?1 FROM template",
        "SELECT t.account_id, octet_length(f.content) + ?1 FROM former_version f \
         JOIN template t ON t.id = f.template_id",
    ] {
        let mut query = snapshot.prepare(rows)?;
        let mut rows = query.query([key(VERSION_OVERHEAD_BYTES)])?;
        while let Some(row) = rows.next()? {
            *bytes.entry(row.get(0)?).or_default() += row.get::<_, i64>(1)?;
        }
    }
    let mut accounts =
        snapshot.prepare("SELECT id, template_bytes FROM account WHERE counting IS NOT NULL")?;
    let corrections = accounts.query_map([], |row| {
        let id = row.get(0)?;
        Ok((id, bytes.get(&id).copied().unwrap_or(0) - row.get::<_, i64>(1)?))
    })?;
    Ok(corrections.collect::<Result<_, _>>()?)
}

/// Corrects the totals.
fn correct(batch: &mut Batch, corrections: &Corrections) -> Result<usize, StoreError> {
    let mut update = batch.connection().prepare_cached(concat!(
        "UPDATE account SET template_bytes = template_bytes + ?2, counting = NULL WHERE id = ?1 \
         AND counting IS NOT NULL RETURNING ",
        stored_bytes_columns!()
    ))?;
    let mut corrected = 0;
    for (id, correction) in corrections {
        let mut rows = update.query([id, correction])?;
        while let Some(row) = rows.next()? {
            corrected += 1;
            if let Some((used, limit)) = StoredBytes::read(row)?.excess() {
                tracing::warn!(account = id, used, limit, "{EXCESS}");
            }
        }
    }
    Ok(corrected)
}

/// The templates whose deletion is among the account's events up to `last`.
pub(super) fn plan_purge(
    connection: &Connection,
    account: AccountId,
    last: u64,
) -> Result<PurgePlan, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT seq, template_id AS id, (SELECT count(*) FROM former_version f \
         WHERE f.template_id = e.template_id) AS former, \
         coalesce((SELECT octet_length(content) + ?4 FROM template WHERE id = e.template_id), 0) + \
         (SELECT coalesce(sum(octet_length(content) + ?4), 0) FROM former_version f \
         WHERE f.template_id = e.template_id) AS bytes \
         FROM event e WHERE account_id = ?1 AND seq <= ?2 AND type = ?3 ORDER BY seq LIMIT ?5",
    )?;
    let mut rows = query.query(params![
        key(account.get()),
        key(last),
        EventType::Deleted.as_str(),
        key(VERSION_OVERHEAD_BYTES),
        MAX_PURGE_TEMPLATES,
    ])?;
    let mut deleted = Vec::new();
    while let Some(row) = rows.next()? {
        deleted.push(DeletedTemplate::read(row)?);
    }
    Ok(PurgePlan::new(last, &deleted))
}

/// Deletes the rows of deleted templates, together with their last event, or the oldest former
/// versions of a template that is too large for one write. Returns how many of the latter.
pub(super) fn purge_templates(
    batch: &mut Batch,
    account: AccountId,
    plan: &PurgePlan,
) -> Result<usize, StoreError> {
    for template in &plan.templates {
        for delete in [
            "DELETE FROM former_version WHERE template_id = ?1",
            "DELETE FROM template WHERE id = ?1 AND unique_key IS NULL",
        ] {
            batch.connection().prepare_cached(delete)?.execute([template])?;
        }
    }
    let (mut bytes, mut versions) = (plan.bytes, 0);
    if let Some(template) = plan.partial
        && let Some(oldest) = oldest_versions(batch.connection(), template)?
    {
        let delete = "DELETE FROM former_version WHERE template_id = ?1 AND version <= ?2";
        versions = batch.connection().prepare_cached(delete)?.execute([template, oldest.last])?;
        bytes += oldest.bytes;
    }
    if bytes != 0 {
        batch.account(account)?.stored_bytes.add(-bytes);
    }
    Ok(versions)
}

/// The oldest former versions of a template, as many as one write deletes.
fn oldest_versions(
    connection: &Connection,
    template: i64,
) -> Result<Option<OldestVersions>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT version, octet_length(content) + ?2 FROM former_version WHERE template_id = ?1 \
         ORDER BY version LIMIT ?3",
    )?;
    let values = [template, key(VERSION_OVERHEAD_BYTES), OldestVersions::MAX];
    let versions = query.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(OldestVersions::choose(&versions.collect::<Result<Vec<_>, _>>()?))
}
