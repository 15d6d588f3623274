//! Opens SQLite connections with the settings each purpose needs, and checks those that durability
//! depends on.

use std::{fmt::Display, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, types::FromSql};

use super::{
    checksum, schema,
    store_files::{self, SEARCH_INDEX_SUFFIX},
};
use crate::{SchemaPolicy, StoreError, error::failed, partial_file::with_suffix};

/// Older SQLite versions can corrupt a database in WAL mode (a race between a checkpoint and a
/// write on two connections).
const MIN_SQLITE_VERSION: i32 = 3_051_003;

/// How long a statement waits for a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of the file a connection maps into memory; pages beyond are read with system calls.
const MAX_MMAP_BYTES: i64 = 2 * 1_024 * 1_024 * 1_024;

fn open_read_write(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    checksum::register(&connection)?;
    Ok(connection)
}

/// Creates an empty store file, unless there is one. Refuses if files of an earlier store are left at
/// the path: most likely the store was deleted or moved by mistake.
pub(crate) fn create_if_missing(path: &Path, new_store: bool) -> Result<(), StoreError> {
    // An empty file is no store: SQLite would delete the WAL beside it.
    if path.metadata().is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    let leftover = |suffix| Some(with_suffix(path, suffix)).filter(|file| file.exists());
    if let Some(wal) = leftover("-wal") {
        return Err(failed(format!(
            "the store does not exist, but its write-ahead log {} does, which may contain its last \
             writes: put the store file back beside it, or move it away",
            wal.display()
        )));
    }
    match leftover(SEARCH_INDEX_SUFFIX) {
        Some(index) if !new_store => Err(failed(format!(
            "the store does not exist, but its search index {} does: put the store file back, check \
             `store`, or start with `galley serve --new-store` to create an empty store",
            index.display()
        ))),
        _ => create_private(path),
    }
}

/// Opens the writer's connection. Migrates the file if the policy allows it.
pub(crate) fn open_for_writing(
    path: &Path,
    schema_policy: SchemaPolicy,
) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < MIN_SQLITE_VERSION {
        return Err(failed(format!(
            "this program contains SQLite {}, which can corrupt a database; 3.51.3 is the oldest safe \
             version",
            rusqlite::version()
        )));
    }
    let mut connection = open_read_write(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Page, cache and checkpoint sizes were measured: docs/decisions/0005-write-path.md.
    connection.pragma_update(None, "page_size", 4_096)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -8 * 1_024)?;
    // What a savepoint keeps of changed pages needs no file in the folder for temporary files.
    connection.pragma_update(None, "temp_store", "memory")?;
    // Pages that are only read, such as those of the index of names, need no memory of their own.
    connection.pragma_update(None, "mmap_size", MAX_MMAP_BYTES)?;
    // A background thread runs the checkpoints, not a commit: `checkpoint.rs`.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", 128 * 1_024 * 1_024)?;
    connection.set_prepared_statement_cache_capacity(96);
    check_setting(&connection, "journal_mode", &"wal".to_owned())?;
    check_setting(&connection, "synchronous", &2)?;
    // A migration may replace a table that others refer to, which is not possible while SQLite checks
    // the references.
    connection.pragma_update(None, "foreign_keys", false)?;
    schema::migrate(&mut connection, &schema::MIGRATIONS, schema_policy)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    check_setting(&connection, "foreign_keys", &1)?;
    Ok(connection)
}

/// Checks that SQLite has applied a setting.
fn check_setting<T: FromSql + Display + PartialEq>(
    connection: &Connection,
    setting: &str,
    expected: &T,
) -> Result<(), StoreError> {
    let found: T = connection.pragma_query_value(None, setting, |row| row.get(0))?;
    let is_applied = found == *expected;
    is_applied
        .then_some(())
        .ok_or_else(|| failed(format!("SQLite did not apply the setting {setting}: it is {found}")))
}

/// Creates an empty file that only its owner can read. SQLite gives its WAL the same permissions.
pub(crate) fn create_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let created = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match created {
        // Another process that starts at the same time created it.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        created => Ok(created.map(drop)?),
    }
}

/// Opens a connection that checkpoints the WAL of a file the writer has already opened.
pub(super) fn open_for_checkpoints(path: &Path) -> Result<Connection, StoreError> {
    let connection = open_read_write(path)?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

/// Opens the search index; creates the file if it does not exist.
pub(super) fn open_search_index(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        create_private(path)?;
    }
    let connection = open_read_write(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Opens a read-only connection to a file the writer has already opened.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    checksum::register(&connection)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Reads pages from the page cache, without a system call and a copy for each.
    connection.pragma_update(None, "mmap_size", MAX_MMAP_BYTES)?;
    // Only pages of the WAL are cached, for each of about ten connections.
    connection.pragma_update(None, "cache_size", -1_024)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Opens a store with a schema that this program can read, to inspect and copy it.
pub(crate) fn open_to_copy(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, StoreError> {
        // SQLite falls back to read-only if the file is not writable.
        let connection = open_read_write(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        schema::check_store(&connection)?;
        Ok(connection)
    };
    open().map_err(|error| store_files::explained(path, error))
}

/// Opens a store of the current schema exclusively, inside a transaction that stays open, so that
/// all reads see one state of the store.
pub(crate) fn open_exclusive(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, StoreError> {
        let connection = open_read_write(path)?;
        // Every process with an open connection in WAL mode holds a lock, even when it is idle.
        connection.busy_timeout(Duration::ZERO)?;
        connection.pragma_update(None, "locking_mode", "exclusive")?;
        connection.execute_batch("BEGIN")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(
            |error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseBusy) => failed(
                    "the file is in use: stop the service and every other process that has it open",
                ),
                _ => StoreError::from(error),
            },
        )?;
        schema::check_current_store(&connection)?;
        Ok(connection)
    };
    open().map_err(|error| store_files::explained(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_can_read_a_new_store_and_its_wal() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_if_missing(&path, false).unwrap();
        let _open = open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        for name in ["galley.db", "galley.db-wal"] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn the_bundled_sqlite_is_safe_and_its_settings_are_durable() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_if_missing(&path, false).unwrap();
        let connection = open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        assert!(rusqlite::version_number() >= MIN_SQLITE_VERSION);
        check_setting(&connection, "journal_mode", &"wal".to_owned()).unwrap();
        check_setting(&connection, "synchronous", &2).unwrap();
        assert!(check_setting(&connection, "synchronous", &1).is_err());
    }
}
