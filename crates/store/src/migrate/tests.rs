//! Tests of the copy and of both initial schemas, on a PostgreSQL server.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

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

/// Tables whose columns are in another order in PostgreSQL, so that nothing is lost to alignment.
const ALIGNED_TABLES: [&str; 6] =
    ["account", "template", "former_version", "event", "idempotency", "delivery"];

/// The columns of each table, and the indexes that are no constraints.
type Schema = (BTreeMap<String, Vec<String>>, Vec<String>);

/// Leaves out what the databases do not have in common.
fn comparable(columns: Vec<[String; 3]>, mut indexes: Vec<String>) -> Schema {
    let mut tables = BTreeMap::<String, Vec<String>>::new();
    for [table, column, definition] in columns {
        let of_one_side = rules::NOT_COPIED.iter().any(|it| it.0 == table)
            || rules::NOT_COPIED_COLUMNS.contains(&(&table, &column))
            || rules::COMPUTED_COLUMN == (table.as_str(), column.as_str());
        if !of_one_side {
            tables.entry(table).or_default().push(format!("{column} {definition}"));
        }
    }
    for table in ALIGNED_TABLES {
        tables.get_mut(table).unwrap().sort();
    }
    indexes.sort();
    (tables, indexes)
}

#[tokio::test]
async fn both_initial_schemas_are_alike() {
    let (_dir, path) = sqlite_store();
    let store = Connection::open(&path).unwrap();
    let mut query = store
        .prepare(
            "SELECT t.name, c.name, iif(c.\"notnull\" OR c.pk, 'required', 'optional') \
                 || coalesce(' ' || c.dflt_value, '') \
             FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND c.hidden = 0",
        )
        .unwrap();
    let columns = query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).unwrap();
    let columns = columns.map(Result::unwrap).collect();
    let mut query = store
        .prepare(
            "SELECT i.name || iif(i.\"unique\", ' unique', '') \
             FROM sqlite_schema t, pragma_index_list(t.name) i WHERE t.type = 'table' AND i.origin = 'c'",
        )
        .unwrap();
    let indexes = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let sqlite = comparable(columns, indexes);

    let address = test_database::create().await;
    drop(open(&address.parse().unwrap()).await.unwrap());
    let client = test_database::connect(&address).await;
    let columns = client
        .query(
            "SELECT c.relname::text, a.attname::text, \
                 CASE WHEN a.attnotnull THEN 'required' ELSE 'optional' END \
                 || coalesce(' ' || pg_get_expr(d.adbin, d.adrelid), '') \
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 \
             LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum \
             WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' \
             ORDER BY c.relname, a.attnum",
            &[],
        )
        .await
        .unwrap();
    let text = |text: String| text.replace("::text", "").replace(" false", " 0");
    let columns = columns.iter().map(|row| [row.get(0), row.get(1), text(row.get(2))]).collect();
    let indexes = client
        .query(
            "SELECT c.relname || CASE WHEN i.indisunique THEN ' unique' ELSE '' END \
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
             WHERE c.relnamespace = current_schema()::regnamespace AND c.relname <> 'search_index_words' \
             AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid)",
            &[],
        )
        .await
        .unwrap();
    let indexes = indexes.iter().map(|row| row.get(0)).collect();
    assert_eq!(comparable(columns, indexes), sqlite);
}
