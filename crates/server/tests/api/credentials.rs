//! Authentication: the order of the checks, scopes, phone numbers, and the credential cache.

use std::time::Duration;

use axum::http::Method;
use galley_domain::account::Scopes;
use galley_store::{
    AccountQuotas, AddCredentialOutcome, Author, CredentialId, CredentialKind, NewCredential,
    Quota, SecretHash,
};
use jiff::Timestamp;

use super::app::{KEY, PHONE, TOKEN, TestApp, credential, hello, path, request};
use crate::harness::TestResponse;

async fn call(app: &TestApp, phone: &str, key: &str, token: &str) -> TestResponse {
    app.send(request(Method::POST, &path(phone, key), token, hello("t").to_string())).await
}

async fn add(app: &TestApp, new: NewCredential) -> CredentialId {
    use galley_server::Clock as _;
    let account = app.store.accounts().await.unwrap()[0].id;
    match app.store.add_credential(account, new, Author::operator(app.clock.now())).await.unwrap() {
        AddCredentialOutcome::Added(id) => id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_missing_or_wrong_credential_has_its_own_problem() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "key-2", "token-2").await;
    for (phone, key, token, status, slug) in [
        (PHONE, KEY, "", 401, "token-missing"),
        (PHONE, "wrong", "", 401, "token-missing"),
        (PHONE, KEY, "wrong", 401, "token-unknown"),
        (PHONE, "wrong", TOKEN, 401, "key-unknown"),
        (PHONE, TOKEN, KEY, 401, "token-unknown"),
        ("222", "key-2", TOKEN, 403, "credentials-mismatch"),
        ("222", KEY, "token-2", 403, "credentials-mismatch"),
        ("222", KEY, TOKEN, 404, "phone-unknown"),
        ("999", "key-2", "token-2", 404, "phone-unknown"),
    ] {
        let response = call(&app, phone, key, token).await;
        let problem = response.problem(status, slug);
        assert_eq!(response.header("www-authenticate"), (status == 401).then_some("Bearer"));
        if slug == "phone-unknown" {
            assert!(problem["detail"].as_str().unwrap().contains("galley phone add"));
        }
    }
}

#[tokio::test]
async fn only_the_bearer_scheme_is_accepted_in_any_letter_case() {
    let app = TestApp::start().await;
    for (scheme, status) in [("bearer", 404), ("BEARER", 404), ("Basic", 401), ("Token", 401)] {
        let mut request = request(Method::GET, &format!("{}/1", path(PHONE, KEY)), "", "");
        request.headers_mut().insert("authorization", format!("{scheme} {TOKEN}").parse().unwrap());
        assert_eq!(app.send(request).await.status.as_u16(), status, "{scheme}");
    }
}

#[tokio::test]
async fn expired_and_revoked_credentials_have_their_own_problems() {
    use galley_server::Clock as _;
    let app = TestApp::start().await;
    let end = app.clock.now() + Duration::from_mins(1);
    for kind in [CredentialKind::Key, CredentialKind::Token] {
        add(&app, NewCredential { expires_at: Some(end), ..credential(kind, "short-lived") }).await;
        let id = add(&app, credential(kind, "ended")).await;
        app.store.revoke_credential(id, Author::operator(app.clock.now())).await.unwrap();
    }
    assert_eq!(call(&app, PHONE, "short-lived", "short-lived").await.status.as_u16(), 201);
    call(&app, PHONE, KEY, "ended").await.problem(401, "token-revoked");
    call(&app, PHONE, "ended", TOKEN).await.problem(401, "key-revoked");
    app.clock.advance(Duration::from_mins(1));
    call(&app, PHONE, KEY, "short-lived").await.problem(401, "token-expired");
    call(&app, PHONE, "short-lived", TOKEN).await.problem(401, "key-expired");
}

