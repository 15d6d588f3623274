//! Restores a SQLite store from a backup.
//!
//! The backup is checked, written to a temporary file beside the store, and then renamed, so that
//! the store appears complete or not at all.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{
    StoreError,
    sqlite::{checksum, connection, schema, store_files::with_suffix},
};

/// Suffixes of all files that belong to a store. Leftover files of another store would be taken for
/// its own.
const STORE_FILE_SUFFIXES: [&str; 8] =
    ["", "-wal", "-shm", "-journal", "-search", "-search-wal", "-search-shm", "-search-journal"];

/// Suffix of the temporary file.
const TEMPORARY_SUFFIX: &str = ".restoring";

/// The numbers reported about a restored store: a label and the query for each.
const COUNTS: [(&str, &str); 5] = [
    ("accounts", "SELECT count(*) FROM account"),
    ("templates", "SELECT count(*) FROM template WHERE claim IS NOT NULL"),
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

/// Checks the backup, copies it to a temporary file beside the store, and renames that file.
pub fn restore(backup: &Path, store: &Path) -> Result<Restored, RestoreError> {
    refuse_occupied(store)?;
    let unusable = |error: StoreError| RestoreError::Backup(backup.to_owned(), error);
    let source = connection::open_to_copy(backup).map_err(unusable)?;
    let integrity = check_integrity(&source).map_err(|error| unusable(error.into()))?;
    if integrity != "ok" {
        return Err(RestoreError::Damaged { path: backup.to_owned(), error: integrity });
    }
    let schema = schema::version(&source).map_err(unusable)?;
    if schema == schema::newest() {
        let (damaged, rows) = checksum::damaged_rows(&source).map_err(unusable)?;
        if damaged > 0 {
            let error = format!("{damaged} rows do not match their checksums: {}", rows.join(", "));
            return Err(RestoreError::Damaged { path: backup.to_owned(), error });
        }
    }
    let temporary = with_suffix(store, TEMPORARY_SUFFIX);
    let failed = |error: StoreError| RestoreError::Write(temporary.clone(), error);
    let file = lock_temporary(&temporary)?;
    let written = write(&source, &temporary, &file).map_err(failed).and_then(|counts| {
        // A service may have been started since the first check.
        refuse_occupied(store)?;
        rename_without_replacing(&temporary, store)?;
        Ok(counts)
    });
    let counts = written.inspect_err(|_| {
        // An incomplete store is of no use.
        let _ = std::fs::remove_file(&temporary);
    })?;
    File::open(directory(store))
        .and_then(|directory| directory.sync_all())
        .map_err(|error| RestoreError::Write(store.to_owned(), unavailable(error)))?;
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

/// Renames the temporary file to the store without replacing one that a service creates at the same
/// time. File systems without such a rename get a plain one.
fn rename_without_replacing(temporary: &Path, store: &Path) -> Result<(), RestoreError> {
    let renamed = match renameat_with(CWD, temporary, CWD, store, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => std::fs::rename(temporary, store),
        Err(Errno::EXIST) => return Err(RestoreError::Occupied(vec![store.to_owned()])),
        renamed => renamed.map_err(io::Error::from),
    };
    renamed.map_err(|error| RestoreError::Write(store.to_owned(), unavailable(error)))
}

/// The first error of SQLite's integrity check, or `ok`.
fn check_integrity(source: &Connection) -> rusqlite::Result<String> {
    source.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
}

/// Creates and locks the temporary file, or reuses the one that a killed restore left behind.
fn lock_temporary(path: &Path) -> Result<File, RestoreError> {
    let failed = |error| RestoreError::Write(path.to_owned(), unavailable(error));
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(RestoreError::InProgress(path.to_owned())),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // Another restore may have renamed the file to its store before it released the lock: then this
    // process must not write to it.
    let (locked, current) = (file.metadata().map_err(failed)?, path.metadata());
    if current.map_or(true, |it| (it.dev(), it.ino()) != (locked.dev(), locked.ino())) {
        return Err(RestoreError::InProgress(path.to_owned()));
    }
    file.set_len(0).map_err(failed)?;
    Ok(file)
}

/// Copies the backup, including its WAL, into the file and syncs it. Returns the row counts.
fn write(
    source: &Connection,
    path: &Path,
    file: &File,
) -> Result<Vec<(&'static str, u64)>, StoreError> {
    let name = path
        .to_str()
        .ok_or_else(|| unavailable(io::Error::other("the path of a store must be UTF-8")))?;
    source.execute("VACUUM INTO ?1", [name])?;
    file.sync_all().map_err(unavailable)?;
    let restored = connection::open_to_copy(path)?;
    let mut counts = Vec::new();
    for (label, query) in COUNTS {
        // An older schema does not have all of the tables.
        if let Ok(mut query) = restored.prepare(query) {
            let count: i64 = query.query_row([], |row| row.get(0))?;
            counts.push((label, count.unsigned_abs()));
        }
    }
    Ok(counts)
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable(std::sync::Arc::new(error))
}

fn directory(store: &Path) -> &Path {
    match store.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_created_during_the_restore_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (temporary, store) = (dir.path().join("temporary"), dir.path().join("galley.db"));
        std::fs::write(&temporary, "copy").unwrap();
        std::fs::write(&store, "precious").unwrap();
        let error = rename_without_replacing(&temporary, &store).unwrap_err();
        assert!(matches!(&error, RestoreError::Occupied(files) if *files == [store.clone()]));
        assert_eq!(std::fs::read(&store).unwrap(), b"precious");
        std::fs::remove_file(&store).unwrap();
        rename_without_replacing(&temporary, &store).unwrap();
        assert_eq!(std::fs::read(&store).unwrap(), b"copy");
        assert!(!temporary.exists());
    }
}
