//! Opening a SQLite file: settings that durability rests on, migrations, and the start-up checks.

use std::{path::Path, sync::Arc};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{SchemaPolicy, options::Step};
use crate::StoreError;

/// SQLite below this version can corrupt a database in WAL mode (a race between a checkpoint
/// and a write on two connections).
const OLDEST_SQLITE: i32 = 3_051_003;

/// Marks a file as ours: "GALY".
const APPLICATION_ID: i32 = 0x4741_4C59;

/// How much of the file a reader maps: what lies behind is read by calls.
const LARGEST_MAP: i64 = 2 * 1_024 * 1_024 * 1_024;

/// Every migration, oldest first; the schema's version is how many have run.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_foundation.sql"),
    include_str!("../../migrations/sqlite/0002_lifecycle.sql"),
    include_str!("../../migrations/sqlite/0003_webhooks.sql"),
    include_str!("../../migrations/sqlite/0004_whatsapp.sql"),
    include_str!("../../migrations/sqlite/0005_webhook_format.sql"),
    include_str!("../../migrations/sqlite/0006_wording.sql"),
    include_str!("../../migrations/sqlite/0007_media.sql"),
];

/// Why a file is not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "the SQLite inside this program is {0}, which can corrupt a database; 3.51.3 is the oldest good one"
    )]
    OldSqlite(&'static str),
    #[error("the file is a database of another program")]
    Foreign,
    #[error("the file holds no store of galley")]
    NoStore,
    #[error("the file is in use: stop the service and whatever else has it open")]
    InUse,
    #[error(
        "the file has schema {found}, newer than the {known} this program knows: use a newer galley"
    )]
    NewerSchema { found: usize, known: usize },
    #[error(
        "the file has schema {found}, older than the {known} of this program: `galley serve` brings it up to date; `galley backup` copies it as it is"
    )]
    SchemaPolicy { found: usize, known: usize },
    #[error("SQLite did not take the setting {setting}: it is {found}")]
    Setting { setting: &'static str, found: String },
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(Arc::new(refusal))
    }
}

/// A connection for the writer: makes the file and brings its schema up to date where needed.
pub(crate) fn open_for_writing(
    path: &Path,
    older_schema: SchemaPolicy,
) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(Refusal::OldSqlite(rusqlite::version()).into());
    }
    if !path.exists() {
        make_private(path)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Page, cache and checkpoint sizes were measured: docs/decisions/0005-write-path.md.
    connection.pragma_update(None, "page_size", 4_096)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -16 * 1_024)?;
    // The log is folded into the file beside the writer, not inside a commit: `fold.rs`.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", 128 * 1_024 * 1_024)?;
    connection.set_prepared_statement_cache_capacity(96);
    for (setting, found, good) in settings(&connection)? {
        if !good {
            return Err(Refusal::Setting { setting, found }.into());
        }
    }
    migrate(&mut connection, older_schema)?;
    Ok(connection)
}

/// Makes an empty file that only its owner may read; what SQLite puts beside it is like it.
pub(crate) fn make_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        // Another process that starts at the same time has made it.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::Unavailable(Arc::new(error))),
        Ok(_) => Ok(()),
    }
}

/// A connection that folds the log of a file that the writer has opened.
pub(super) fn open_for_folding(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

/// A connection to the index of words, made where there is none.
pub(super) fn open_words(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        make_private(path)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// A connection for a reader of a file that the writer has opened.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Pages of the file are read where the system keeps them, without a call and a copy for each.
    connection.pragma_update(None, "mmap_size", LARGEST_MAP)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// A connection to a whole store that is looked at and copied, of this schema or an older one.
pub(crate) fn open_to_copy(path: &Path) -> Result<Connection, StoreError> {
    // What is not to be written to is opened for reading by itself.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    check_owner(&connection)?;
    Ok(connection)
}

/// The same with everybody else kept out until it is closed, in a transaction that stays open: what
/// is read is one state of the store, of this program's schema.
pub(crate) fn open_alone(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Whoever has a file in WAL mode open holds a lock on it, whether he is at work or not.
    connection.busy_timeout(std::time::Duration::ZERO)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.execute_batch("BEGIN")?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(
        |error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy) => Refusal::InUse.into(),
            _ => StoreError::from(error),
        },
    )?;
    let (found, known) = (check_owner(&connection)?, MIGRATIONS.len());
    if found < known {
        return Err(Refusal::SchemaPolicy { found, known }.into());
    }
    Ok(connection)
}

/// Whether it is a store of ours that this program can read; answers its schema.
fn check_owner(connection: &Connection) -> Result<usize, StoreError> {
    let owner: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let (found, known) = (schema_version(connection)?, MIGRATIONS.len());
    match (owner, found) {
        (APPLICATION_ID, 1..) if found <= known => Ok(found),
        (APPLICATION_ID, 1..) => Err(Refusal::NewerSchema { found, known }.into()),
        _ => Err(Refusal::NoStore.into()),
    }
}

