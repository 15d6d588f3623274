//! Files that earlier releases have filled are opened by the release of today, which goes on with
//! everything in them.

use crate::{
    earlier::Earlier,
    service::{GALLEY, Launch, command, galley_json},
};

#[track_caller]
fn goes_on(release: &str) {
    let dir = tempfile::tempdir().unwrap();
    let earlier = Earlier::release(release);
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    file.execute_batch(&earlier.statements).unwrap();
    // As if it had been filled just now: such records are kept for a day.
    file.execute("UPDATE idempotency SET created_at = unixepoch() * 1000", []).unwrap();
    drop(file);
    let service = earlier.goes_on(Launch::with(command(GALLEY), dir.path()), dir.path());
    let findings = galley_json(dir.path(), &["doctor"]);
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] == "good"), "{findings}");
    assert_eq!(service.end().0.code(), Some(0));
}

#[test]
fn a_file_with_the_first_schema_is_brought_up_to_date_and_goes_on() {
    goes_on("sqlite-schema-1");
}

#[test]
fn a_file_with_media_webhooks_and_reviews_goes_on() {
    goes_on("sqlite-schema-7");
}
