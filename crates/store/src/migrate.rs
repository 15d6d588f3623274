//! Copies a store from a SQLite file into an empty PostgreSQL database, from a snapshot of the
//! file, and compares both afterwards. The schemas of both say which tables and columns there are;
//! `rules.rs` says what they do not. The target records the progress in the same transactions as
//! the rows, so an interrupted migration continues where it stopped.

mod compare;
mod rules;
mod source;
mod tables;
mod target;
mod value;

use std::{path::Path, sync::Arc};

use tokio::{sync::mpsc, task::spawn_blocking};

use crate::{StoreError, postgres::PostgresAddress};
pub use compare::{Comparison, TableChecksum};
use source::Source;
use tables::Table;
use target::Target;

/// Number of batches that are read ahead of the writes.
const READ_AHEAD_BATCHES: usize = 2;

/// The phases of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationPhase {
    /// Copying rows.
    Copying,
    /// Reading both sides to compare them.
    Comparing,
}

/// The progress of a migration.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'t> {
    /// The current phase.
    pub phase: MigrationPhase,
    /// The current table.
    pub table: &'t str,
    /// Number of rows done in all tables, including earlier runs.
    pub rows: u64,
    /// Total number of rows.
    pub total: u64,
}

/// Why a migration failed.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The SQLite file cannot be opened or read.
    #[error("the source cannot be read")]
    Source(#[source] StoreError),
    /// Rows of the SQLite file do not match their checksums.
    #[error(
        "the source has {count} damaged rows, nothing was copied: {rows}; restore a backup with `galley restore` and migrate that"
    )]
    Damaged {
        /// The number of damaged rows.
        count: usize,
        /// The first of them.
        rows: String,
    },
    /// The PostgreSQL database cannot be used or written to.
    #[error("the target cannot be written")]
    Target(#[source] StoreError),
    /// The databases have different tables.
    #[error("the schemas of source and target differ, nothing was copied")]
    Schema(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// PostgreSQL cannot store a value.
    #[error("cannot copy column {column} of table {table}, row {row}")]
    InvalidValue {
        /// The table.
        table: String,
        /// The key of the row.
        row: String,
        /// The column.
        column: String,
        /// Why PostgreSQL cannot store it.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The target has data.
    #[error("the target is not empty (its table {0} has rows): use a new database")]
    NotEmpty(String),
    /// The target has a partial copy of another source.
    #[error(
        "the target has a partial copy of another store, or of this store before it changed: create the database again (dropdb, createdb) and restart the migration"
    )]
    SourceChanged,
    /// Another migration writes to the target.
    #[error(
        "another migration is writing to the same target: wait until it has ended, then run the command again"
    )]
    Concurrent,
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Source(error.into())
    }
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Target(error.into())
    }
}

/// Copies all rows that earlier runs have not copied, and compares both sides. Only if they match
/// is the target marked as complete; otherwise no service opens it.
pub async fn migrate(
    from: &Path,
    to: &PostgresAddress,
    mut report: impl FnMut(Progress<'_>),
) -> Result<Vec<Comparison>, MigrateError> {
    let path = from.to_owned();
    let (source, schema) = run_blocking(move || {
        let source = Source::open(&path)?;
        let schema = source.schema()?;
        Ok((source, schema))
    })
    .await?;
    let mut target = Target::connect(to).await?;
    let tables: Arc<[Table]> = tables::to_copy(schema, target.schema().await?)?.into();
    // Before anything that can fail, so that an interrupted copy is never taken for a store.
    target.mark(&tables).await?;
    let (source, overview) = run_blocking({
        let tables = Arc::clone(&tables);
        move || {
            let overview = source.overview(&tables)?;
            Ok((source, overview))
        }
    })
    .await?;
    target.begin(&tables, &overview.fingerprint).await?;
    let source = copy(source, &mut target, &tables, overview.rows, &mut report).await?;
    let mut compared_rows = 0;
    let reading = spawn_blocking({
        let tables = Arc::clone(&tables);
        move || tables.iter().map(|table| source.checksum(table)).collect::<Result<Vec<_>, _>>()
    });
    let target_checksums = target
        .checksums(&tables, |table, rows| {
            compared_rows += rows;
            let (phase, total) = (MigrationPhase::Comparing, overview.rows);
            report(Progress { phase, table, rows: compared_rows, total });
        })
        .await?;
    let source_checksums = reading.await.map_err(task_failed)??;
    let compared: Vec<Comparison> = tables
        .iter()
        .zip(source_checksums.into_iter().zip(target_checksums))
        .map(|(table, (source, target))| Comparison { table: table.name.clone(), source, target })
        .collect();
    if compared.iter().all(Comparison::is_match) {
        target.complete(&overview.max_row_ids).await?;
    }
    Ok(compared)
}

/// Copies all tables, each from where the last run stopped.
async fn copy(
    mut source: Source,
    target: &mut Target,
    tables: &Arc<[Table]>,
    total: u64,
    report: &mut impl FnMut(Progress<'_>),
) -> Result<Source, MigrateError> {
    let mut rows = target.rows();
    for (index, table) in tables.iter().enumerate() {
        let after = target.last_key(table)?;
        let (send, mut batches) = mpsc::channel(READ_AHEAD_BATCHES);
        let read_tables = Arc::clone(tables);
        let reading = spawn_blocking(move || {
            let take = |batch| send.blocking_send(batch).is_ok();
            let read = source.batches(&read_tables[index], after.as_deref(), take);
            (source, read)
        });
        while let Some(batch) = batches.recv().await {
            target.append(table, &batch).await?;
            rows += batch.len() as u64;
            let phase = MigrationPhase::Copying;
            report(Progress { phase, table: &table.name, rows, total });
        }
        let read;
        (source, read) = reading.await.map_err(task_failed)?;
        read?;
    }
    Ok(source)
}

/// Runs blocking work on a thread of its own.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    spawn_blocking(work).await.map_err(task_failed)?
}

fn task_failed(error: tokio::task::JoinError) -> MigrateError {
    MigrateError::Source(StoreError::Failed(Arc::new(error)))
}

#[cfg(test)]
#[cfg(feature = "postgres-suite")]
mod tests;
