//! Stores made from copies, and what is not taken for a copy or written over.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::service::{Launch, Service, document, galley, galley_json};

/// A copy of a store with one account and ten templates.
fn backup() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    (0..10).for_each(|number| service.is_well(&format!("kept_{number}")));
    let path = dir.path().join("copy.db");
    galley_json(dir.path(), &["backup", path.to_str().unwrap()]);
    assert!(service.end().0.success());
    (dir, path)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a restore that has to be refused; answers what was said.
#[track_caller]
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = galley(dir, &[&["restore"], arguments].concat());
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!complaint.contains("panicked"), "{complaint}");
    complaint
}

fn has(service: &Service, name: &str) -> bool {
    // A name that is taken is there.
    service.create(&document(name, "Again.")).status == 409
}

#[test]
fn a_restored_store_holds_what_the_copy_does_and_nothing_later() {
    use std::os::unix::fs::MetadataExt as _;
    let old = tempfile::tempdir().unwrap();
    let service = Launch::new(old.path()).start();
    service.is_well("before");
    let copy = old.path().join("copy.db");
    galley_json(old.path(), &["backup", copy.to_str().unwrap()]);
    service.is_well("after");
    assert!(service.end().0.success());
    let bytes = std::fs::read(&copy).unwrap();

    let new = tempfile::tempdir().unwrap();
    let told = galley_json(new.path(), &["restore", copy.to_str().unwrap()]);
    assert_eq!(
        (&told["accounts"], &told["templates"], &told["events"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert!(told["next"].as_str().unwrap().starts_with("galley doctor --store sqlite:"), "{told}");
    assert_eq!(names(new.path()), ["galley.db"]);
    let mode = new.path().join("galley.db").metadata().unwrap().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner may read it");
    assert!(std::fs::read(&copy).unwrap() == bytes, "the copy is as it was");

    assert!(galley(new.path(), &["doctor"]).status.success());
    let service = Launch::new(new.path()).start();
    assert!(has(&service, "before"));
    assert!(!has(&service, "after"));
}

#[test]
fn what_stood_in_the_log_of_a_copy_made_by_hand_is_restored_with_it() {
    let old = tempfile::tempdir().unwrap();
    let mut service = Launch::new(old.path()).start();
    service.is_well("in_the_log");
    service.kill();
    assert!(old.path().join("galley.db-wal").metadata().unwrap().len() > 0);

    let new = tempfile::tempdir().unwrap();
    let from = old.path().join("galley.db");
    let told = galley_json(new.path(), &["restore", "--from", from.to_str().unwrap()]);
    assert_eq!(told["templates"], 1);
}

#[test]
fn nothing_is_restored_over_a_store_or_beside_what_is_left_of_one() {
    let (_dir, copy) = backup();
    for left in
        ["", "-wal", "-shm", "-journal", "-search", "-search-wal", "-search-shm", "-search-journal"]
    {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("galley.db{left}");
        std::fs::write(dir.path().join(&name), "precious").unwrap();
        let complaint = refused(dir.path(), &[copy.to_str().unwrap()]);
        assert!(complaint.contains(&format!("{name} ")), "{complaint}");
        assert_eq!(names(dir.path()), [&*name]);
        assert_eq!(std::fs::read(dir.path().join(&name)).unwrap(), b"precious");
    }
}

#[test]
fn the_way_to_move_an_old_store_away_that_is_told_works() {
    let (_dir, copy) = backup();
    let dir = tempfile::Builder::new().prefix("it's an old one ").tempdir().unwrap();
    let mut service = Launch::new(dir.path()).start();
    service.is_well("of_the_old_one");
    service.kill();
    // It is there when the service is killed while it makes the file of the search.
    std::fs::write(dir.path().join("galley.db-search-journal"), "").unwrap();
    let complaint = refused(dir.path(), &[copy.to_str().unwrap()]);
    let (_, advice) = complaint.split_once("move it away: ").unwrap();
    let mut shell = std::process::Command::new("sh");
    assert!(shell.args(["-c", advice]).status().unwrap().success(), "{advice}");
    assert_eq!(names(dir.path()), ["galley.db.old"]);
    let told = galley_json(dir.path(), &["restore", copy.to_str().unwrap()]);
    assert_eq!(told["templates"], 10);
}

#[test]
fn what_is_no_copy_of_a_store_is_refused_and_no_store_is_made() {
    let (_dir, copy) = backup();
    let change = |path: &Path, statement: &str| {
        Connection::open(path).unwrap().execute_batch(statement).unwrap();
    };
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| other.path().join(name);
    let text = at("text");
    std::fs::write(&text, "not a database, and long enough to have been one").unwrap();
    let empty = at("empty");
    std::fs::write(&empty, "").unwrap();
    let foreign = at("foreign");
    change(&foreign, "CREATE TABLE theirs (x)");
    let newer = at("newer");
    std::fs::copy(&copy, &newer).unwrap();
    change(&newer, "PRAGMA user_version = 9999");
    let damaged = at("damaged");
    std::fs::copy(&copy, &damaged).unwrap();
    change(
        &damaged,
        "PRAGMA writable_schema = on; \
        UPDATE sqlite_schema SET sql = replace(sql, 'account_id, shelf, id', 'account_id, id, shelf') \
        WHERE name = 'template_on_shelf'",
    );
    for (path, told) in [
        (text, "not a database"),
        (empty, "not a galley store"),
        (foreign, "not a galley store"),
        (newer, "schema 9999, newer"),
        (damaged, "is damaged"),
        (at("missing"), "there is no backup"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let complaint = refused(dir.path(), &[path.to_str().unwrap()]);
        assert!(complaint.contains(told), "{}: {complaint}", path.display());
        assert_eq!(names(dir.path()), [""; 0], "{}", path.display());
    }
}

#[test]
fn what_a_killed_restore_has_left_is_no_store_and_in_nobodys_way() {
    let (_dir, copy) = backup();
    let dir = tempfile::tempdir().unwrap();
    let half = std::fs::read(&copy).unwrap();
    std::fs::write(dir.path().join("galley.db.restoring"), &half[..half.len() / 2]).unwrap();
    assert!(!galley(dir.path(), &["doctor"]).status.success(), "there is no store yet");
    let told = galley_json(dir.path(), &["restore", copy.to_str().unwrap()]);
    assert_eq!(told["templates"], 10);
    assert_eq!(names(dir.path()), ["galley.db"]);
}

#[test]
fn a_copy_of_an_older_schema_is_restored_as_it_is_and_the_service_is_next() {
    let (_dir, copy) = backup();
    let older = "DROP INDEX upload_unused; ALTER TABLE upload DROP COLUMN used_at; \
        ALTER TABLE upload DROP COLUMN finished_at; ALTER TABLE account DROP COLUMN media_bytes; \
        PRAGMA user_version = 6";
    Connection::open(&copy).unwrap().execute_batch(older).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let told = galley_json(dir.path(), &["restore", copy.to_str().unwrap()]);
    assert!(told["next"].as_str().unwrap().starts_with("galley serve --store"), "{told}");
    assert!(has(&Launch::new(dir.path()).start(), "kept_3"));
}

#[test]
fn a_restore_into_postgresql_is_told_the_way_there() {
    let (dir, copy) = backup();
    let mut galley = crate::service::command(crate::service::GALLEY);
    let store = ["--store", "postgres://nobody@127.0.0.1:1/none"];
    let output =
        galley.current_dir(dir.path()).arg("restore").arg(&copy).args(store).output().unwrap();
    assert!(!output.status.success());
    let complaint = String::from_utf8(output.stderr).unwrap();
    let way = format!("galley migrate --from sqlite:{} --to postgres://", copy.display());
    assert!(complaint.contains(&way) && complaint.contains("pg_restore"), "{complaint}");
}
