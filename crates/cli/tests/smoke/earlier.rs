//! The current release opens SQLite files of earlier releases and works with their content.

use std::os::unix::fs::PermissionsExt as _;

use crate::{
    earlier::Earlier,
    service::{GALLEY, Launch, command, galley_json},
};

#[track_caller]
fn upgrade(release: &str) {
    let dir = tempfile::tempdir().unwrap();
    let earlier = Earlier::release(release);
    let path = dir.path().join("galley.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    // As every release creates it.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    file.execute_batch(&earlier.statements).unwrap();
    // Idempotency records expire after a day: make them look recent.
    file.execute("UPDATE idempotency SET created_at = unixepoch() * 1000", []).unwrap();
    drop(file);
    let service = earlier.upgrade(Launch::with(command(GALLEY), dir.path()), dir.path());
    let findings = galley_json(dir.path(), &["doctor"]);
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] == "good"), "{findings}");
    assert_eq!(service.end().0.code(), Some(0));
}

#[test]
fn a_file_with_the_first_schema_is_migrated_and_works() {
    upgrade("sqlite-schema-1");
}

#[test]
fn a_file_with_media_webhooks_and_reviews_is_migrated_and_works() {
    upgrade("sqlite-schema-7");
}
