//! `GET {base}/message_templates`.

use std::time::Duration;

use axum::http::Method;
use galley_server::Limits;
use galley_store::{StoreError, testing::Fault};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    app::{KEY, TOKEN, TestApp, hello, path, request},
    failures,
};
use crate::harness::TestResponse;

async fn list(app: &TestApp, query: &str) -> TestResponse {
    app.call(Method::GET, query, &Value::Null).await
}

fn names(response: &TestResponse) -> Vec<String> {
    let page = response.json();
    let data = page["data"].as_array().unwrap_or_else(|| panic!("{response:?}"));
    data.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_list_contains_complete_templates_newest_first() {
    let app = TestApp::start().await;
    assert_eq!(list(&app, "").await.json(), json!({"data": [], "paging": {"cursors": {}}}));
    let first = app.create_named("first").await;
    let second = app.create_named("second").await;
    let response = list(&app, "").await;
    assert_eq!(response.status, 200);
    let templates = [app.show(&second).await.json(), app.show(&first).await.json()];
    assert_eq!(
        response.json(),
        json!({"data": templates, "paging": {"cursors": {"after": first}}})
    );
}

#[tokio::test]
async fn a_list_can_begin_with_the_oldest_template() {
    let app = TestApp::start().await;
    for number in 0..5 {
        app.create_named(&format!("t{number}")).await;
    }
    let mut query = "?order=oldest&limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let response = list(&app, &query).await;
        seen.extend(names(&response));
        match response.json()["paging"]["next"].as_str() {
            Some(next) => query = next.to_owned(),
            None => break,
        }
        assert!(query.starts_with("?order=oldest&limit=2&after=oldest-"), "{query}");
    }
    assert_eq!(seen, ["t0", "t1", "t2", "t3", "t4"]);
    assert_eq!(
        names(&list(&app, "?order=newest").await),
        names(&list(&app, "").await),
        "the default"
    );
}

#[tokio::test]
async fn an_unknown_order_and_a_cursor_of_the_other_order_are_refused() {
    let app = TestApp::start().await;
    let id = app.create_named("first").await;
    for (query, detail) in [
        (
            "?order=size".to_owned(),
            "The query parameter `order` must be `newest` or `oldest`, not `size`.".to_owned(),
        ),
        (
            format!("?order=oldest&after={id}"),
            format!(
                "The query parameter `after` must be the `after` cursor of a page in the same \
                 order, not `{id}`."
            ),
        ),
        (
            format!("?after=oldest-{id}"),
            format!(
                "The query parameter `after` must be the `after` cursor of a page in the same \
                 order, not `oldest-{id}`."
            ),
        ),
        (
            "?group=name&order=oldest".to_owned(),
            "With `group=name`, names are listed newest first: leave out `order`, or list \
             templates without `group`."
                .to_owned(),
        ),
        (
            "?awaiting_review=yes".to_owned(),
            "The query parameter `awaiting_review` must be `true`, not `yes`.".to_owned(),
        ),
    ] {
        let response = list(&app, &query).await;
        assert_eq!((response.status.as_u16(), &response.json()["detail"]), (400, &json!(detail)));
    }
}

#[tokio::test]
async fn a_list_contains_each_template_byte_for_byte_as_it_is_read() {
    let app = TestApp::start().await;
    let mut document = hello("odd");
    document["components"][0]["text"] = json!("Say \"hi\" \\ to\n{{1}}, \u{e9}\u{1f600}!");
    let id = app.create(&document).await.json()["id"].as_str().unwrap().to_owned();
    let expected = format!(
        r#"{{"data":[{}],"paging":{{"cursors":{{"after":"{id}"}}}}}}"#,
        app.show(&id).await.text()
    );
    assert_eq!(list(&app, "").await.text(), expected);
}

