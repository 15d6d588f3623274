//! Responses when the store fails, hangs or panics, with faults injected into a real store.

use std::{sync::Arc, time::Duration};

use axum::http::Method;
use galley_server::Limits;
use galley_store::{
    ReadKind, Store, StoreError,
    testing::{Fault, Faults},
};

use super::app::{TOKEN, TestApp, hello, request};

/// Part of every cause. No response may contain it.
const CAUSE: &str = "the-cause-only-the-log-may-contain";

pub(super) async fn start(limits: Limits) -> (TestApp, Arc<Faults>) {
    let faults = Arc::<Faults>::default();
    let injected = Arc::clone(&faults);
    let wrap = |inner: Arc<Store>| -> Arc<Store> { Arc::new(inner.with_faults(injected)) };
    let app = TestApp::start_on(wrap, limits).await;
    (app, faults)
}

fn cause() -> galley_store::Cause {
    Arc::new(std::io::Error::other(CAUSE))
}

/// Every error of a store, with the expected status and problem.
const FAILURES: [(Fault, u16, &str); 6] = [
    (Fault::Fails(|| StoreError::Busy), 503, "busy"),
    (Fault::Fails(|| StoreError::TooManyReads(ReadKind::Search)), 503, "busy"),
    (Fault::Fails(|| StoreError::Full(cause())), 503, "storage-full"),
    (Fault::Fails(|| StoreError::Unavailable(cause())), 503, "unavailable"),
    (Fault::Fails(|| StoreError::OutcomeUnknown(cause())), 503, "outcome-unknown"),
    (Fault::Fails(|| StoreError::Failed(cause())), 500, "internal"),
];

#[tokio::test]
async fn each_failure_of_the_store_has_its_own_problem() {
    let (app, faults) = start(Limits::default()).await;
    let stored = app.create(&hello("stored")).await;
    let id = stored.json()["id"].as_str().unwrap().to_owned();
    let invalid = serde_json::json!({"name": ""});
    for (fault, status, slug) in FAILURES {
        for method in ["create_template", "template", "idempotency_record"] {
            faults.set(method, fault);
        }
        let responses = [
            app.create(&hello("rejected")).await,
            app.create_with_key(&hello("rejected"), "a-key").await,
            app.create_with_key(&invalid, "another-key").await,
            app.show(&id).await,
        ];
        for response in responses {
            response.problem(status, slug);
            assert_eq!(response.header("retry-after").is_some(), status == 503, "{response:?}");
            assert!(!response.text().contains(CAUSE), "{response:?}");
        }
        faults.clear();
    }
    assert_eq!(app.show(&id).await.status, 200);
    assert_eq!(app.create(&hello("rejected")).await.status, 201);
}

#[tokio::test]
async fn a_failed_credential_lookup_is_not_an_authentication_error() {
    for method in ["credential_epoch", "credential", "account", "phone_owner", "claim_phone"] {
        let (app, faults) = start(Limits::default()).await;
        faults.set(method, Fault::Fails(|| StoreError::Unavailable(cause())));
        let response = app.create(&hello("early")).await;
        response.problem(503, "unavailable");
        assert!(response.header("retry-after").is_some(), "{method}: {response:?}");
        faults.clear();
        assert_eq!(app.create(&hello("early")).await.status, 201, "{method}");
    }
}

#[tokio::test]
async fn the_graph_surface_reports_failures_as_transient_errors() {
    for (fault, status, slug) in FAILURES {
        let (app, faults) = start(Limits::default()).await;
        faults.set("credential", fault);
        let path = format!("/v23.0/1/message_templates?access_token={TOKEN}");
        let response = app.send(request(Method::GET, &path, "", "")).await;
        assert_eq!(response.status, status, "{response:?}");
        let error = &response.json()["error"];
        assert_eq!(error["code"], if status == 503 { 2 } else { 1 }, "{response:?}");
        assert_eq!(error["is_transient"], status == 503, "{response:?}");
        assert_eq!(error["galley_problem"], slug);
        assert_eq!(response.header("retry-after").is_some(), status == 503, "{response:?}");
        assert!(
            !response.text().contains(CAUSE) && !response.text().contains(TOKEN),
            "{response:?}"
        );
    }
}

#[tokio::test]
async fn a_store_that_never_responds_ends_at_the_deadline() {
    let request = Duration::from_millis(20);
    let (app, faults) = start(Limits { request, ..Limits::default() }).await;
    faults.set("create_template", Fault::Hangs);
    let response = app.create(&hello("slow")).await;
    response.problem(503, "deadline");
    assert!(response.header("retry-after").is_some(), "{response:?}");
}

#[tokio::test]
async fn cached_credentials_are_trusted_for_five_seconds_without_the_store() {
    let (app, faults) = start(Limits::default()).await;
    let created = app.create(&hello("stored")).await;
    let id = created.json()["id"].as_str().unwrap().to_owned();
    // The first request claims the phone number; the second one caches it.
    assert_eq!(app.show(&id).await.status, 200);
    for method in ["credential_epoch", "credential", "account", "phone_owner", "add_phone"] {
        faults.set(method, Fault::Fails(|| StoreError::Unavailable(cause())));
    }
    for step in [1_000, 1_000, 2_999] {
        app.clock.advance(Duration::from_millis(step));
        assert_eq!(app.show(&id).await.status, 200, "after {step} ms more");
    }
    app.clock.advance(Duration::from_millis(1));
    app.show(&id).await.problem(503, "unavailable");
    app.create(&hello("late")).await.problem(503, "unavailable");
    faults.clear();
    assert_eq!(app.show(&id).await.status, 200);
}

#[tokio::test]
async fn a_panic_becomes_a_500_and_the_service_continues() {
    let (app, faults) = start(Limits::default()).await;
    faults.set("create_template", Fault::Panics);
    let response = app.create(&hello("panicking")).await;
    response.problem(500, "internal");
    assert!(!response.text().contains(CAUSE), "{response:?}");
    faults.clear();
    assert_eq!(app.create(&hello("panicking")).await.status, 201);
    let log = app.into_log();
    assert!(log.lines().any(|line| line.contains("\"internal\"")), "{log}");
}
