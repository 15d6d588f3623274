//! Migrations from SQLite to PostgreSQL, complete and interrupted.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::limited_proxy::{AtLimit, LimitedProxy};
use crate::{
    http::TIMEOUT,
    postgres::Database,
    service::{GALLEY, command, galley},
};

/// Runs `galley` without adding a `--store`.
pub(super) fn run(dir: &Path, arguments: &[&str]) -> Output {
    command(GALLEY).current_dir(dir).args(arguments).output().unwrap()
}

fn migrate(dir: &Path, to: &str) -> Output {
    run(dir, &["migrate", "--from", "sqlite:galley.db", "--to", to, "--json"])
}

/// Migrates the store in `dir`, which must succeed. Returns the compared tables.
#[track_caller]
pub(super) fn migrate_all(dir: &Path, to: &str) -> Vec<Value> {
    let output = migrate(dir, to);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(output: &Output, expected: &str) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains(expected), "{expected} expected: {message}");
    message
}

fn change(dir: &Path, statements: &str) {
    let path = dir.join("galley.db");
    Connection::open(&path).unwrap().execute_batch(statements).unwrap();
    galley_store::sqlite::recompute_checksums(&path).unwrap();
}

/// A store with many rows in many tables. Only the migration has to understand them.
fn large_store() -> TempDir {
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
        "template (id, account_id, unique_key, name, language, category, allow_category_change, status, \
         version, revision, created_at, updated_at, actor, content) \
         SELECT n, (SELECT id FROM account), CASE WHEN n % 10 THEN randomblob(16) END, 'name_' || n, \
         'en_US', 'UTILITY', n % 2, 'APPROVED', 1, 1, n, n, 0, '{\"components\":[\"ü ' || n || '\"]}' FROM n",
    );
    rows(
        12_000,
        "former_version (template_id, version, category, status, created_at, actor, content) \
         SELECT n, 1, 'UTILITY', 'APPROVED', n, 0, '{}' FROM n",
    );
    rows(
        9_000,
        "idempotency (template_id, key, payload, category, status, created_at) \
         SELECT n, randomblob(16), randomblob(8), 1, 2, n FROM n",
    );
    rows(
        40,
        "upload (number, account_id, id, handle, file_name, file_type, length, received, created_at) \
         SELECT n, (SELECT id FROM account), 'u' || n, 'h' || n, 'a.png', 'image/png', 262144, 262144, n \
         FROM n",
    );
    rows(40, "upload_chunk (upload, place, bytes) SELECT n, 0, randomblob(262144) FROM n");
    rows(7, "former_webhook SELECT n FROM n");
    rows(50, "rate_counter SELECT n, n % 3, n, n FROM n");
    rows(
        11_000,
        "delivery (webhook_id, seq, template_id, status, attempts) SELECT n % 7, n, 1, 'done', 1 FROM n",
    );
    dir
}

fn number(database: &Database, query: &str) -> i64 {
    database.sql(query)[0].parse().unwrap()
}

/// The number of rows copied by an unfinished migration.
fn rows_copied(database: &Database) -> Option<i64> {
    let is_unfinished = "SELECT count(to_regclass('galley_migration_table'))";
    let rows = "SELECT coalesce(sum(rows), 0)::bigint FROM galley_migration_table";
    (number(database, is_unfinished) == 1).then(|| number(database, rows))
}

#[test]
fn after_a_lost_connection_the_same_command_continues_the_migration() {
    let (dir, database) = (large_store(), Database::fresh());
    let mut before = 0;
    for bytes in [300, 3_000, 30_000, 700_000, 1_200_000, 2_000_000, 3_000_000, 9_000_000] {
        let proxy = LimitedProxy::to(&database, bytes, AtLimit::Close);
        let output = migrate(dir.path(), &proxy.url);
        refused(&output, "run the same command again to continue");
        proxy.limit_reached.recv_timeout(TIMEOUT).unwrap();
        let now = rows_copied(&database).unwrap_or_default();
        assert!(now >= before, "{now} rows after {bytes} bytes, but {before} before");
        before = now;
    }
    assert!(before > 40_000, "only {before} rows were copied before the uploads");
    let tables = migrate_all(dir.path(), &database.address());
    assert!(tables.iter().all(|table| table["verdict"] == "same"), "{tables:?}");
    assert_eq!(rows_copied(&database), None, "the migration is complete");
    assert_eq!(number(&database, "SELECT count(*) FROM template"), 23_000);
}

