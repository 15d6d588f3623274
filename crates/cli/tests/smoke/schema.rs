//! Stores with a schema that this program does not read.

use std::process::Output;

use rusqlite::Connection;

use crate::service::{galley, galley_at};

#[track_caller]
fn assert_refused(output: &Output) {
    assert!(!output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let expected = "the file has schema 18, written by a build before 0.1.0, from which there is no \
                    upgrade: create a new store";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn every_command_refuses_a_store_of_a_build_before_the_first_release() {
    let dir = tempfile::tempdir().unwrap();
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    let path = dir.path().join("galley.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 18).unwrap();
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["doctor"],
        &["backup", "copy.db"],
        &["account", "list"],
        &["account", "create", "other"],
        &["phone", "list", "shop"],
        &["key", "list", "shop"],
        &["token", "create", "shop"],
        &["console", "shop"],
        &["template", "list", "shop"],
        &["review", "list", "shop"],
        &["events", "shop"],
        &["audit"],
        &["webhook", "list", "shop"],
        &["upstream", "status", "shop"],
        &["clock", "shop"],
        &["migrate", "--from", "sqlite:galley.db", "--to", "postgres://galley@127.0.0.1:1/none"],
    ] {
        assert_refused(&galley(dir.path(), arguments));
    }
    assert_refused(&galley_at("sqlite:new.db", dir.path(), &["restore", "galley.db"]));
    for name in ["copy.db", "new.db"] {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
    let version: i64 = Connection::open(&path)
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 18, "the store is unchanged");
}
