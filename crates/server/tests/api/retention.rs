//! Retention and the clock guard: what is deleted by age, and when.

use std::time::Duration;

use axum::http::Method;
use galley_server::{
    Clock as _,
    workers::{delete_expired_events, delete_expired_records, observe_clock},
};
use galley_store::{BeginUploadOutcome, NewUpload, RetentionCursor};

use super::app::{TestApp, hello, request};

const DAY: Duration = Duration::from_hours(24);
const EVENTS_KEPT: Duration = Duration::from_hours(30 * 24);

/// How many records, uploads and events were deleted.
type Deleted = (usize, usize, usize);

const NOTHING: Deleted = (0, 0, 0);
const EVERYTHING: Deleted = (1, 1, 1);

/// A service with an idempotency record, an unfinished upload and an event.
async fn start_filled() -> TestApp {
    let app = TestApp::start().await;
    assert_eq!(app.create_with_key(&hello("t"), "key-1").await.status, 201);
    let upload = NewUpload {
        account: app.store.accounts().await.unwrap()[0].id,
        id: "upload".to_owned(),
        handle: "handle".to_owned(),
        file_name: "a.png".to_owned(),
        file_type: "image/png".to_owned(),
        length: 9,
        quota: u64::MAX,
        at: app.clock.now(),
        emulated_at: None,
    };
    let begun = app.store.begin_upload(upload).await.unwrap();
    assert_eq!(begun, BeginUploadOutcome::Begun);
    assert_eq!(run_retention(&app).await, NOTHING, "nothing has expired");
    app
}

async fn run_retention(app: &TestApp) -> Deleted {
    let records = delete_expired_records(&app.app, RetentionCursor::default()).await;
    let events = delete_expired_events(&app.app, EVENTS_KEPT).await;
    (records.deleted_records, records.deleted_uploads, events)
}

async fn warnings(app: &TestApp) -> String {
    let ready = app.send(request(Method::GET, "/readyz", "", "")).await;
    assert_eq!(ready.status, 200, "{ready:?}");
    ready.json()["warnings"].to_string()
}

#[tokio::test]
async fn nothing_is_deleted_after_a_jump_of_the_clock_until_an_operator_confirms_it() {
    let app = start_filled().await;
    assert_eq!(warnings(&app).await, "null");
    app.clock.advance(45 * DAY);
    assert_eq!(run_retention(&app).await, NOTHING);
    let warned = warnings(&app).await;
    for part in [r#""name":"clock""#, "2026-09-21T", "2026-11-05T", "galley doctor --accept-clock"]
    {
        assert!(warned.contains(part), "{part} in {warned}");
    }
    app.store.accept_clock(app.clock.now()).await.unwrap();
    assert_eq!(run_retention(&app).await, EVERYTHING);
    assert_eq!(warnings(&app).await, "null");
}

#[tokio::test]
async fn a_jump_of_the_clock_that_lasts_for_a_day_is_trusted() {
    let app = start_filled().await;
    app.clock.advance(45 * DAY);
    assert_eq!(run_retention(&app).await, NOTHING);
    for _ in 0..24 * 60 - 1 {
        app.clock.advance(Duration::from_mins(1));
        assert_eq!(observe_clock(&app.app).await, None);
    }
    assert_eq!(run_retention(&app).await, NOTHING);
    app.clock.advance(Duration::from_mins(1));
    assert_eq!(run_retention(&app).await, EVERYTHING);
    assert_eq!(warnings(&app).await, "null");
}

#[tokio::test]
async fn rows_expire_while_the_clock_runs() {
    let app = start_filled().await;
    for _ in 0..31 * 24 {
        app.clock.advance(Duration::from_hours(1));
        assert!(observe_clock(&app.app).await.is_some());
    }
    assert_eq!(run_retention(&app).await, EVERYTHING);
}
