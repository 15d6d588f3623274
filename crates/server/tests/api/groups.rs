//! `GET {base}/message_templates?group=name`.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::http::Method;
use galley_domain::{
    document::Document,
    id::AccountId,
    rulebook::WHATSAPP,
    template::{Review, Template, lifecycle::Trigger},
};
use galley_server::{Clock as _, Limits};
use galley_store::{
    Actor, CreateOutcome, CredentialId, NewTemplate, Store, TemplateChange, TranslationGroup,
    testing::{Fault, Faults},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::app::{TestApp, request};
use crate::harness::{TestAccount, TestResponse, TestService};

const SHOP: &str = "shop-1";

/// An app with a second account that has the rulebook `whatsapp` and manual review.
async fn started() -> (TestApp, AccountId) {
    let app = TestApp::start().await;
    let shop = shop(&app).await;
    (app, shop)
}

/// Adds the account with the rulebook `whatsapp`.
async fn shop(app: &TestApp) -> AccountId {
    let shop = TestAccount {
        rulebook: &WHATSAPP,
        review: Review::Manual,
        phones: &[SHOP],
        key: SHOP,
        token: SHOP,
        ..TestAccount::named(SHOP)
    };
    TestService::account(app, shop).await
}

/// Creates a template of the shop and returns its id.
async fn create(app: &TestApp, account: AccountId, name: &str, language: &str) -> String {
    let document = json!({
        "name": name, "language": language, "category": "UTILITY",
        "components": [{"type": "BODY", "text": format!("Hello {name}")}],
    });
    let document = document.to_string();
    let document = Document::parse(document.as_bytes()).unwrap();
    let template = Template::read(&document, &WHATSAPP).unwrap();
    let new = NewTemplate {
        account,
        phone: None,
        unique_key: (WHATSAPP.unique_key)(account, name, language),
        translation_group: Some(TranslationGroup::of(account, name)),
        template,
        review: Review::Manual,
        actor: Actor::Token(CredentialId(1)),
        trace: None,
        idempotency: None,
        at: app.clock.now(),
    };
    match app.store.create_template(new).await.unwrap() {
        CreateOutcome::Created(created) => created.id.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn list(app: &TestApp, query: &str) -> TestResponse {
    let path = format!("/api/v1.0/{SHOP}/{SHOP}/message_templates{query}");
    app.send(request(Method::GET, &path, SHOP, "")).await
}

/// All pages of a list, with the number of names on each.
async fn pages(app: &TestApp, query: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut groups, mut lengths, mut next) = (Vec::new(), Vec::new(), query.to_owned());
    loop {
        let page = list(app, &next).await;
        assert_eq!(page.status, 200, "{page:?}");
        let mut page = page.json();
        let Value::Array(data) = page["data"].take() else { panic!("{page}") };
        lengths.push(data.len());
        groups.extend(data);
        match page["paging"]["next"].as_str() {
            Some(link) => link.clone_into(&mut next),
            None => return (groups, lengths),
        }
    }
}

fn names(groups: &[Value]) -> Vec<&str> {
    groups.iter().map(|group| group["name"].as_str().unwrap()).collect()
}

fn languages(group: &Value) -> Vec<&str> {
    let templates = group["templates"].as_array().unwrap().iter();
    templates.map(|template| template["language"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_name_is_listed_once_with_all_its_languages() {
    let (app, shop) = started().await;
    for language in ["en_US", "de", "fr"] {
        for number in 0..7 {
            create(&app, shop, &format!("n{number}"), language).await;
        }
    }
    let (groups, lengths) = pages(&app, "?group=name&limit=3").await;
    assert_eq!(names(&groups), ["n6", "n5", "n4", "n3", "n2", "n1", "n0"]);
    assert!(groups.iter().all(|group| languages(group) == ["fr", "de", "en_US"]), "{groups:?}");
    assert_eq!(lengths, [3, 3, 1]);
    // The newest matching template decides on the order, and the group is complete.
    create(&app, shop, "n2", "es").await;
    let (groups, _) = pages(&app, "?group=name&limit=2").await;
    assert_eq!(names(&groups), ["n2", "n6", "n5", "n4", "n3", "n1", "n0"]);
    let (groups, _) = pages(&app, "?group=name&language=en_US,de&limit=2").await;
    assert_eq!(names(&groups), ["n6", "n5", "n4", "n3", "n2", "n1", "n0"]);
    assert_eq!(languages(&groups[4]), ["es", "fr", "de", "en_US"]);
    let (groups, _) = pages(&app, "?group=name&name=n3").await;
    assert_eq!(names(&groups), ["n3"]);
    let (groups, _) = pages(&app, "?group=name&status=APPROVED").await;
    assert_eq!(groups, [] as [Value; 0]);
}

#[tokio::test]
async fn a_page_reads_its_names_and_one_more_whatever_the_number_of_templates() {
    let faults = Arc::new(Faults::default());
    let counted = Arc::clone(&faults);
    let wrap = |store: Arc<Store>| -> Arc<Store> { Arc::new(store.with_faults(counted)) };
    let app = TestApp::start_on(wrap, Limits::default()).await;
    let shop = shop(&app).await;
    for language in ["en_US", "de"] {
        for number in 0..60 {
            create(&app, shop, &format!("n{number}"), language).await;
        }
    }
    let page = list(&app, "?group=name&limit=10").await.json();
    assert_eq!(page["data"].as_array().unwrap().len(), 10);
    assert_eq!(faults.calls("list"), 1);
    assert_eq!(faults.calls("languages"), 1);
}

#[tokio::test]
async fn a_page_waits_for_the_search_index_once() {
    let faults = Arc::new(Faults::default());
    let counted = Arc::clone(&faults);
    let wrap = |store: Arc<Store>| -> Arc<Store> { Arc::new(store.with_faults(counted)) };
    let app = TestApp::start_on(wrap, Limits::default()).await;
    let shop = shop(&app).await;
    // A page of two names reads the list twice, because one name has many languages.
    for language in ["en_US", "de", "fr", "es", "it"] {
        create(&app, shop, "n1", language).await;
    }
    create(&app, shop, "n0", "en_US").await;
    while app.store.update_search_index().await.unwrap().has_more {}
    create(&app, shop, "other", "en_US").await;
    faults.set("index_account", Fault::Hangs);
    tokio::time::pause();
    let started = Instant::now();
    let response = list(&app, "?group=name&q=hello&limit=2").await;
    assert!(started.elapsed() <= Duration::from_millis(251), "{:?}", started.elapsed());
    assert_eq!(names(response.json()["data"].as_array().unwrap()), ["n0", "n1"]);
    assert!(response.header("galley-search-lag").is_some(), "{response:?}");
}

#[tokio::test]
async fn interleaved_languages_are_neither_repeated_nor_lost() {
    let (app, shop) = started().await;
    for number in 0..40_usize {
        let (name, language) =
            (format!("n{}", number * 7 % 11), ["en_US", "de", "fr", "es"][number % 4]);
        if number < 11 || number % 3 == 0 {
            create(&app, shop, &name, language).await;
        }
    }
    let (all, _) = pages(&app, "?group=name&limit=100").await;
    let distinct: BTreeSet<&str> = names(&all).into_iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert_eq!(all.len(), 11);
    for limit in 1..=6 {
        let (paged, _) = pages(&app, &format!("?group=name&limit={limit}")).await;
        assert_eq!(paged, all, "{limit}");
    }
}

#[tokio::test]
async fn an_item_has_the_state_of_its_template_and_the_reason_of_a_rejection() {
    let (app, shop) = started().await;
    let id = create(&app, shop, "a", "en_US").await;
    let change = TemplateChange {
        account: shop,
        id: id.parse().unwrap(),
        expected: None,
        version: None,
        review: Review::Manual,
        actor: Actor::Operator,
        trace: None,
        at: app.clock.now(),
    };
    let reason = Some("Too \"loud\"".to_owned());
    app.store.review_template(change, Trigger::Reject, reason).await.unwrap();
    let page = list(&app, "?group=name").await.json();
    let at = "2026-09-21T14:13:20.000Z";
    assert_eq!(
        page,
        json!({
            "data": [{"name": "a", "templates": [{
                "id": id, "language": "en_US", "status": "REJECTED", "category": "UTILITY",
                "version": 1, "reason": "Too \"loud\"", "created_at": at, "updated_at": at,
            }]}],
            "paging": {"cursors": {"after": id}},
        })
    );
}

#[tokio::test]
async fn names_of_v1_have_one_template_each() {
    let app = TestApp::start().await;
    for name in ["a", "b", "c"] {
        app.create_named(name).await;
    }
    let page = app.call(Method::GET, "?group=name&limit=2", &Value::Null).await.json();
    let data = page["data"].as_array().unwrap();
    assert_eq!(names(data), ["c", "b"]);
    assert_eq!(data[0]["templates"].as_array().unwrap().len(), 1);
    let next = page["paging"]["next"].as_str().unwrap();
    assert!(next.contains("group=name") && next.contains("limit=2"), "{next}");
    let last = app.call(Method::GET, next, &Value::Null).await.json();
    assert_eq!(names(last["data"].as_array().unwrap()), ["a"]);
    assert_eq!(last["paging"].get("next"), None);
    let wrong = app.call(Method::GET, "?group=language", &Value::Null).await;
    wrong.problem(400, "bad-request");
}
