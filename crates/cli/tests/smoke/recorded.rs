//! This program opens the recorded SQLite store and works with its content.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use rusqlite::Connection;

use crate::{
    recorded::{RecordedStore, SECRET_KEY},
    service::{GALLEY, Launch, command, galley, json_of},
};

/// The columns, indexes and triggers of a store.
fn schema(path: &Path) -> Vec<String> {
    let store = Connection::open(path).unwrap();
    let mut query = store
        .prepare(
            "SELECT concat_ws(' ', t.name, c.name, c.type, c.\"notnull\", c.pk, c.hidden) \
             FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE t.type = 'table' \
             UNION SELECT type || ' ' || name FROM sqlite_schema WHERE type <> 'table' ORDER BY 1",
        )
        .unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// The tables without rows.
fn empty_tables(store: &Connection) -> Vec<String> {
    let mut query =
        store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1").unwrap();
    let names = query.query_map([], |row| row.get(0)).unwrap();
    let is_empty = |table: &String| {
        let has_rows = format!("SELECT EXISTS (SELECT 1 FROM {table})");
        !store.query_row(&has_rows, [], |row| row.get::<_, bool>(0)).unwrap()
    };
    names.map(Result::unwrap).filter(is_empty).collect()
}

#[test]
fn a_recorded_file_is_opened_and_works() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = RecordedStore::load("sqlite-schema-19");
    let path = dir.path().join("galley.db");
    let file = Connection::open(&path).unwrap();
    // As the program creates it.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    file.execute_batch(&recorded.statements).unwrap();
    // These indexes have their first rows after thousands of creates.
    assert_eq!(empty_tables(&file), ["idempotency_key", "template_name"]);
    // Idempotency records and messages expire after a day: make them look recent.
    file.execute("UPDATE idempotency SET created_at = unixepoch() * 1000", []).unwrap();
    file.execute("UPDATE message SET created_at = unixepoch() * 1000", []).unwrap();
    drop(file);
    let service = recorded.open(Launch::with(command(GALLEY), dir.path()), dir.path());
    let mut doctor = command(GALLEY);
    doctor.current_dir(dir.path()).env("GALLEY_SECRET_KEY", SECRET_KEY);
    doctor.args(["doctor", "--json", "--store", "sqlite:galley.db"]);
    let findings = json_of(&doctor.output().unwrap());
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] == "good"), "{findings}");
    assert_eq!(service.end().0.code(), Some(0));

    let new = tempfile::tempdir().unwrap();
    assert!(galley(new.path(), &["account", "create", "shop"]).status.success());
    assert_eq!(schema(&path), schema(&new.path().join("galley.db")));
}
