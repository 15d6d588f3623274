//! What `galley migrate` refuses before it looks for its target.

use std::{path::Path, process::Output};

use rusqlite::Connection;

use crate::service::{GALLEY, Launch, command, galley};

/// Where no database is.
const NOWHERE: &str = "postgres://nobody@127.0.0.1:1/none";

fn migrate(dir: &Path, from: &str, to: &str) -> Output {
    let mut galley = command(GALLEY);
    galley.current_dir(dir).args(["migrate", "--from", from, "--to", to]).output().unwrap()
}

#[track_caller]
fn refused(dir: &Path, from: &str, to: &str, told: &str) {
    let output = migrate(dir, from, to);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains(told), "{told} expected: {complaint}");
}

#[test]
fn a_store_that_is_being_served_is_not_moved() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    refused(dir.path(), "sqlite:galley.db", NOWHERE, "is in use: stop the service");
    service.is_well("while_it_was_refused");
    assert!(service.end().0.success());
    refused(dir.path(), "sqlite:galley.db", NOWHERE, "the database is not available");
    // It has let go of the file.
    assert!(galley(dir.path(), &["doctor"]).status.success());
}

#[test]
fn a_source_or_target_that_makes_no_sense_is_refused_with_what_would() {
    let dir = tempfile::tempdir().unwrap();
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    refused(dir.path(), NOWHERE, NOWHERE, "only a SQLite store is moved");
    refused(dir.path(), "sqlite:galley.db", "sqlite:other.db", "postgres://USER@HOST/DATABASE");
    refused(dir.path(), "sqlite:missing.db", NOWHERE, "there is no store sqlite:missing.db");
    refused(dir.path(), "galley.db", NOWHERE, "sqlite:PATH or postgres://");
    assert!(!dir.path().join("missing.db").exists());
    std::fs::write(dir.path().join("text"), "not a database, and long enough for one").unwrap();
    refused(dir.path(), "sqlite:text", NOWHERE, "the source cannot be read");
}

#[test]
fn a_source_of_another_schema_is_refused_and_left_as_it_is() {
    for (schema, told) in [(6, "older than the"), (9_999, "newer than the")] {
        let dir = tempfile::tempdir().unwrap();
        assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
        let store = Connection::open(dir.path().join("galley.db")).unwrap();
        store.pragma_update(None, "user_version", schema).unwrap();
        drop(store);
        refused(dir.path(), "sqlite:galley.db", NOWHERE, told);
        let store = Connection::open(dir.path().join("galley.db")).unwrap();
        let kept: i64 = store.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(kept, schema);
    }
}