#[tokio::test]
async fn a_rejection_for_a_missing_scope_names_the_scope() {
    let app = TestApp::start().await;
    let scoped = |secret, scopes| NewCredential {
        scopes: Scopes::parse(scopes).unwrap(),
        ..credential(CredentialKind::Token, secret)
    };
    add(&app, scoped("reader", "read")).await;
    add(&app, scoped("writer", "write")).await;
    let problem = call(&app, PHONE, KEY, "reader").await.problem(403, "scope-missing");
    assert!(problem["detail"].as_str().unwrap().contains("`write`"));
    let created = call(&app, PHONE, KEY, "writer").await.json();
    let one = format!("{}/{}", path(PHONE, KEY), created["id"].as_str().unwrap());
    app.send(request(Method::GET, &one, "writer", "")).await.problem(403, "scope-missing");
    assert_eq!(app.send(request(Method::GET, &one, "reader", "")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_disabled_account_is_rejected_until_it_is_enabled() {
    use galley_server::Clock as _;
    let app = TestApp::start().await;
    let id = app.store.accounts().await.unwrap()[0].id;
    app.store.set_account_disabled(id, true, Author::operator(app.clock.now())).await.unwrap();
    call(&app, PHONE, KEY, TOKEN).await.problem(403, "account-disabled");
    app.store.set_account_disabled(id, false, Author::operator(app.clock.now())).await.unwrap();
    app.clock.advance(Duration::from_secs(2));
    assert_eq!(call(&app, PHONE, KEY, TOKEN).await.status.as_u16(), 201);
}

#[tokio::test]
async fn a_new_credential_works_immediately_even_after_a_rejection() {
    let app = TestApp::start().await;
    call(&app, PHONE, KEY, "brand-new").await.problem(401, "token-unknown");
    add(&app, credential(CredentialKind::Token, "brand-new")).await;
    assert_eq!(call(&app, PHONE, KEY, "brand-new").await.status.as_u16(), 201);
}

#[tokio::test]
async fn a_revocation_takes_effect_within_two_seconds_despite_the_cache() {
    use galley_server::Clock as _;
    let app = TestApp::start().await;
    let id = add(&app, credential(CredentialKind::Token, "leaked")).await;
    assert_eq!(call(&app, PHONE, KEY, "leaked").await.status.as_u16(), 201);
    app.store.revoke_credential(id, Author::operator(app.clock.now())).await.unwrap();
    app.clock.advance(Duration::from_secs(2));
    call(&app, PHONE, KEY, "leaked").await.problem(401, "token-revoked");
}

#[tokio::test]
async fn an_account_without_numbers_claims_a_number_on_first_use() {
    let app = TestApp::start().await;
    app.account("second", &[], "key-2", "token-2").await;
    let mine = app.store.accounts().await.unwrap()[0].id;
    assert_eq!(call(&app, "777", KEY, TOKEN).await.status.as_u16(), 201);
    assert_eq!(app.store.phone_owner("777").await.unwrap(), Some(mine));
    call(&app, "777", "key-2", "token-2").await.problem(404, "phone-unknown");
    // A rejected call does not claim a number.
    call(&app, "888", KEY, "token-2").await.problem(403, "credentials-mismatch");
    assert_eq!(app.store.phone_owner("888").await.unwrap(), None);
}

#[tokio::test]
async fn beyond_its_quota_an_account_cannot_tell_free_phone_numbers_from_others() {
    let app = TestApp::start().await;
    app.account("second", &["888"], "key-2", "token-2").await;
    let mine = app.store.accounts().await.unwrap()[0].id;
    let quotas = AccountQuotas { phone_numbers: Quota::Max(2), ..AccountQuotas::default() };
    assert!(
        app.store
            .set_account_quotas(mine, quotas, Author::operator(Timestamp::UNIX_EPOCH))
            .await
            .unwrap()
    );
    for phone in ["1", "2"] {
        app.store
            .claim_phone(mine, phone, None, Author::operator(Timestamp::UNIX_EPOCH))
            .await
            .unwrap();
    }
    let refused = call(&app, "777", KEY, TOKEN).await.problem(404, "phone-unknown");
    assert!(refused["detail"].as_str().unwrap().contains("owns 2 of them"), "{refused}");
    let owned = call(&app, "888", KEY, TOKEN).await.problem(404, "phone-unknown");
    assert_eq!(owned["detail"], refused["detail"]);
    assert_eq!(app.store.phone_owner("777").await.unwrap(), None);
    assert_eq!(call(&app, "1", KEY, TOKEN).await.status.as_u16(), 201);
}

#[tokio::test]
async fn responses_logs_and_metrics_contain_no_secrets() {
    let app = TestApp::start().await;
    let mut seen = Vec::new();
    for (method, path) in [
        (Method::POST, path(PHONE, KEY)),
        (Method::PUT, path(PHONE, KEY)),
        (Method::GET, format!("{}/1", path(PHONE, KEY))),
        (Method::GET, format!("/elsewhere/{KEY}")),
        (Method::POST, path("9%2F9", KEY)),
    ] {
        let response = app.send(request(method, &path, TOKEN, "{}")).await;
        seen.push(format!("{response:?}"));
    }
    seen.push(app.send(request(Method::GET, "/metrics", "", "")).await.text().to_owned());
    let mut seen = seen.concat();
    assert!(seen.contains("{phone_number_id}/{key}/message_templates"), "the pattern appears");
    seen.push_str(&app.into_log());
    assert!(!seen.contains(KEY) && !seen.contains(TOKEN), "{seen}");
    let hash = SecretHash::of(KEY).0.map(|byte| format!("{byte:02x}")).concat();
    assert!(!seen.contains(&hash));
}
