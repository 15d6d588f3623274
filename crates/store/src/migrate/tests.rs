//! Tests of the copy, on a PostgreSQL server.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::{
    SchemaPolicy,
    postgres::{PostgresOptions, PostgresStore, test_database},
    sqlite::connection,
};

/// A new SQLite store.
fn sqlite_store() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    connection::create_if_missing(&path, false).unwrap();
    drop(connection::open_for_writing(&path, SchemaPolicy::Migrate).unwrap());
    (dir, path)
}

async fn open(address: &PostgresAddress) -> Result<PostgresStore, String> {
    let opened = PostgresStore::open(address, &PostgresOptions::default()).await;
    opened.map_err(|error| match error {
        StoreError::Failed(cause) => cause.to_string(),
        other => panic!("{other:?}"),
    })
}

fn change(path: &Path, statements: &str) {
    Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

#[tokio::test]
async fn a_copy_that_fails_before_its_first_row_leaves_a_marked_target() {
    let (_dir, path) = sqlite_store();
    change(
        &path,
        "INSERT INTO account (id, name, rulebook, review, takes_any_phone, created_at) \
         VALUES (1, 'a', 'v1', 'auto', 1, 0)",
    );
    for is_new in [true, false] {
        let address: PostgresAddress = test_database::create().await.parse().unwrap();
        if !is_new {
            drop(open(&address).await.unwrap());
        }
        // The count of the rows fails, because it reads the names of accounts.
        change(&path, "UPDATE account SET name = char(0)");
        let error = migrate(&path, &address, |_| ()).await.unwrap_err();
        assert!(matches!(error, MigrateError::InvalidValue { .. }), "{error:?}");
        let refused = open(&address).await.err().expect("the target is not complete");
        assert!(refused.contains("filled by `galley migrate`"), "{refused}");

        change(&path, "UPDATE account SET name = 'a'");
        let compared = migrate(&path, &address, |_| ()).await.unwrap();
        assert!(compared.iter().all(Comparison::is_match), "{compared:?}");
        drop(open(&address).await.unwrap());
    }
}
