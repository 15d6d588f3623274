//! Backups: a copy is written aside, verified, synced, and renamed when it is complete.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;

use super::{checksum, connection};
use crate::{
    CopyPhase, PhaseObserver, StoreError,
    error::failed,
    partial_file::{PartialFile, PartialFileError, refuse_existing, with_suffix},
};

/// Suffix of the file that a backup writes.
const PARTIAL_SUFFIX: &str = ".galley-partial";

impl From<PartialFileError> for StoreError {
    fn from(error: PartialFileError) -> Self {
        Self::Failed(Arc::new(error))
    }
}

/// Copies all committed data into a new file that only its owner can read, in one read transaction.
/// Keeps a damaged copy only if that is allowed.
pub(super) fn backup(
    store: &Connection,
    path: &Path,
    allow_damaged: bool,
    observer: PhaseObserver<'_>,
) -> Result<(), StoreError> {
    refuse_existing(path)?;
    let partial = PartialFile::lock(with_suffix(path, PARTIAL_SUFFIX))?;
    let not_utf8 = || failed("the path of a backup must be UTF-8");
    let name = partial.path().to_str().ok_or_else(not_utf8)?;
    observer(writing(store, partial.path()));
    // VACUUM INTO accepts an empty file and never blocks a writer, but it does not sync the file.
    store.execute("VACUUM INTO ?1", [name])?;
    observer(CopyPhase::Checking);
    if let Some(damage) = find_damage(&connection::open_to_copy(partial.path())?)?
        && !allow_damaged
    {
        return Err(failed(format!(
            "the copy is damaged and was deleted ({damage}): restore an earlier backup, or keep the \
             copy with --allow-damaged"
        )));
    }
    Ok(partial.persist(path)?)
}

/// The phase that copies a store into a file. Free pages are not copied. The size is only shown, so
/// that it is 0 if it cannot be read.
pub(crate) fn writing(store: &Connection, file: &Path) -> CopyPhase {
    let bytes: Result<i64, _> = store.query_row(
        "SELECT (page_count - freelist_count) * page_size \
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
        [],
        |row| row.get(0),
    );
    CopyPhase::Writing { file: file.to_owned(), bytes: bytes.unwrap_or(0).unsigned_abs() }
}

/// What is damaged in a store, if anything: its structure, or rows that do not match their checksums.
pub(crate) fn find_damage(store: &Connection) -> Result<Option<String>, StoreError> {
    let integrity: String = store.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if integrity != "ok" {
        return Ok(Some(integrity));
    }
    let (count, rows) = checksum::damaged_rows(store)?;
    let found = || format!("{count} rows do not match their checksums: {}", rows.join(", "));
    Ok((count > 0).then(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemaPolicy;

    #[test]
    fn a_damaged_copy_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy.db");
        let path = dir.path().join("galley.db");
        connection::create_if_missing(&path, false).unwrap();
        let store = connection::open_for_writing(&path, SchemaPolicy::Migrate);
        // A row that contradicts its table passes into the copy, and the check finds it there.
        let contradiction = "CREATE TABLE t (x CHECK (x > 0)); \
                             PRAGMA ignore_check_constraints = on; INSERT INTO t VALUES (-1)";
        let store = store.unwrap();
        store.execute_batch(contradiction).unwrap();
        let StoreError::Failed(cause) = backup(&store, &copy, false, &|_| {}).unwrap_err() else {
            panic!()
        };
        assert!(cause.to_string().contains("the copy is damaged"), "{cause}");
        assert!(!copy.exists() && !with_suffix(&copy, PARTIAL_SUFFIX).exists());
        backup(&store, &copy, true, &|_| {}).unwrap();
        assert!(copy.exists());
    }
}