#[tokio::test]
async fn following_next_shows_every_template_once_with_the_same_filters() {
    let app = TestApp::start().await;
    for number in 0..57 {
        let mut document = hello(&format!("t{number}"));
        document["language"] = json!(["en_US", "pt_BR"][number % 2]);
        app.create(&document).await;
    }
    let mut query = "?language=pt_BR&limit=10".to_owned();
    let mut seen = Vec::new();
    loop {
        let response = list(&app, &query).await;
        seen.extend(names(&response));
        match response.json()["paging"]["next"].as_str() {
            Some(next) => query = next.to_owned(),
            None => break,
        }
        assert!(query.contains("language=pt_BR&limit=10&after="), "{query}");
    }
    let expected: Vec<String> =
        (0..57).rev().filter(|it| it % 2 == 1).map(|it| format!("t{it}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(names(&list(&app, "").await).len(), 25, "the default page size");
    assert_eq!(names(&list(&app, "?limit=100").await).len(), 57);
}

#[tokio::test]
async fn filter_values_have_any_letter_case_but_names_are_exact() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome & more").await;
    app.create_named("other").await;
    let approve = json!({"decision": "approve"});
    app.call(Method::POST, &format!("/{id}/review"), &approve).await;
    for (query, expected) in [
        ("?status=approved", &["welcome & more"][..]),
        ("?status=PENDING&category=marketing", &["other"]),
        ("?category=UTILITY", &[]),
        ("?name=welcome+%26+more", &["welcome & more"]),
        ("?name=welcome%20%26%20more&status=PENDING", &[]),
        ("?name=welcome", &[]),
        ("?language=en_US", &["other", "welcome & more"]),
        ("?language=en", &[]),
        ("?language=%00", &[]),
    ] {
        assert_eq!(names(&list(&app, query).await), expected, "{query}");
    }
}

/// A template of about 250 KB.
fn large(name: &str) -> Value {
    let mut document = hello(name);
    let text: Vec<String> = (1..=62).map(|number| format!("{{{{{number}}}}}")).collect();
    document["components"][0]["text"] = json!(format!("large {} end", text.join(" ")));
    document["components"][0]["example"] = json!({"body_text": [vec!["x".repeat(4_000); 62]]});
    document
}

#[tokio::test]
async fn a_page_of_large_templates_is_about_a_mebibyte_and_has_a_next_page() {
    let app = TestApp::start().await;
    for number in 0..9 {
        assert_eq!(app.create(&large(&format!("t{number}"))).await.status, 201);
    }
    for first in
        ["?limit=100", "?limit=100&q=large", "?limit=100&updated_after=2026-01-01T00:00:00Z"]
    {
        let (mut pages, mut query) = (Vec::new(), first.to_owned());
        loop {
            let response = list(&app, &query).await;
            assert!(response.text().len() <= 1_100_000, "{first}: {}", response.text().len());
            pages.push(names(&response).len());
            let next = response.json()["paging"]["next"].as_str().map(str::to_owned);
            let Some(next) = next else { break };
            query = next;
        }
        assert_eq!(pages, [4, 4, 1], "{first}");
    }
}

#[tokio::test]
async fn a_search_finds_indexed_words_by_prefix() {
    let app = TestApp::start().await;
    let id = app.create_named("order_shipped").await;
    let mut german = hello("bestellung");
    german["components"][0]["text"] = json!("Grüße, {{1}}: Ihre ORDER ist da");
    app.create(&german).await;
    assert_eq!(names(&list(&app, "?q=ord").await), ["bestellung", "order_shipped"]);
    assert_eq!(names(&list(&app, "?q=GR%C3%9C").await), ["bestellung"]);
    assert_eq!(names(&list(&app, "?q=grusse").await), ["bestellung"]);
    assert_eq!(names(&list(&app, "?q=ship+hel").await), ["order_shipped"]);
    assert_eq!(names(&list(&app, "?q=ord&name=bestellung").await), ["bestellung"]);
    assert_eq!(names(&list(&app, "?q=ord&limit=1").await), ["bestellung"]);
    app.call(Method::DELETE, &format!("/{id}"), &Value::Null).await;
    assert_eq!(names(&list(&app, "?q=ship").await), [""; 0]);
}

#[tokio::test]
async fn a_search_finds_what_was_acknowledged_before_it() {
    let app = TestApp::start().await;
    let id = app.create_named("order_shipped").await;
    let response = list(&app, "?q=ship").await;
    assert_eq!(
        (names(&response), response.header("galley-search-lag")),
        (vec!["order_shipped".to_owned()], None)
    );
    let components = json!([{"type": "BODY", "text": "It has arrived"}]);
    app.call(Method::PATCH, &format!("/{id}"), &json!({"components": components})).await;
    assert_eq!(names(&list(&app, "?q=arrived").await), ["order_shipped"]);
    assert_eq!(names(&list(&app, "?q=hello").await), [""; 0]);
}

#[tokio::test]
async fn a_search_reports_its_lag_if_the_index_does_not_catch_up() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.create_named("order_shipped").await;
    for (fault, lag) in [
        (Fault::Hangs, "1234"),
        (Fault::Fails(|| StoreError::Busy), "2468"),
        (Fault::Panics, "3702"),
    ] {
        faults.set("index_account", fault);
        app.clock.advance(Duration::from_millis(1_234));
        // Only the search waits from here on, at most 250 ms.
        tokio::time::pause();
        let started = Instant::now();
        let response = list(&app, "?q=ship").await;
        assert!(started.elapsed() <= Duration::from_millis(251), "{:?}", started.elapsed());
        // A step that hangs ends, so that the next one runs.
        tokio::time::advance(Duration::from_secs(30)).await;
        tokio::time::resume();
        assert_eq!((response.status.as_u16(), names(&response)), (200, Vec::new()));
        assert_eq!(response.header("galley-search-lag"), Some(lag));
        // Neither a list nor a search for a name uses the index.
        for query in ["", "?q=ship&name=order_shipped"] {
            let response = list(&app, query).await;
            assert_eq!((names(&response).len(), response.header("galley-search-lag")), (1, None));
        }
    }
    faults.clear();
    let response = list(&app, "?q=ship").await;
    assert_eq!((names(&response).len(), response.header("galley-search-lag")), (1, None));
}