/// The settings that durability rests on: name, what it is, whether that is good.
fn settings(connection: &Connection) -> Result<[(&'static str, String, bool); 3], StoreError> {
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    let foreign_keys: i64 =
        connection.pragma_query_value(None, "foreign_keys", |row| row.get(0))?;
    Ok([
        ("journal_mode", journal.clone(), journal == "wal"),
        ("synchronous", synchronous.to_string(), synchronous == 2),
        ("foreign_keys", foreign_keys.to_string(), foreign_keys == 1),
    ])
}

/// How many migrations a file has seen.
pub(crate) fn schema_version(connection: &Connection) -> Result<usize, StoreError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

fn migrate(connection: &mut Connection, older_schema: SchemaPolicy) -> Result<(), StoreError> {
    // Immediate: of two processes that start together, the second waits and finds the work done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let owner: i32 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if owner != APPLICATION_ID && (owner != 0 || tables > 0) {
        return Err(Refusal::Foreign.into());
    }
    let found = schema_version(&transaction)?;
    if found > MIGRATIONS.len() {
        return Err(Refusal::NewerSchema { found, known: MIGRATIONS.len() }.into());
    }
    let step = older_schema.step(found, MIGRATIONS.len());
    if step == Step::Refuse {
        return Err(Refusal::SchemaPolicy { found, known: MIGRATIONS.len() }.into());
    }
    if step == Step::Renew {
        for migration in &MIGRATIONS[found..] {
            transaction.execute_batch(migration)?;
        }
        if found > 0 {
            tracing::info!(from = found, to = MIGRATIONS.len(), "the schema is brought up to date");
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(
            None,
            "user_version",
            i64::try_from(MIGRATIONS.len()).unwrap_or(0),
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// Which schema this program writes.
pub(crate) fn newest_schema() -> usize {
    MIGRATIONS.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        match open_for_writing(path, SchemaPolicy::Renewed).unwrap_err() {
            StoreError::Failed(cause) => cause.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_the_owner_may_read_a_new_store_and_its_log() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let _open = open_for_writing(&path, SchemaPolicy::Renewed).unwrap();
        for name in ["galley.db", "galley.db-wal"] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_schema_from_the_future_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        open_for_writing(&path, SchemaPolicy::Renewed)
            .unwrap()
            .pragma_update(None, "user_version", 9_999)
            .unwrap();
        assert!(refusal(&path).contains("schema 9999, newer"), "{}", refusal(&path));
    }

    /// A store as the first schema had it, with one template.
    fn first_schema(path: &Path) {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let rows = "INSERT INTO account VALUES (1, 'a', 'v1', 'auto', 1, 0, NULL, 1); \
             INSERT INTO template VALUES (5, 1, NULL, x'00', 'n', 'en_US', 'UTILITY', 1, \
             'APPROVED', NULL, 1, 1, 1, 0, 0, '{\"components\":[]}'); \
             INSERT INTO event VALUES (1, 1, 'template.created', 5, 1, 0, 7, 'UTILITY', \
             'APPROVED', NULL)";
        connection.execute_batch(rows).unwrap();
    }

    #[test]
    fn an_older_store_is_brought_up_to_date_with_all_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        first_schema(&path);
        let connection = open_for_writing(&path, SchemaPolicy::Renewed).unwrap();
        assert_eq!(schema_version(&connection).unwrap(), MIGRATIONS.len());
        let (actor, shelf): (i64, String) = connection
            .query_row("SELECT actor, shelf FROM template", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!((actor, &*shelf), (7, "APPROVED UTILITY en_US"));
        let (family, limit): (Option<Vec<u8>>, Option<i64>) = connection
            .query_row(
                "SELECT family, template_limit FROM template JOIN account ON account.id = account_id",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!((family, limit), (None, None), "alone with its name, and held to nothing");
    }

    #[test]
    fn who_is_not_to_renew_an_older_store_refuses_it_or_leaves_it_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        first_schema(&path);
        let refused = open_for_writing(&path, SchemaPolicy::Refused).unwrap_err();
        let StoreError::Failed(cause) = refused else { panic!("{refused:?}") };
        assert!(cause.to_string().contains("schema 1, older"), "{cause}");
        let left = open_for_writing(&path, SchemaPolicy::LeftAlone).unwrap();
        assert_eq!(schema_version(&left).unwrap(), 1);
    }

    #[test]
    fn the_database_of_another_program_is_refused_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(refusal(&path).contains("another program"));
        let tables: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }

    #[test]
    fn the_sqlite_inside_is_new_enough_and_durable() {
        let dir = tempfile::tempdir().unwrap();
        let connection =
            open_for_writing(&dir.path().join("galley.db"), SchemaPolicy::Renewed).unwrap();
        assert!(rusqlite::version_number() >= OLDEST_SQLITE);
        assert!(settings(&connection).unwrap().iter().all(|(_, _, good)| *good));
    }
}
