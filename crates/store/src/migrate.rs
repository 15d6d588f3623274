//! Moving a whole store from a SQLite file into an empty PostgreSQL database, from one state of the
//! file, and comparing both afterwards. How far it has come is kept in the target, in the
//! transaction of what was copied: ended at any moment, it goes on where it was.

mod cell;
mod compare;
mod source;
mod tables;
mod target;

use std::{path::Path, sync::Arc};

use tokio::{sync::mpsc, task::spawn_blocking};

use crate::{StoreError, postgres::PostgresAddress};
use cell::Unfit;
pub use compare::{Comparison, Sum};
use source::Source;
use tables::TABLES;
use target::Target;

/// How many batches are read ahead of what is written.
const AHEAD: usize = 2;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Rows are copied.
    Copying,
    /// Both sides are read to be compared.
    Comparing,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being done.
    pub step: Step,
    /// The table it is at.
    pub table: &'static str,
    /// How many rows of all tables are done, those of earlier runs included.
    pub rows: u64,
    /// How many there are.
    pub of: u64,
}

/// Why a store was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The file cannot be used, or not be read.
    #[error("the source cannot be read")]
    Source(#[source] StoreError),
    /// The database cannot be used, or not be written to.
    #[error("the target cannot be filled")]
    Target(#[source] StoreError),
    /// PostgreSQL has no place for a value.
    #[error("{column} of the row {row} in the table {table} of the source cannot be copied")]
    Unfit {
        /// The table.
        table: &'static str,
        /// The row, by its key.
        row: String,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is something in the target already.
    #[error(
        "the target is not empty (there are rows in its table {0}): give a database that nobody has used"
    )]
    NotEmpty(&'static str),
    /// The target would not keep every text.
    #[error(
        "the target keeps texts as {0}: make the database with the encoding UTF8 (createdb --encoding=UTF8 --template=template0)"
    )]
    Encoding(String),
    /// What is half there is not of this source.
    #[error(
        "the target holds the beginning of another store, or of this one before it was changed again: make the database anew (dropdb, createdb), and begin from the beginning"
    )]
    Changed,
    /// Two are at it.
    #[error(
        "somebody else copies into the same target: let one of both end, then give the command again"
    )]
    Elsewhere,
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

/// Copies everything, or what an earlier run has left, and compares both sides. Only if they are
/// the same is the target handed over to the service; otherwise it stays as it is, and is refused.
pub async fn migrate(
    from: &Path,
    to: &PostgresAddress,
    mut tell: impl FnMut(Progress),
) -> Result<Vec<Comparison>, MigrateError> {
    let path = from.to_owned();
    let (source, overview) = aside(move || {
        let source = Source::open(&path)?;
        let overview = source.overview()?;
        Ok((source, overview))
    })
    .await?;
    let mut target = Target::open(to, &overview.fingerprint).await?;
    let source = copy(source, &mut target, overview.rows, &mut tell).await?;
    let mut seen = 0;
    let reading = spawn_blocking(move || source.sums());
    let there = target
        .sums(|table, rows| {
            seen += rows;
            tell(Progress { step: Step::Comparing, table, rows: seen, of: overview.rows });
        })
        .await?;
    let here = reading.await.map_err(lost)??;
    let compared: Vec<Comparison> = TABLES
        .iter()
        .zip(here.into_iter().zip(there))
        .map(|(table, (source, target))| Comparison { table: table.name, source, target })
        .collect();
    if compared.iter().all(Comparison::is_same) {
        target.hand_over(&overview.highest).await?;
    }
    Ok(compared)
}

/// Copies table by table, each from where it was left.
async fn copy(
    mut source: Source,
    target: &mut Target,
    of: u64,
    tell: &mut impl FnMut(Progress),
) -> Result<Source, MigrateError> {
    let mut rows = target.rows();
    for table in &TABLES {
        let mut told = |rows| tell(Progress { step: Step::Copying, table: table.name, rows, of });
        let types = target.types(table).await?;
        let after = target.last_key(table)?;
        let (send, mut batches) = mpsc::channel(AHEAD);
        let reading = spawn_blocking(move || {
            let read =
                source.batches(table, after.as_deref(), |batch| send.blocking_send(batch).is_ok());
            (source, read)
        });
        while let Some(batch) = batches.recv().await {
            target.append(table, &types, &batch).await?;
            rows += batch.len() as u64;
            told(rows);
        }
        let read;
        (source, read) = reading.await.map_err(lost)?;
        read?;
    }
    Ok(source)
}

/// Runs what takes a while and waits for a disk.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    spawn_blocking(work).await.map_err(lost)?
}

fn lost(error: tokio::task::JoinError) -> MigrateError {
    MigrateError::Source(StoreError::Failed(Arc::new(error)))
}