#[tokio::test]
async fn a_search_whose_last_step_ended_late_reports_no_lag() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.create_named("order_shipped").await;
    // The step ends, but the search does not learn it in time. Another write follows.
    faults.set("index_account", Fault::Held);
    let write = async {
        faults.held().await;
        app.create_named("order_arrived").await;
        tokio::time::pause();
    };
    let (response, ()) = tokio::join!(list(&app, "?q=order"), write);
    assert_eq!(names(&response), ["order_shipped"]);
    assert_eq!(response.header("galley-search-lag"), None);
}

#[tokio::test]
async fn a_filter_takes_several_values() {
    let app = TestApp::start_reviewed().await;
    for (name, category) in [("one", "MARKETING"), ("two", "UTILITY"), ("three", "AUTHENTICATION")]
    {
        let mut document = hello(name);
        document["category"] = json!(category);
        document["language"] = json!(if name == "one" { "en_US" } else { "pt_BR" });
        let id = app.create(&document).await.json()["id"].as_str().unwrap().to_owned();
        if name == "two" {
            let approve = json!({"decision": "approve"});
            app.call(Method::POST, &format!("/{id}/review"), &approve).await;
        }
    }
    for (query, expected) in [
        ("?status=APPROVED,PENDING", &["three", "two", "one"][..]),
        ("?status=APPROVED&status=rejected", &["two"]),
        ("?category=UTILITY,%20marketing", &["two", "one"]),
        ("?category=UTILITY&category=MARKETING,AUTHENTICATION", &["three", "two", "one"]),
        ("?language=pt_BR,de_DE&status=PENDING", &["three"]),
        ("?q=h&category=UTILITY,MARKETING", &["two", "one"]),
    ] {
        assert_eq!(names(&list(&app, query).await), expected, "{query}");
    }
    let mut query = "?category=UTILITY&category=MARKETING&limit=1".to_owned();
    let first = list(&app, &query).await;
    assert_eq!(names(&first), ["two"]);
    query = first.json()["paging"]["next"].as_str().unwrap().to_owned();
    assert!(query.starts_with("?category=UTILITY&category=MARKETING&limit=1&after="), "{query}");
    assert_eq!(names(&list(&app, &query).await), ["one"]);
}