#[test]
fn after_a_kill_the_target_cannot_be_opened_and_the_migration_continues() {
    let (dir, database) = (large_store(), Database::fresh());
    for bytes in [1_000_000, 1_500_000, 5_000_000] {
        let proxy = LimitedProxy::to(&database, bytes, AtLimit::Stall);
        let mut galley = command(GALLEY);
        galley.args(["migrate", "--from", "sqlite:galley.db", "--to", &proxy.url]);
        galley.current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = galley.spawn().unwrap();
        proxy.limit_reached.recv_timeout(TIMEOUT).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(rows_copied(&database).is_some(), "the migration is unfinished");
    }
    let copied = rows_copied(&database).unwrap();
    assert!(copied > 5_000, "{copied} rows were copied");
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
    assert_eq!(rows_copied(&database), Some(copied), "the refused commands changed the target");
    migrate_all(dir.path(), &database.address());
    assert_eq!(rows_copied(&database), None);
    assert!(run(dir.path(), &["account", "list", "--store", &database.address()]).status.success());
}

/// Migrates part of a large store.
fn migrate_partly(dir: &Path, database: &Database) {
    let proxy = LimitedProxy::to(database, 6_000_000, AtLimit::Close);
    refused(&migrate(dir, &proxy.url), "run the same command again to continue");
    assert!(number(database, "SELECT count(*) FROM template") > 10_000);
}

#[test]
fn a_changed_row_in_the_target_is_reported_and_the_target_cannot_be_opened() {
    let (dir, database) = (large_store(), Database::fresh());
    migrate_partly(dir.path(), &database);
    let set = |value: &str| {
        database.sql(&format!("UPDATE template SET status = '{value}' WHERE id = 4711"));
    };
    set("REJECTED");
    let output = migrate(dir.path(), &database.address());
    let message = refused(&output, "source and target differ in template:");
    assert!(message.contains("stays marked as unfinished"), "{message}");
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let different: Vec<&Value> = tables.iter().filter(|table| table["verdict"] != "same").collect();
    assert_eq!(different.len(), 1, "{tables:?}");
    assert_eq!(different[0]["source_rows"], different[0]["target_rows"]);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", &database.address()];
    refused(&run(dir.path(), &serve), "filled by `galley migrate`");
    set("APPROVED");
    migrate_all(dir.path(), &database.address());
}

#[test]
fn a_source_that_changed_between_two_runs_is_refused() {
    for statement in [
        "UPDATE account SET last_seq = last_seq + 1",
        "UPDATE credential_epoch SET epoch = epoch + 1",
        "DELETE FROM idempotency WHERE created_at = 1",
    ] {
        let (dir, database) = (large_store(), Database::fresh());
        migrate_partly(dir.path(), &database);
        change(dir.path(), statement);
        refused(&migrate(dir.path(), &database.address()), "of this store before it changed");
    }
}

#[test]
fn a_target_with_data_is_refused_and_stays_unchanged() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    let store = ["--store", &database.address()];
    let created = run(dir.path(), &[&["account", "create", "theirs"][..], &store].concat());
    assert!(created.status.success(), "{created:?}");
    refused(&migrate(dir.path(), &database.address()), "the target is not empty");
    assert_eq!(rows_copied(&database), None);
    let accounts = run(dir.path(), &[&["account", "list"][..], &store].concat());
    let accounts = String::from_utf8(accounts.stdout).unwrap();
    assert!(accounts.contains("theirs") && !accounts.contains("shop"), "{accounts}");
}

#[test]
fn text_that_postgresql_cannot_store_is_reported_by_row_and_replaced_in_file_names() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    change(
        dir.path(),
        "INSERT INTO upload (number, account_id, id, handle, file_name, file_type, length, created_at) \
         SELECT 1, id, 'u', 'h', 'a' || char(0) || 'b.png', 'image/png', 9, 1 FROM account; \
         INSERT INTO event (account_id, seq, type, template_id, version, at, actor, category, status, \
         reason, webhook_id, origin) VALUES (7, 12, 'template.created', 5, 1, 0, 7, 'UTILITY', 'APPROVED', \
         'no' || char(0), NULL, NULL)",
    );
    let message = refused(&migrate(dir.path(), &database.address()), "U+0000");
    let location = "column reason of table event, row account_id = 7, seq = 12";
    assert!(message.contains(location), "{message}");
    // The fix of the row does not change the fingerprint, so the migration continues.
    change(dir.path(), "UPDATE event SET reason = 'no'");
    migrate_all(dir.path(), &database.address());
    let replaced = "SELECT count(*) FROM upload WHERE file_name = 'a_b.png'";
    assert_eq!(number(&database, replaced), 1, "one character replaces U+0000");
}
