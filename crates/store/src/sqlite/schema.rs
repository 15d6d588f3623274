//! Checks which schema a file has and migrates older ones.

use rusqlite::{Connection, TransactionBehavior};

use super::{audit, connection::OpenError};
use crate::{
    StoreError,
    schema_policy::{SchemaAction, SchemaPolicy},
};

/// The `application_id` of Galley's files: "GALY".
const APPLICATION_ID: i32 = 0x4741_4C59;

/// All migrations, oldest first. The schema version is the number of migrations applied.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_foundation.sql"),
    include_str!("../../migrations/sqlite/0002_lifecycle.sql"),
    include_str!("../../migrations/sqlite/0003_webhooks.sql"),
    include_str!("../../migrations/sqlite/0004_whatsapp.sql"),
    include_str!("../../migrations/sqlite/0005_webhook_format.sql"),
    include_str!("../../migrations/sqlite/0006_wording.sql"),
    include_str!("../../migrations/sqlite/0007_media.sql"),
    include_str!("../../migrations/sqlite/0008_checksums.sql"),
    include_str!("../../migrations/sqlite/0009_clock_guard.sql"),
    include_str!("../../migrations/sqlite/0010_account_quotas.sql"),
    include_str!("../../migrations/sqlite/0011_buffered_indexes.sql"),
    include_str!("../../migrations/sqlite/0012_audit.sql"),
    include_str!("../../migrations/sqlite/0013_console.sql"),
    include_str!("../../migrations/sqlite/0014_emulator.sql"),
    include_str!("../../migrations/sqlite/0015_emulated_app.sql"),
    include_str!("../../migrations/sqlite/0016_upstream.sql"),
    include_str!("../../migrations/sqlite/0017_upstream_replaces.sql"),
    include_str!("../../migrations/sqlite/0018_repairs.sql"),
];

/// The schema version that this program writes.
pub(crate) fn newest() -> usize {
    MIGRATIONS.len()
}

/// The schema version of a file: the number of migrations applied to it.
pub(crate) fn version(connection: &Connection) -> Result<usize, StoreError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Checks that the file is a Galley store that this program can read. Returns its schema version.
pub(super) fn check_store(connection: &Connection) -> Result<usize, StoreError> {
    let application = application_id(connection)?;
    let (found, known) = (version(connection)?, newest());
    match (application, found) {
        (APPLICATION_ID, 1..) if found <= known => Ok(found),
        (APPLICATION_ID, 1..) => Err(OpenError::NewerSchema { found, known }.into()),
        _ => Err(OpenError::NotAStore.into()),
    }
}

fn application_id(connection: &Connection) -> Result<i32, StoreError> {
    Ok(connection.pragma_query_value(None, "application_id", |row| row.get(0))?)
}

