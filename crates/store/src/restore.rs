//! Putting a copy of a SQLite store in its place. The copy is checked first and written beside; the
//! store appears whole, by its new name, or not at all.

use std::{
    ffi::OsString,
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

use crate::{StoreError, sqlite::connection};

/// What a store has beside it: what is left of another one would be taken for its own.
const BESIDE: [&str; 8] =
    ["", "-wal", "-shm", "-journal", "-search", "-search-wal", "-search-shm", "-search-journal"];

/// Where it is written until it is whole.
const UNTIL_WHOLE: &str = ".restoring";

/// What is told of a store that was restored: its table, and how it is counted.
const COUNTED: [(&str, &str); 5] = [
    ("accounts", "SELECT count(*) FROM account"),
    ("templates", "SELECT count(*) FROM template WHERE claim IS NOT NULL"),
    ("events", "SELECT count(*) FROM event"),
    ("webhooks", "SELECT count(*) FROM webhook"),
    ("files", "SELECT count(*) FROM upload"),
];

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    /// What it holds, and how much of it.
    pub holds: Vec<(&'static str, u64)>,
    /// Its schema.
    pub schema: usize,
    /// The schema that this program writes.
    pub newest_schema: usize,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There are these files already.
    #[error("a store, or what is left of one, is there already")]
    Occupied(Vec<PathBuf>),
    /// The copy is none, or cannot be read.
    #[error("the backup {} cannot be used", .0.display())]
    Backup(PathBuf, #[source] StoreError),
    /// The copy is damaged.
    #[error("the backup {} is damaged, and nothing was restored: {fault}", path.display())]
    Damaged {
        /// The copy.
        path: PathBuf,
        /// The first thing that is wrong with it.
        fault: String,
    },
    /// Two are at it.
    #[error("{} is being written by another `galley restore`", .0.display())]
    Elsewhere(PathBuf),
    /// It cannot be written there.
    #[error("{} cannot be written", .0.display())]
    Unwritten(PathBuf, #[source] StoreError),
}

/// Checks the copy, writes it beside the store, and gives it the store's name.
pub fn restore(backup: &Path, store: &Path) -> Result<Restored, RestoreError> {
    refuse_occupied(store)?;
    let unusable = |error: StoreError| RestoreError::Backup(backup.to_owned(), error);
    let copy = connection::open_to_copy(backup).map_err(unusable)?;
    let verdict = integrity(&copy).map_err(|error| unusable(error.into()))?;
    if verdict != "ok" {
        return Err(RestoreError::Damaged { path: backup.to_owned(), fault: verdict });
    }
    let schema = connection::schema_version(&copy).map_err(unusable)?;
    let beside = with_ending(store, UNTIL_WHOLE);
    let failed = |error: StoreError| RestoreError::Unwritten(beside.clone(), error);
    let file = claim(&beside)?;
    let written = write(&copy, &beside, &file).map_err(failed).and_then(|holds| {
        // A service may have been started meanwhile.
        refuse_occupied(store)?;
        give_name(&beside, store)?;
        Ok(holds)
    });
    let holds = written.inspect_err(|_| {
        // Half a store is of no use to anybody.
        let _ = std::fs::remove_file(&beside);
    })?;
    File::open(directory(store))
        .and_then(|directory| directory.sync_all())
        .map_err(|error| RestoreError::Unwritten(store.to_owned(), unavailable(error)))?;
    Ok(Restored { holds, schema, newest_schema: connection::newest_schema() })
}

/// Refuses a place where a store is, or something that would be taken for a part of it.
fn refuse_occupied(store: &Path) -> Result<(), RestoreError> {
    let mut there: Vec<PathBuf> = BESIDE.iter().map(|it| with_ending(store, it)).collect();
    // A link that leads nowhere is something, too.
    there.retain(|path| path.symlink_metadata().is_ok());
    if there.is_empty() { Ok(()) } else { Err(RestoreError::Occupied(there)) }
}

/// Gives a file the name of the store, if nothing has it: a store that a service makes in this very
/// moment is not written over. A file system that cannot tell is believed that there is none.
fn give_name(beside: &Path, store: &Path) -> Result<(), RestoreError> {
    let given = match renameat_with(CWD, beside, CWD, store, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => std::fs::rename(beside, store),
        Err(Errno::EXIST) => return Err(RestoreError::Occupied(vec![store.to_owned()])),
        given => given.map_err(io::Error::from),
    };
    given.map_err(|error| RestoreError::Unwritten(store.to_owned(), unavailable(error)))
}

/// The first thing that is wrong with a file, or `ok`.
fn integrity(copy: &Connection) -> rusqlite::Result<String> {
    copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
}

/// Makes the file, or takes the one that a restore left when it was killed; only one has it at a
/// time.
fn claim(beside: &Path) -> Result<File, RestoreError> {
    let failed = |error| RestoreError::Unwritten(beside.to_owned(), unavailable(error));
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(beside);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(RestoreError::Elsewhere(beside.to_owned())),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // Another restore may have made a store of it before it let go: then it is not ours to write to.
    let (ours, there) = (file.metadata().map_err(failed)?, beside.metadata());
    if there.map_or(true, |there| (there.dev(), there.ino()) != (ours.dev(), ours.ino())) {
        return Err(RestoreError::Elsewhere(beside.to_owned()));
    }
    file.set_len(0).map_err(failed)?;
    Ok(file)
}

/// Writes all of it, with what stood in the log of the copy, and syncs it; counts what is there.
fn write(
    copy: &Connection,
    beside: &Path,
    file: &File,
) -> Result<Vec<(&'static str, u64)>, StoreError> {
    let name = beside
        .to_str()
        .ok_or_else(|| unavailable(io::Error::other("the path of a store has to be UTF-8")))?;
    copy.execute("VACUUM INTO ?1", [name])?;
    file.sync_all().map_err(unavailable)?;
    let whole = connection::open_to_copy(beside)?;
    let mut holds = Vec::new();
    for (what, count) in COUNTED {
        // An older schema has not all of them.
        if let Ok(mut query) = whole.prepare(count) {
            let number: i64 = query.query_row([], |row| row.get(0))?;
            holds.push((what, number.unsigned_abs()));
        }
    }
    Ok(holds)
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable(std::sync::Arc::new(error))
}

fn with_ending(store: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(ending);
    PathBuf::from(name)
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
    fn a_store_that_came_meanwhile_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let (beside, store) = (dir.path().join("beside"), dir.path().join("galley.db"));
        std::fs::write(&beside, "copy").unwrap();
        std::fs::write(&store, "precious").unwrap();
        let refusal = give_name(&beside, &store).unwrap_err();
        assert!(matches!(&refusal, RestoreError::Occupied(there) if *there == [store.clone()]));
        assert_eq!(std::fs::read(&store).unwrap(), b"precious");
        std::fs::remove_file(&store).unwrap();
        give_name(&beside, &store).unwrap();
        assert_eq!(std::fs::read(&store).unwrap(), b"copy");
        assert!(!beside.exists());
    }
}
