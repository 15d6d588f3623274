//! `galley backup` writes aside and renames: nothing blocks it, exposes it or is overwritten by it.

use std::{
    fs::{File, Permissions, set_permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    process::Command,
};

use rusqlite::Connection;

use crate::service::{GALLEY, Launch, galley, galley_json, store};

/// A store with one template, whose service has stopped.
fn create_store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    service.assert_works("kept");
    assert!(service.end().0.success());
    dir
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

/// The names of the files of the backup `copy.db`.
fn copies(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
    let names = names.map(|it| it.into_string().unwrap());
    names.filter(|it| it.starts_with("copy.db")).collect()
}

/// Runs a backup to `copy.db`, asserts that it is refused and returns standard error.
#[track_caller]
fn refused(dir: &Path) -> String {
    let output = galley(dir, &["backup", "copy.db"]);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn count_templates(path: &Path) -> u32 {
    let copy = Connection::open(path).unwrap();
    copy.query_row("SELECT count(*) FROM template", [], |row| row.get(0)).unwrap()
}

#[test]
fn the_remains_of_a_killed_backup_do_not_block_the_next_one() {
    let dir = create_store();
    for suffix in ["", "-journal"] {
        let path = dir.path().join(format!("copy.db.galley-partial{suffix}"));
        std::fs::write(&path, vec![7; 10_000]).unwrap();
        set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    }
    galley_json(dir.path(), &["backup", "copy.db"]);
    let copy = dir.path().join("copy.db");
    assert_eq!((copies(dir.path()), mode(&copy)), (vec!["copy.db".to_owned()], 0o600));
    assert_eq!(count_templates(&copy), 1);
}

#[test]
fn a_second_backup_to_the_same_path_is_refused_while_the_first_one_runs() {
    let dir = create_store();
    let partial = dir.path().join("copy.db.galley-partial");
    let running = File::create(&partial).unwrap();
    running.lock().unwrap();
    let error = refused(dir.path());
    assert!(error.contains("another process is writing"), "{error}");
    assert_eq!(copies(dir.path()), ["copy.db.galley-partial"], "the first backup continues");
    drop(running);
    galley_json(dir.path(), &["backup", "copy.db"]);
    assert_eq!(copies(dir.path()), ["copy.db"]);
}

#[test]
fn only_the_owner_can_read_a_backup_whatever_the_umask() {
    let dir = create_store();
    let script = format!("umask 0; exec {GALLEY} backup copy.db --store {}", store(dir.path()));
    let status = Command::new("sh").current_dir(dir.path()).args(["-c", &script]).status().unwrap();
    assert!(status.success());
    assert_eq!(mode(&dir.path().join("copy.db")), 0o600);
}

#[test]
fn a_backup_does_not_follow_a_symbolic_link() {
    let dir = create_store();
    let elsewhere = dir.path().join("elsewhere");
    let link = dir.path().join("copy.db");
    symlink(&elsewhere, &link).unwrap();
    let error = refused(dir.path());
    assert!(error.contains("already exists"), "{error}");
    assert!(!elsewhere.exists(), "nothing was created through the link");
    assert_eq!(std::fs::read_link(&link).unwrap(), elsewhere);
    assert_eq!(copies(dir.path()), ["copy.db"], "no partial file is left");
}

#[test]
fn a_backup_is_not_created_beside_the_journal_of_another_database() {
    let dir = create_store();
    std::fs::write(dir.path().join("copy.db-journal"), "precious").unwrap();
    let error = refused(dir.path());
    assert!(error.contains("copy.db-journal already exists"), "{error}");
    assert_eq!(copies(dir.path()), ["copy.db-journal"]);
}

#[test]
fn a_store_that_other_users_can_read_is_reported() {
    let dir = create_store();
    let path = dir.path().join("galley.db");
    set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let advice = format!("run chmod 600 {}", path.display());
    let output = galley(dir.path(), &["doctor", "--json"]);
    assert!(!output.status.success());
    let seen = String::from_utf8(output.stdout).unwrap();
    assert!(seen.contains("permissions") && seen.contains(&advice), "{seen}");
    let service = Launch::new(dir.path()).start();
    assert!(service.log.text().contains(&advice), "{}", service.log.text());
    drop(service);
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        set_permissions(entry.unwrap().path(), Permissions::from_mode(0o600)).unwrap();
    }
    assert!(galley(dir.path(), &["doctor"]).status.success());
}

#[test]
fn a_backup_of_postgresql_is_refused_in_one_sentence_before_anything_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let store = "postgres://galley@127.0.0.1:1/galley";
    let mut command = Command::new(GALLEY);
    command.args(["backup", "copy.db", "--store", store]).current_dir(dir.path());
    // Settings of the environment would be warned about.
    let output = command.env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap().trim_end(),
        "galley: `galley backup` copies SQLite stores only: back up PostgreSQL with pg_dump or pg_basebackup"
    );
}
