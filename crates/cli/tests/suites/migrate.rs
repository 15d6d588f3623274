//! Stores that are moved from SQLite to PostgreSQL, whole and in spite of whatever happens on the
//! way.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::way::{Then, Way};
use crate::{
    http::BOUND,
    postgres::Database,
    service::{GALLEY, command, galley},
};

/// Runs `galley` where no `--store` is added.
pub(super) fn run(dir: &Path, arguments: &[&str]) -> Output {
    command(GALLEY).current_dir(dir).args(arguments).output().unwrap()
}

fn migrate(dir: &Path, to: &str) -> Output {
    run(dir, &["migrate", "--from", "sqlite:galley.db", "--to", to, "--json"])
}

/// Moves what is in `dir`, which has to succeed; answers the tables that were compared.
#[track_caller]
pub(super) fn moved(dir: &Path, to: &str) -> Vec<Value> {
    let output = migrate(dir, to);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(output: &Output, told: &str) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(complaint.contains(told), "{told} expected: {complaint}");
    complaint
}

fn change(dir: &Path, statements: &str) {
    Connection::open(dir.join("galley.db")).unwrap().execute_batch(statements).unwrap();
}

/// A store with many rows in many tables, as only a move has to understand them.
fn large() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    let rows = |count: u32, insert: &str| {
        let all = format!(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) \
             INSERT INTO {insert}"
        );
        change(dir.path(), &all);
    };
    rows(
        23_000,
        "template (id, account_id, claim, name, language, category, allow_category_change, status, \
         version, revision, created_at, updated_at, content) \
         SELECT n, (SELECT id FROM account), CASE WHEN n % 10 THEN randomblob(16) END, 'name_' || n, \
         'en_US', 'UTILITY', n % 2, 'APPROVED', 1, 1, n, n, '{\"components\":[\"ü ' || n || '\"]}' FROM n",
    );
    rows(
        12_000,
        "former_version (template_id, version, category, status, created_at, actor, content) \
         SELECT n, 1, 'UTILITY', 'APPROVED', n, 0, '{}' FROM n",
    );
    rows(9_000, "idempotency SELECT randomblob(16), randomblob(8), n, 1, 2, n FROM n");
    rows(
        40,
        "upload (number, account_id, id, handle, file_name, file_type, length, received, created_at) \
         SELECT n, (SELECT id FROM account), 'u' || n, 'h' || n, 'a.png', 'image/png', 262144, 262144, n \
         FROM n",
    );
    rows(40, "upload_chunk SELECT n, 0, randomblob(262144) FROM n");
    rows(7, "former_webhook SELECT n FROM n");
    rows(50, "counted SELECT n, n % 3, n, n FROM n");
    rows(
        11_000,
        "delivery (webhook_id, seq, template_id, status, attempts) SELECT n % 7, n, 1, 'done', 1 FROM n",
    );
    dir
}

fn number(database: &Database, query: &str) -> i64 {
    database.sql(query)[0].parse().unwrap()
}

/// How many rows a move has brought, if one is under way.
fn rows_moved(database: &Database) -> Option<i64> {
    let under_way = "SELECT count(to_regclass('galley_migration_table'))";
    let rows = "SELECT coalesce(sum(rows), 0)::bigint FROM galley_migration_table";
    (number(database, under_way) == 1).then(|| number(database, rows))
}

#[test]
fn wherever_the_connection_breaks_the_same_command_goes_on_where_it_was() {
    let (dir, database) = (large(), Database::fresh());
    let mut before = 0;
    for bytes in [300, 3_000, 30_000, 700_000, 1_200_000, 2_000_000, 3_000_000, 9_000_000] {
        let way = Way::to(&database, bytes, Then::Breaks);
        let output = migrate(dir.path(), &way.url);
        refused(&output, "run the same command again to continue");
        way.spent.recv_timeout(BOUND).unwrap();
        let now = rows_moved(&database).unwrap_or_default();
        assert!(now >= before, "{now} rows after {bytes} bytes, and {before} before");
        before = now;
    }
    assert!(before > 40_000, "it has come as far as the files: {before}");
    let tables = moved(dir.path(), &database.address());
    assert!(tables.iter().all(|table| table["verdict"] == "same"), "{tables:?}");
    assert_eq!(rows_moved(&database), None, "the mark is gone");
    assert_eq!(number(&database, "SELECT count(*) FROM template"), 23_000);
}

