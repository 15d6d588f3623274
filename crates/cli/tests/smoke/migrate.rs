//! Inputs that `galley migrate` refuses before it connects to the target.

use std::{path::Path, process::Output};

use rusqlite::Connection;

use crate::service::{GALLEY, Launch, command, galley};

/// A URL where no server listens.
const UNREACHABLE: &str = "postgres://galley@127.0.0.1:1/none";

fn migrate(dir: &Path, from: &str, to: &str) -> Output {
    let mut galley = command(GALLEY);
    galley.current_dir(dir).args(["migrate", "--from", from, "--to", to]).output().unwrap()
}

#[track_caller]
fn assert_refused(dir: &Path, from: &str, to: &str, expected: &str) {
    let output = migrate(dir, from, to);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(expected), "{expected} expected: {stderr}");
}

#[test]
fn a_store_in_use_is_not_migrated() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    assert_refused(dir.path(), "sqlite:galley.db", UNREACHABLE, "is in use: stop the service");
    service.assert_works("after_the_refusal");
    assert!(service.end().0.success());
    assert_refused(dir.path(), "sqlite:galley.db", UNREACHABLE, "the database is not available");
    // The failed migration has released the file.
    assert!(galley(dir.path(), &["doctor"]).status.success());
}

#[test]
fn an_invalid_source_or_target_is_refused_with_the_expected_form() {
    let dir = tempfile::tempdir().unwrap();
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    assert_refused(dir.path(), UNREACHABLE, UNREACHABLE, "the source must be a SQLite store");
    assert_refused(
        dir.path(),
        "sqlite:galley.db",
        "sqlite:other.db",
        "postgres://USER@HOST/DATABASE",
    );
    assert_refused(
        dir.path(),
        "sqlite:missing.db",
        UNREACHABLE,
        "there is no store sqlite:missing.db",
    );
    assert_refused(dir.path(), "galley.db", UNREACHABLE, "sqlite:PATH or postgres://");
    assert!(!dir.path().join("missing.db").exists());
    std::fs::write(dir.path().join("text"), "not a database, only a line of text").unwrap();
    assert_refused(dir.path(), "sqlite:text", UNREACHABLE, "the source cannot be read");
}

#[test]
fn a_source_with_another_schema_version_is_refused_and_unchanged() {
    for (schema, expected) in [(6, "a build before 0.1.0"), (9_999, "newer than schema")] {
        let dir = tempfile::tempdir().unwrap();
        assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
        let store = Connection::open(dir.path().join("galley.db")).unwrap();
        store.pragma_update(None, "user_version", schema).unwrap();
        drop(store);
        assert_refused(dir.path(), "sqlite:galley.db", UNREACHABLE, expected);
        let store = Connection::open(dir.path().join("galley.db")).unwrap();
        let version: i64 =
            store.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, schema);
    }
}
