//! Calls that wait when their credentials become invalid.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::Method,
};
use galley_server::{Clock as _, Limits};
use galley_store::{
    AddCredentialOutcome, Author, CredentialId, CredentialKind, NewCredential, testing::Fault,
};
use hyper::body::Frame;
use tokio::{sync::Notify, time::Instant};

use super::{
    app::{PHONE, TestApp, credential, path, request},
    failures,
};

/// The longest time until a call with invalid credentials ends.
const REVOCATION_WINDOW: Duration = Duration::from_secs(5);

/// The credentials of the waiting call. They expire after a minute.
const SECRET: &str = "leaked";

/// How credentials become invalid, with the response to expect.
const CASES: [(Loss, u16, &str); 5] = [
    (Loss::RevokedToken, 401, "token-revoked"),
    (Loss::RevokedKey, 401, "key-revoked"),
    (Loss::DisabledAccount, 403, "account-disabled"),
    (Loss::ExpiredToken, 401, "token-expired"),
    (Loss::ExpiredKey, 401, "key-expired"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    RevokedToken,
    RevokedKey,
    DisabledAccount,
    ExpiredToken,
    ExpiredKey,
}

/// Adds the key and the token of the waiting call.
async fn add_credentials(app: &TestApp, loss: Loss) -> [CredentialId; 2] {
    let account = app.store.accounts().await.unwrap()[0].id;
    let end = app.clock.now() + Duration::from_mins(1);
    let add = async |kind, expires: bool| {
        let expires_at = expires.then_some(end);
        let new = NewCredential { expires_at, ..credential(kind, SECRET) };
        match app
            .store
            .add_credential(account, new, Author::operator(app.clock.now()))
            .await
            .unwrap()
        {
            AddCredentialOutcome::Added(id) => id,
            other => panic!("{other:?}"),
        }
    };
    [
        add(CredentialKind::Key, loss == Loss::ExpiredKey).await,
        add(CredentialKind::Token, loss == Loss::ExpiredToken).await,
    ]
}

/// Makes the credentials invalid, and pauses the timers of the runtime: from now on they advance as
/// soon as nothing else happens.
async fn lose(app: &TestApp, [key, token]: [CredentialId; 2], loss: Loss) -> Instant {
    let now = app.clock.now();
    match loss {
        Loss::RevokedToken => {
            app.store.revoke_credential(token, Author::operator(now)).await.unwrap();
        }
        Loss::RevokedKey => {
            app.store.revoke_credential(key, Author::operator(now)).await.unwrap();
        }
        Loss::DisabledAccount => {
            let account = app.store.accounts().await.unwrap()[0].id;
            app.store.set_account_disabled(account, true, Author::operator(now)).await.unwrap();
        }
        Loss::ExpiredToken | Loss::ExpiredKey => app.clock.advance(Duration::from_mins(1)),
    }
    // The credential cache is older than a second.
    app.clock.advance(Duration::from_secs(2));
    tokio::time::pause();
    Instant::now()
}

#[tokio::test]
async fn a_wait_for_events_ends_when_its_credentials_become_invalid() {
    for (loss, status, slug) in CASES {
        let (app, faults) = failures::start(Limits::default()).await;
        app.create_named("before").await;
        let credentials = add_credentials(&app, loss).await;
        faults.set("events", Fault::Held);
        let path = format!("/api/v1.0/{PHONE}/{SECRET}/events?after=latest&wait=25");
        let waiting = app.send(request(Method::GET, &path, SECRET, ""));
        let meanwhile = async {
            // The call is authenticated, and has found no events.
            faults.held().await;
            let lost = lose(&app, credentials, loss).await;
            faults.release();
            lost
        };
        let (response, lost) = tokio::join!(waiting, meanwhile);
        response.problem(status, slug);
        assert!(lost.elapsed() <= REVOCATION_WINDOW, "{loss:?}: {:?}", lost.elapsed());
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_wait_for_events_continues_if_other_credentials_are_revoked() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.create_named("before").await;
    let credentials = add_credentials(&app, Loss::RevokedToken).await;
    faults.set("events", Fault::Held);
    let waiting = app.base(Method::GET, "/events?after=latest&wait=25", &serde_json::Value::Null);
    let meanwhile = async {
        faults.held().await;
        let lost = lose(&app, credentials, Loss::RevokedToken).await;
        faults.release();
        lost
    };
    let (response, lost) = tokio::join!(waiting, meanwhile);
    assert_eq!(response.status, 200, "{response:?}");
    assert!(lost.elapsed() > Duration::from_secs(20), "{:?}", lost.elapsed());
}

/// A body that never arrives. Reading it is reported.
struct Stalled(Arc<Notify>);

impl hyper::body::Body for Stalled {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        self.0.notify_one();
        Poll::Pending
    }
}

#[tokio::test]
async fn a_call_that_sends_its_body_slowly_ends_when_its_credentials_become_invalid() {
    for (loss, status, slug) in CASES {
        let app = TestApp::start().await;
        app.create_named("before").await;
        let credentials = add_credentials(&app, loss).await;
        let reads = Arc::new(Notify::new());
        let body = Body::new(Stalled(Arc::clone(&reads)));
        let waiting = app.send(request(Method::POST, &path(PHONE, SECRET), SECRET, body));
        let meanwhile = async {
            reads.notified().await;
            lose(&app, credentials, loss).await
        };
        let (response, lost) = tokio::join!(waiting, meanwhile);
        response.problem(status, slug);
        assert!(lost.elapsed() <= REVOCATION_WINDOW, "{loss:?}: {:?}", lost.elapsed());
        tokio::time::resume();
    }
}