#[test]
fn killed_in_the_middle_it_is_no_store_and_goes_on_where_it_was() {
    let (dir, database) = (large(), Database::fresh());
    for bytes in [1_000_000, 1_500_000, 5_000_000] {
        let way = Way::to(&database, bytes, Then::Stalls);
        let mut galley = command(GALLEY);
        galley.args(["migrate", "--from", "sqlite:galley.db", "--to", &way.url]);
        galley.current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = galley.spawn().unwrap();
        way.spent.recv_timeout(BOUND).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(rows_moved(&database).is_some(), "it has begun, and has not ended");
    }
    let half = rows_moved(&database).unwrap();
    assert!(half > 5_000, "{half}");
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["account", "list"],
        &["account", "create", "other"],
        &["doctor"],
        &["template", "list", "shop"],
    ] {
        let store = ["--store", &database.address()];
        refused(&run(dir.path(), &[arguments, &store].concat()), "filled by `galley migrate`");
    }
    assert_eq!(rows_moved(&database), Some(half), "nobody has touched it");
    moved(dir.path(), &database.address());
    assert_eq!(rows_moved(&database), None);
    assert!(run(dir.path(), &["account", "list", "--store", &database.address()]).status.success());
}

/// Moves part of a large store.
fn half(dir: &Path, database: &Database) {
    let way = Way::to(database, 6_000_000, Then::Breaks);
    refused(&migrate(dir, &way.url), "run the same command again to continue");
    assert!(number(database, "SELECT count(*) FROM template") > 10_000);
}

#[test]
fn a_row_that_was_changed_in_the_target_is_found_and_the_target_stays_shut() {
    let (dir, database) = (large(), Database::fresh());
    half(dir.path(), &database);
    let set = |value: &str| {
        database.sql(&format!("UPDATE template SET status = '{value}' WHERE id = 4711"));
    };
    set("REJECTED");
    let output = migrate(dir.path(), &database.address());
    let complaint = refused(&output, "both sides differ in template:");
    assert!(complaint.contains("stays marked as unfinished"), "{complaint}");
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let different: Vec<&Value> = tables.iter().filter(|table| table["verdict"] != "same").collect();
    assert_eq!(different.len(), 1, "{tables:?}");
    assert_eq!(different[0]["source_rows"], different[0]["target_rows"]);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", &database.address()];
    refused(&run(dir.path(), &serve), "filled by `galley migrate`");
    set("APPROVED");
    moved(dir.path(), &database.address());
}

#[test]
fn a_source_that_was_changed_between_two_runs_is_refused() {
    for statement in [
        "UPDATE account SET last_seq = last_seq + 1",
        "UPDATE credential_epoch SET epoch = epoch + 1",
        "DELETE FROM idempotency WHERE created_at = 1",
    ] {
        let (dir, database) = (large(), Database::fresh());
        half(dir.path(), &database);
        change(dir.path(), statement);
        refused(&migrate(dir.path(), &database.address()), "of this store before it changed");
    }
}

#[test]
fn a_target_that_holds_anything_is_refused_and_left_as_it_is() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    let store = ["--store", &database.address()];
    let made = run(dir.path(), &[&["account", "create", "theirs"][..], &store].concat());
    assert!(made.status.success(), "{made:?}");
    refused(&migrate(dir.path(), &database.address()), "the target is not empty");
    assert_eq!(rows_moved(&database), None);
    let accounts = run(dir.path(), &[&["account", "list"][..], &store].concat());
    let accounts = String::from_utf8(accounts.stdout).unwrap();
    assert!(accounts.contains("theirs") && !accounts.contains("shop"), "{accounts}");
}

#[test]
fn what_postgresql_cannot_keep_is_told_by_its_row_or_is_a_name_for_people() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    change(
        dir.path(),
        "INSERT INTO upload (number, account_id, id, handle, file_name, file_type, length, created_at) \
         SELECT 1, id, 'u', 'h', 'a' || char(0) || 'b.png', 'image/png', 9, 1 FROM account; \
         INSERT INTO event VALUES (7, 12, 'template.created', 5, 1, 0, 7, 'UTILITY', 'APPROVED', \
         'no' || char(0), NULL, NULL)",
    );
    let complaint = refused(&migrate(dir.path(), &database.address()), "U+0000");
    let place = "column reason of table event, row account_id = 7, seq = 12";
    assert!(complaint.contains(place), "{complaint}");
    // What is wrong is mended, and the fingerprint has not changed.
    change(dir.path(), "UPDATE event SET reason = 'no'");
    moved(dir.path(), &database.address());
    let kept = "SELECT count(*) FROM upload WHERE file_name = 'a_b.png'";
    assert_eq!(number(&database, kept), 1, "as long as it was");
}
