//! Checks which schema a file has and migrates older ones.

use rusqlite::{Connection, TransactionBehavior, params};

use crate::{
    Actor, AuditKind, StoreError,
    decisions::audit::migration,
    encoding::actor_key,
    error::failed,
    schema_policy::{Migrations, SchemaPolicy},
};

/// The `application_id` of Galley's files: "GALY".
const APPLICATION_ID: i32 = 0x4741_4C59;

/// The migrations of this program.
pub(super) const MIGRATIONS: Migrations = Migrations {
    kind: "file",
    copy_advice: "; `galley backup` copies it unchanged",
    first: 19,
    statements: &[include_str!("../../migrations/sqlite/0019_initial.sql")],
};

/// The schema version that this program writes.
pub(crate) fn newest() -> usize {
    MIGRATIONS.latest()
}

/// The schema version of a file: the number of its last migration, 0 in a new file.
pub(crate) fn version(connection: &Connection) -> Result<usize, StoreError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Checks that the file is a Galley store that this program can read.
pub(super) fn check_store(connection: &Connection) -> Result<(), StoreError> {
    let (application, found) = (application_id(connection)?, version(connection)?);
    if application != APPLICATION_ID || found == 0 {
        return Err(failed("the file is not a galley store"));
    }
    MIGRATIONS.check(found)
}

/// Checks that the file is a Galley store with the schema of this program.
pub(super) fn check_current_store(connection: &Connection) -> Result<(), StoreError> {
    check_store(connection)?;
    let found = version(connection)?;
    if found < newest() { Err(MIGRATIONS.older(found)) } else { Ok(()) }
}

fn application_id(connection: &Connection) -> Result<i32, StoreError> {
    Ok(connection.pragma_query_value(None, "application_id", |row| row.get(0))?)
}

/// Applies the missing migrations, if the policy allows it.
pub(super) fn migrate(
    connection: &mut Connection,
    migrations: &Migrations,
    schema_policy: SchemaPolicy,
) -> Result<(), StoreError> {
    // Immediate: of two processes that start together, the second waits (up to the busy timeout) and
    // finds the schema migrated.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let application = application_id(&transaction)?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        return Err(failed("the file is a database of another program"));
    }
    let (found, known) = (version(&transaction)?, migrations.latest());
    if migrations.are_wanted(schema_policy, found)? {
        for (_, statements) in migrations.missing(found) {
            transaction.execute_batch(statements)?;
        }
        if found > 0 {
            // At the time of the database.
            transaction.execute(
                "INSERT INTO audit (at, actor, kind, subject, details) \
                 VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER), ?1, ?2, '', ?3)",
                params![
                    actor_key(Actor::Service),
                    AuditKind::StoreMigrated.as_str(),
                    migration(migrations, found)
                ],
            )?;
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
        super::connection::{create_if_missing, open_for_writing},
        *,
    };

    /// The migrations of a later program.
    const LATER: Migrations = Migrations {
        statements: &[
            MIGRATIONS.statements[0],
            "ALTER TABLE account ADD COLUMN colour TEXT",
            "UPDATE account SET colour = 'red'",
        ],
        ..MIGRATIONS
    };

    /// Creates a store with one account.
    fn create_store(path: &Path) -> Connection {
        create_if_missing(path, false).unwrap();
        let connection = open_for_writing(path, SchemaPolicy::Migrate).unwrap();
        let account = "INSERT INTO account (id, name, rulebook, review, takes_any_phone, created_at) \
                       VALUES (1, 'a', 'v1', 'auto', 1, 0)";
        connection.execute_batch(account).unwrap();
        connection
    }

    fn cause(error: StoreError) -> String {
        match error {
            StoreError::Failed(cause) => cause.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn open_error(path: &Path, policy: SchemaPolicy) -> String {
        cause(open_for_writing(path, policy).unwrap_err())
    }

    fn migrations_in_the_audit_feed(connection: &Connection) -> Vec<(String, i64, String)> {
        let mut query = connection.prepare("SELECT kind, actor, details FROM audit").unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_later_program_migrates_a_store_once_and_records_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let mut store = create_store(&path);
        assert_eq!(migrations_in_the_audit_feed(&store), [], "a new store was not migrated");
        for _ in 0..2 {
            migrate(&mut store, &LATER, SchemaPolicy::Migrate).unwrap();
            let colour: String =
                store.query_row("SELECT colour FROM account", [], |row| row.get(0)).unwrap();
            assert_eq!((&*colour, version(&store).unwrap()), ("red", LATER.latest()));
            let details = format!(r#"{{"from":{},"to":{}}}"#, newest(), LATER.latest());
            let entry = ("store.migrated".to_owned(), -1, details);
            assert_eq!(migrations_in_the_audit_feed(&store), [entry]);
        }
        drop(store);
        let newer = format!("schema {}, newer", LATER.latest());
        let refused = open_error(&path, SchemaPolicy::Migrate);
        assert!(refused.contains(&newer), "{refused}");
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        const FAILING: Migrations = Migrations {
            statements: &[LATER.statements[0], LATER.statements[1], "no statement"],
            ..LATER
        };
        let dir = tempfile::tempdir().unwrap();
        let mut store = create_store(&dir.path().join("galley.db"));
        assert!(migrate(&mut store, &FAILING, SchemaPolicy::Migrate).is_err());
        assert_eq!(version(&store).unwrap(), newest());
        assert!(store.prepare("SELECT colour FROM account").is_err());
    }

    #[test]
    fn policies_without_migration_refuse_an_older_store_or_keep_it_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = create_store(&dir.path().join("galley.db"));
        for policy in [SchemaPolicy::Refuse, SchemaPolicy::RefuseUnlessEmpty] {
            let refused = cause(migrate(&mut store, &LATER, policy).unwrap_err());
            assert!(refused.contains(&format!("schema {}, older", newest())), "{refused}");
        }
        migrate(&mut store, &LATER, SchemaPolicy::Keep).unwrap();
        assert_eq!(version(&store).unwrap(), newest());
    }

    #[test]
    fn stores_of_builds_before_the_first_release_are_refused_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        for found in [1_i64, 18] {
            let store = create_store(&path);
            store.pragma_update(None, "user_version", found).unwrap();
            drop(store);
            for policy in [SchemaPolicy::Migrate, SchemaPolicy::Refuse, SchemaPolicy::Keep] {
                let refused = open_error(&path, policy);
                let expected =
                    format!("the file has schema {found}, written by a build before 0.1.0");
                assert!(refused.contains(&expected), "{policy:?}: {refused}");
            }
            let file = Connection::open(&path).unwrap();
            assert!(cause(check_store(&file).unwrap_err()).contains("before 0.1.0"));
            assert_eq!(version(&file).unwrap(), usize::try_from(found).unwrap());
            drop(file);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn the_database_of_another_program_is_refused_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(open_error(&path, SchemaPolicy::Migrate).contains("another program"));
        let tables: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }
}
