//! Restores a SQLite store from a backup.
//!
//! The backup is checked, written to a temporary file beside the store, and then renamed, so that
//! the store appears complete or not at all.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::{
    CopyPhase, PhaseObserver, StoreError,
    error::unavailable,
    partial_file::{PartialFile, PartialFileError, with_suffix},
    sqlite::{
        backup::{find_damage, writing},
        connection, schema,
        store_files::STORE_FILE_SUFFIXES,
    },
};

/// Suffix of the temporary file.
const TEMPORARY_SUFFIX: &str = ".restoring";

/// The numbers reported about a restored store: a label and the query for each.
const COUNTS: [(&str, &str); 5] = [
    ("accounts", "SELECT count(*) FROM account"),
    ("templates", "SELECT count(*) FROM template WHERE unique_key IS NOT NULL"),
    ("events", "SELECT count(*) FROM event"),
    ("webhooks", "SELECT count(*) FROM webhook"),
    ("files", "SELECT count(*) FROM upload"),
];

/// A summary of the restored store.
#[derive(Debug)]
pub struct Restored {
    /// Number of rows of each kind.
    pub counts: Vec<(&'static str, u64)>,
    /// Its schema version.
    pub schema: usize,
    /// The schema version that this program writes.
    pub newest_schema: usize,
}

/// Why the restore failed. In all cases, the store was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// These files of a store already exist.
    #[error("a store, or files of an earlier one, already exist")]
    Occupied(Vec<PathBuf>),
    /// The backup cannot be read, or is not a store.
    #[error("the backup {} cannot be used", .0.display())]
    Backup(PathBuf, #[source] StoreError),
    /// The backup failed the integrity check.
    #[error("the backup {} is damaged, nothing was restored: {error}", path.display())]
    Damaged {
        /// The backup.
        path: PathBuf,
        /// The first error of the integrity check.
        error: String,
    },
    /// Another restore is in progress.
    #[error("another `galley restore` is writing {}", .0.display())]
    InProgress(PathBuf),
    /// The file cannot be written.
    #[error("{} cannot be written", .0.display())]
    Write(PathBuf, #[source] StoreError),
}

impl From<PartialFileError> for RestoreError {
    fn from(error: PartialFileError) -> Self {
        match error {
            PartialFileError::InProgress(path) => Self::InProgress(path),
            PartialFileError::Exists(path) => Self::Occupied(vec![path]),
            PartialFileError::Write(path, error) => Self::Write(path, error.into()),
        }
    }
}

/// A backup, and the store that it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Restore<'p> {
    /// The path of the backup.
    pub backup: &'p Path,
    /// The path of the store.
    pub store: &'p Path,
    /// Whether a damaged backup is restored, too.
    pub allow_damaged: bool,
}

/// Checks the backup, copies it to a temporary file beside the store, and renames that file. The
/// observer gets each phase when it begins.
pub fn restore(
    Restore { backup, store, allow_damaged }: Restore<'_>,
    observer: PhaseObserver<'_>,
) -> Result<Restored, RestoreError> {
    refuse_occupied(store)?;
    let unusable = |error: StoreError| RestoreError::Backup(backup.to_owned(), error);
    let source = connection::open_to_copy(backup).map_err(unusable)?;
    observer(CopyPhase::Checking);
    if let Some(error) = find_damage(&source).map_err(unusable)?
        && !allow_damaged
    {
        return Err(RestoreError::Damaged { path: backup.to_owned(), error });
    }
    let schema = schema::version(&source).map_err(unusable)?;
    let temporary = PartialFile::lock(with_suffix(store, TEMPORARY_SUFFIX))?;
    let failed = |error| RestoreError::Write(temporary.path().to_owned(), error);
    observer(writing(&source, temporary.path()));
    let counts = write(&source, temporary.path()).map_err(failed)?;
    // A service may have been started since the first check.
    refuse_occupied(store)?;
    temporary.persist(store)?;
    Ok(Restored { counts, schema, newest_schema: schema::newest() })
}

/// Fails if a store exists at this path, or a file that would be taken for a part of it.
fn refuse_occupied(store: &Path) -> Result<(), RestoreError> {
    let mut existing: Vec<PathBuf> =
        STORE_FILE_SUFFIXES.iter().map(|suffix| with_suffix(store, suffix)).collect();
    // A dangling symbolic link counts as well.
    existing.retain(|path| path.symlink_metadata().is_ok());
    if existing.is_empty() { Ok(()) } else { Err(RestoreError::Occupied(existing)) }
}

/// Copies the backup, including its WAL, into the file. Returns the row counts.
fn write(source: &Connection, path: &Path) -> Result<Vec<(&'static str, u64)>, StoreError> {
    let not_utf8 = || unavailable("the path of a store must be UTF-8");
    let name = path.to_str().ok_or_else(not_utf8)?;
    source.execute("VACUUM INTO ?1", [name])?;
    let restored = connection::open_to_copy(path)?;
    let mut counts = Vec::new();
    for (label, query) in COUNTS {
        let count: i64 = restored.query_row(query, [], |row| row.get(0))?;
        counts.push((label, count.unsigned_abs()));
    }
    Ok(counts)
}