/// Applies the missing migrations, if the policy allows it.
pub(super) fn migrate(
    connection: &mut Connection,
    schema_policy: SchemaPolicy,
) -> Result<(), StoreError> {
    // Immediate: of two processes that start together, the second waits (up to the busy timeout) and
    // finds the schema migrated.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let application = application_id(&transaction)?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        return Err(OpenError::OtherApplication.into());
    }
    let (found, known) = (version(&transaction)?, newest());
    if found > known {
        return Err(OpenError::NewerSchema { found, known }.into());
    }
    let action = schema_policy.action(found, known);
    if action == SchemaAction::Refuse {
        return Err(OpenError::OlderSchema { found, known }.into());
    }
    if action == SchemaAction::Migrate {
        for migration in &MIGRATIONS[found..] {
            transaction.execute_batch(migration)?;
        }
        if found > 0 {
            audit::append_migration(&transaction, found, known)?;
            tracing::info!(from = found, to = known, "schema migrated");
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", i64::try_from(known).unwrap_or(0))?;
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{
        super::{
            checksum,
            connection::{create_if_missing, open_for_writing},
        },
        *,
    };

    fn open_error(path: &Path) -> String {
        match open_for_writing(path, SchemaPolicy::Migrate).unwrap_err() {
            StoreError::Failed(cause) => cause.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_if_missing(&path, false).unwrap();
        open_for_writing(&path, SchemaPolicy::Migrate)
            .unwrap()
            .pragma_update(None, "user_version", 9_999)
            .unwrap();
        assert!(open_error(&path).contains("schema 9999, newer"), "{}", open_error(&path));
    }

    /// Creates a store with the first schema and one template.
    fn create_with_first_schema(path: &Path) {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let rows = "INSERT INTO account VALUES (1, 'a', 'v1', 'auto', 1, 0, NULL, 1); \
             INSERT INTO template VALUES (5, 1, NULL, x'00', 'n', 'en_US', 'UTILITY', 1, \
             'APPROVED', NULL, 1, 1, 1, 0, 0, '{\"components\":[]}'); \
             INSERT INTO template SELECT 6, account_id, phone_id, NULL, 'deleted', language, \
             category, allow_category_change, status, hold, version, live_version, revision, \
             created_at, updated_at, content FROM template; \
             INSERT INTO event VALUES (1, 1, 'template.created', 5, 1, 0, 7, 'UTILITY', \
             'APPROVED', NULL); \
             INSERT INTO idempotency VALUES (x'01', x'02', 5, 1, 1, 0)";
        connection.execute_batch(rows).unwrap();
    }

    #[test]
    fn migrating_an_older_store_keeps_its_data() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_with_first_schema(&path);
        let connection = open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        assert_eq!(version(&connection).unwrap(), MIGRATIONS.len());
        let (actor, bucket): (i64, String) = connection
            .query_row("SELECT actor, shelf FROM template WHERE id = 5", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!((actor, &*bucket), (7, "APPROVED UTILITY en_US"));
        let (group, limit): (Option<Vec<u8>>, Option<i64>) = connection
            .query_row(
                "SELECT family, template_limit FROM template JOIN account ON account.id = account_id \
                 WHERE template.id = 5",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!((group, limit), (None, None), "no translation group and no limits");
        let indexed: String = connection
            .query_row(
                "SELECT (SELECT group_concat(hex(claim) || ' ' || template_id) FROM template_name) \
                 || ', ' || (SELECT group_concat(hex(key) || ' ' || template_id) FROM \
                 idempotency_key) || ', ' || (SELECT hex(key) || ' ' || hex(payload) FROM \
                 idempotency WHERE template_id = 5)",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(indexed, "00 5, 01 5, 01 02", "names and idempotency keys are indexed");
        let merged: Vec<i64> = connection
            .prepare("SELECT merged_id FROM buffered_index ORDER BY name")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(merged, [5, 6]);
        assert!(connection.query_row("PRAGMA foreign_key_check", [], |_| Ok(())).is_err());
    }

    #[test]
    fn a_migration_of_an_older_store_is_in_the_audit_feed() {
        let entries = |connection: &Connection| -> Vec<(String, i64, String)> {
            let mut query = connection.prepare("SELECT kind, actor, details FROM audit").unwrap();
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            rows.unwrap().map(Result::unwrap).collect()
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_with_first_schema(&path);
        for _ in 0..2 {
            let connection = open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
            let details = format!(r#"{{"from":1,"to":{}}}"#, newest());
            assert_eq!(entries(&connection), [("store.migrated".to_owned(), -1, details)]);
        }
        let new = dir.path().join("new.db");
        create_if_missing(&new, false).unwrap();
        let connection = open_for_writing(&new, SchemaPolicy::Migrate).unwrap();
        assert_eq!(entries(&connection), [], "a new store was not migrated");
    }

    /// The rows of a connected account before the release that stores the sent version.
    const SENT: &str = include_str!("../../tests/conformance/upstream_sent.sql");

    #[test]
    fn migrating_a_connected_account_keeps_what_its_calls_have_sent() {
        let older = Connection::open_in_memory().unwrap();
        checksum::register(&older).unwrap();
        MIGRATIONS[..17].iter().for_each(|migration| older.execute_batch(migration).unwrap());
        older.execute_batch(SENT).unwrap();
        MIGRATIONS[17..].iter().for_each(|migration| older.execute_batch(migration).unwrap());
        let mut query =
            older.prepare("SELECT sent_version FROM upstream_template ORDER BY remote_id").unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        let sent: Vec<Option<i64>> = rows.map(Result::unwrap).collect();
        assert_eq!(sent, [Some(2), None, None]);
    }

    #[test]
    fn migrating_a_used_store_trusts_the_time_of_its_newest_event() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_with_first_schema(&path);
        let older = Connection::open(&path).unwrap();
        older.execute("UPDATE event SET at = 77", []).unwrap();
        drop(older);
        let times = |path: &Path| -> Vec<i64> {
            create_if_missing(path, false).unwrap();
            let store = open_for_writing(path, SchemaPolicy::Migrate).unwrap();
            let mut query = store.prepare("SELECT at FROM clock_guard").unwrap();
            query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        assert_eq!(times(&path), [77]);
        assert_eq!(times(&dir.path().join("new.db")), [0_i64; 0], "a new store trusts any time");
    }

    #[test]
    fn policies_without_migration_refuse_an_older_store_or_keep_it_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_with_first_schema(&path);
        let refused = open_for_writing(&path, SchemaPolicy::Refuse).unwrap_err();
        let StoreError::Failed(cause) = refused else { panic!("{refused:?}") };
        assert!(cause.to_string().contains("schema 1, older"), "{cause}");
        let unchanged = open_for_writing(&path, SchemaPolicy::Keep).unwrap();
        assert_eq!(version(&unchanged).unwrap(), 1);
    }

    #[test]
    fn the_database_of_another_program_is_refused_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(open_error(&path).contains("another program"));
        let tables: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }
}
