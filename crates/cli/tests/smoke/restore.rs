//! `galley restore`: restores backups, and refuses invalid backups and existing stores.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::service::{Launch, Service, document, galley, galley_json};

/// A backup of a store with one account and ten templates.
fn backup() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    (0..10).for_each(|number| service.assert_works(&format!("kept_{number}")));
    let path = dir.path().join("copy.db");
    galley_json(dir.path(), &["backup", path.to_str().unwrap()]);
    assert!(service.end().0.success());
    (dir, path)
}

fn file_names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a restore, asserts that it is refused and returns standard error.
#[track_caller]
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = galley(dir, &[&["restore"], arguments].concat());
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

fn has(service: &Service, name: &str) -> bool {
    // A conflict means that the template exists.
    service.create(&document(name, "Again.")).status == 409
}

#[test]
fn a_restored_store_contains_the_data_of_the_backup_and_nothing_newer() {
    use std::os::unix::fs::MetadataExt as _;
    let old = tempfile::tempdir().unwrap();
    let service = Launch::new(old.path()).start();
    service.assert_works("before");
    let backup_path = old.path().join("copy.db");
    galley_json(old.path(), &["backup", backup_path.to_str().unwrap()]);
    service.assert_works("after");
    assert!(service.end().0.success());
    let bytes = std::fs::read(&backup_path).unwrap();

    let new = tempfile::tempdir().unwrap();
    let report = galley_json(new.path(), &["restore", backup_path.to_str().unwrap()]);
    assert_eq!(
        (&report["accounts"], &report["templates"], &report["events"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert!(
        report["next"].as_str().unwrap().starts_with("galley doctor --store sqlite:"),
        "{report}"
    );
    assert_eq!(file_names(new.path()), ["galley.db"]);
    let mode = new.path().join("galley.db").metadata().unwrap().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner may read it");
    assert!(std::fs::read(&backup_path).unwrap() == bytes, "the backup is unchanged");

    assert!(galley(new.path(), &["doctor"]).status.success());
    let service = Launch::new(new.path()).start();
    assert!(has(&service, "before"));
    assert!(!has(&service, "after"));
}

#[test]
fn the_wal_of_a_manual_copy_is_restored_too() {
    let old = tempfile::tempdir().unwrap();
    let mut service = Launch::new(old.path()).start();
    service.assert_works("in_the_wal");
    service.kill();
    assert!(old.path().join("galley.db-wal").metadata().unwrap().len() > 0);

    let new = tempfile::tempdir().unwrap();
    let from = old.path().join("galley.db");
    let report = galley_json(new.path(), &["restore", "--from", from.to_str().unwrap()]);
    assert_eq!(report["templates"], 1);
}

#[test]
fn restore_refuses_to_overwrite_a_store_or_its_leftover_files() {
    let (_dir, backup_path) = backup();
    for suffix in
        ["", "-wal", "-shm", "-journal", "-search", "-search-wal", "-search-shm", "-search-journal"]
    {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("galley.db{suffix}");
        std::fs::write(dir.path().join(&name), "precious").unwrap();
        let stderr = refused(dir.path(), &[backup_path.to_str().unwrap()]);
        assert!(stderr.contains(&format!("{name} ")), "{stderr}");
        assert_eq!(file_names(dir.path()), [&*name]);
        assert_eq!(std::fs::read(dir.path().join(&name)).unwrap(), b"precious");
    }
}

#[test]
fn the_suggested_command_moves_an_old_store_away() {
    let (_dir, backup_path) = backup();
    let dir = tempfile::Builder::new().prefix("it's an old store ").tempdir().unwrap();
    let mut service = Launch::new(dir.path()).start();
    service.assert_works("in_the_old_store");
    service.kill();
    // This file remains if the service is killed while it creates the search index.
    std::fs::write(dir.path().join("galley.db-search-journal"), "").unwrap();
    let stderr = refused(dir.path(), &[backup_path.to_str().unwrap()]);
    let (_, advice) = stderr.split_once("move them away: ").unwrap();
    let mut shell = std::process::Command::new("sh");
    assert!(shell.args(["-c", advice]).status().unwrap().success(), "{advice}");
    assert_eq!(file_names(dir.path()), ["galley.db.old"]);
    let report = galley_json(dir.path(), &["restore", backup_path.to_str().unwrap()]);
    assert_eq!(report["templates"], 10);
}

#[test]
fn an_invalid_backup_is_refused_and_creates_no_store() {
    let (_dir, backup_path) = backup();
    let run_sql = |path: &Path, statement: &str| {
        Connection::open(path).unwrap().execute_batch(statement).unwrap();
    };
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| other.path().join(name);
    let text = at("text");
    std::fs::write(&text, "not a database, only a text with a few more words").unwrap();
    let empty = at("empty");
    std::fs::write(&empty, "").unwrap();
    let other_schema = at("other_schema");
    run_sql(&other_schema, "CREATE TABLE other (x)");
    let newer = at("newer");
    std::fs::copy(&backup_path, &newer).unwrap();
    run_sql(&newer, "PRAGMA user_version = 9999");
    let earlier = at("earlier");
    std::fs::copy(&backup_path, &earlier).unwrap();
    run_sql(&earlier, "PRAGMA user_version = 18");
    let damaged = at("damaged");
    std::fs::copy(&backup_path, &damaged).unwrap();
    run_sql(
        &damaged,
        "PRAGMA writable_schema = on; \
        UPDATE sqlite_schema SET sql = replace(sql, 'account_id, bucket, id', 'account_id, id, bucket') \
        WHERE name = 'template_in_bucket'",
    );
    for (path, expected) in [
        (text, "not a database"),
        (empty, "not a galley store"),
        (other_schema, "not a galley store"),
        (newer, "schema 9999, newer"),
        (earlier, "schema 18, written by a build before 0.1.0"),
        (damaged, "is damaged"),
        (at("missing"), "there is no backup"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let stderr = refused(dir.path(), &[path.to_str().unwrap()]);
        assert!(stderr.contains(expected), "{}: {stderr}", path.display());
        assert_eq!(file_names(dir.path()), [""; 0], "{}", path.display());
    }
}

#[test]
fn a_leftover_file_of_a_killed_restore_does_not_block_the_next() {
    let (_dir, backup_path) = backup();
    let dir = tempfile::tempdir().unwrap();
    let half = std::fs::read(&backup_path).unwrap();
    std::fs::write(dir.path().join("galley.db.restoring"), &half[..half.len() / 2]).unwrap();
    assert!(!galley(dir.path(), &["doctor"]).status.success(), "there is no store yet");
    let report = galley_json(dir.path(), &["restore", backup_path.to_str().unwrap()]);
    assert_eq!(report["templates"], 10);
    assert_eq!(file_names(dir.path()), ["galley.db"]);
}

#[test]
fn a_restore_into_postgresql_is_refused_with_the_commands_to_use() {
    let (dir, backup_path) = backup();
    let mut galley = crate::service::command(crate::service::GALLEY);
    let store = ["--store", "postgres://galley@127.0.0.1:1/none"];
    let output = galley
        .current_dir(dir.path())
        .arg("restore")
        .arg(&backup_path)
        .args(store)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let suggestion =
        format!("galley migrate --from sqlite:{} --to postgres://", backup_path.display());
    assert!(stderr.contains(&suggestion) && stderr.contains("pg_restore"), "{stderr}");
}