#[tokio::test]
async fn a_list_is_filtered_by_last_change_and_phone_number() {
    let app = TestApp::start().await;
    let other = path("15552223333", KEY);
    app.create_named("one").await;
    app.clock.advance(Duration::from_mins(1));
    app.send(request(Method::POST, &other, TOKEN, hello("two").to_string())).await;
    for (query, expected) in [
        // 14:13:20 and 14:14:20. The start is included, the end is not.
        ("?updated_after=2026-09-21T14:13:20Z", &["two", "one"][..]),
        ("?updated_after=2026-09-21T14:13:20.001Z", &["two"]),
        ("?updated_after=2026-09-21T16:14:20%2B02:00", &["two"]),
        ("?updated_before=2026-09-21T14:14:20Z", &["one"]),
        ("?updated_after=2026-09-21T14:13:20Z&updated_before=2026-09-21T14:13:20Z", &[]),
        ("?phone_number_id=15550001111", &["one"]),
        ("?phone_number_id=15552223333", &["two"]),
        ("?phone_number_id=15550001111,15552223333", &["two", "one"]),
        ("?q=h&phone_number_id=15552223333&updated_after=2026-01-01T00:00:00Z", &["two"]),
    ] {
        assert_eq!(names(&list(&app, query).await), expected, "{query}");
    }
}

#[tokio::test]
async fn an_invalid_parameter_is_400_with_the_accepted_values() {
    let app = TestApp::start().await;
    for (query, expected) in [
        ("?limit=0", "1 to 100"),
        ("?limit=101", "1 to 100"),
        ("?limit=+5", "1 to 100"),
        ("?limit=ten", "1 to 100"),
        ("?after=x", "cursor"),
        ("?after=0", "cursor"),
        ("?status=LIVE", "PENDING, APPROVED"),
        ("?status=LIVE", "not `LIVE`"),
        ("?status=PENDING,LIVE", "not `LIVE`"),
        ("?status=PENDING,", "not ``"),
        ("?category=news", "MARKETING"),
        ("?category=UTILITY&category=news", "not `news`"),
        ("?updated_after=yesterday", "not `yesterday`"),
        ("?updated_before=2026-11-15", "a timestamp such as"),
        ("?updated_before=2026-11-15T09:30:00+01:00", "%2B"),
        ("?updated_after=2026-11-15T09:30:00Z&updated_after=2026-11-15T09:30:00Z", "only once"),
        ("?phone_number_id=15559999999", "phone numbers of this account, not `15559999999`"),
        ("?phone_number_id=", "not ``"),
        (&*format!("?language={}", "x,".repeat(100)), "at most 100 values"),
        ("?staus=PENDING", "Did you mean `status`?"),
        ("?colour=red", "Supported parameters: name, status"),
        ("?limit=1&limit=2", "only once"),
        ("?q=", "words"),
        ("?q=%21%21", "words"),
        (&*format!("?q={}", "a+".repeat(41)), "words"),
    ] {
        let problem = list(&app, query).await.problem(400, "bad-request");
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{query}: {problem}");
    }
}

#[tokio::test]
async fn a_list_does_not_contain_templates_of_other_accounts() {
    let app = TestApp::start().await;
    app.create_named("mine").await;
    app.account("second", &["222"], "key-2", "token-2").await;
    while app.store.update_search_index().await.unwrap().has_more {}
    for query in ["", "?name=mine", "?q=mine", "?status=APPROVED"] {
        let by_stranger = format!("{}{query}", path("222", "key-2"));
        let response = app.send(request(Method::GET, &by_stranger, "token-2", "")).await;
        assert_eq!(names(&response), [""; 0], "{query}");
    }
}
