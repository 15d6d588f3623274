//! `GET {base}/events`: the event feed and long polling.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::Method;
use galley_server::{Clock as _, Limits};
use galley_store::testing::Fault;
use serde_json::{Value, json};

use super::{
    app::{PHONE, TestApp, hello, request},
    failures,
};
use crate::harness::TestResponse;

/// Upper bound for the time until an event ends a wait. Shorter than the waits themselves.
const WAKE_TIMEOUT: Duration = Duration::from_secs(12);

async fn events(app: &TestApp, query: &str) -> TestResponse {
    app.base(Method::GET, &format!("/events{query}"), &Value::Null).await
}

fn seqs(response: &TestResponse) -> Vec<u64> {
    let page = response.json();
    let data = page["data"].as_array().unwrap_or_else(|| panic!("{response:?}"));
    data.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

fn cursor(response: &TestResponse) -> String {
    response.json()["paging"]["cursors"]["after"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_change_is_one_event_with_the_state_at_that_time() {
    let app = TestApp::start_reviewed().await;
    let id = app.create_named("welcome").await;
    let reject = json!({"decision": "reject", "reason": "Too \"loud\""});
    app.call(Method::POST, &format!("/{id}/review"), &reject).await;
    app.call(Method::PATCH, &format!("/{id}"), &json!({"category": "UTILITY"})).await;
    app.call(Method::DELETE, &format!("/{id}"), &Value::Null).await;
    let response = events(&app, "").await;
    assert_eq!(response.status, 200);
    let page = response.json();
    assert_eq!(page["paging"], json!({"cursors": {"after": "5"}}));
    let summary: Vec<(&Value, &Value, &Value, &Value)> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["seq"], &it["type"], &it["version"], &it["data"]["status"]))
        .collect();
    assert_eq!(
        summary,
        [
            (&json!(1), &json!("template.created"), &json!(1), &json!("PENDING")),
            (&json!(2), &json!("template.rejected"), &json!(1), &json!("REJECTED")),
            (&json!(3), &json!("template.edited"), &json!(2), &json!("PENDING")),
            (&json!(4), &json!("template.category_changed"), &json!(2), &json!("PENDING")),
            (&json!(5), &json!("template.deleted"), &json!(2), &json!("PENDING")),
        ]
    );
    let mut rejected = page["data"][1].clone();
    let actor = rejected["actor"].take();
    let name = format!("token {}", actor.as_str().unwrap().parse::<u64>().unwrap());
    assert_eq!(
        rejected,
        json!({
            "seq": 2, "type": "template.rejected", "template_id": id, "version": 1, "actor": null, "actor_name": name,
            "at": format!("{:.3}", app.clock.now()),
            "data": {"name": "welcome", "language": "en_US", "category": "MARKETING",
                "status": "REJECTED", "reason": "Too \"loud\""},
        })
    );
}

#[tokio::test]
async fn every_page_has_a_cursor_and_a_full_page_has_a_link() {
    let app = TestApp::start().await;
    let empty = json!({"data": [], "paging": {"cursors": {"after": "0"}}});
    for query in ["", "?after=0", "?after=latest", "?after=latest&wait=0"] {
        assert_eq!(events(&app, query).await.json(), empty, "{query}");
    }
    for number in 0..5 {
        app.create_named(&format!("t{number}")).await;
    }
    let mut query = "?limit=2&wait=0".to_owned();
    let mut seen = Vec::new();
    for expected in [&[1, 2][..], &[3, 4], &[5]] {
        let response = events(&app, &query).await;
        assert_eq!(seqs(&response), expected);
        seen.extend(seqs(&response));
        assert_eq!(cursor(&response), expected.last().unwrap().to_string());
        if let Some(next) = response.json()["paging"]["next"].as_str() {
            assert_eq!(next, format!("?limit=2&wait=0&after={}", cursor(&response)));
            query = next.to_owned();
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    let end = events(&app, "?after=5").await;
    assert_eq!(end.json(), json!({"data": [], "paging": {"cursors": {"after": "5"}}}));
    assert_eq!(seqs(&events(&app, "?limit=100").await).len(), 5);
}

#[tokio::test]
async fn latest_skips_existing_events() {
    let app = TestApp::start().await;
    app.create_named("before").await;
    let response = events(&app, "?after=latest").await;
    assert_eq!((seqs(&response), cursor(&response)), (vec![], "1".to_owned()));
    app.create_named("since").await;
    let response = events(&app, &format!("?after={}", cursor(&response))).await;
    assert_eq!((seqs(&response), cursor(&response)), (vec![2], "2".to_owned()));
}

#[tokio::test]
async fn an_invalid_parameter_is_rejected_with_the_accepted_values() {
    let app = TestApp::start().await;
    app.create_named("t").await;
    for (query, expected) in [
        ("?after=-1", "`seq`"),
        ("?after=1.0", "`seq`"),
        ("?after=Latest", "`latest`"),
        ("?after=9007199254740992", "`seq`"),
        ("?wait=26", "0 to 25"),
        ("?wait=-1", "0 to 25"),
        ("?wait=0.5", "0 to 25"),
        ("?limit=0", "1 to 100"),
        ("?limit=101", "1 to 100"),
        ("?after=0&after=0", "only once"),
        ("?aftr=0", "Did you mean `after`?"),
    ] {
        let problem = events(&app, query).await.problem(400, "bad-request");
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{query}: {problem}");
    }
}

#[tokio::test]
async fn a_cursor_ahead_of_the_newest_event_is_rejected() {
    let app = TestApp::start().await;
    app.create_named("first").await;
    app.create_named("second").await;
    // A store that was restored from a backup looks like this. Waiting does not help.
    for query in ["?after=3", "?after=9007199254740991&wait=25"] {
        let problem = events(&app, query).await.problem(400, "bad-request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("which is 2") && detail.contains("`after=2`"), "{detail}");
    }
}

#[tokio::test]
async fn a_cursor_before_the_oldest_event_is_rejected_with_the_oldest() {
    let app = TestApp::start().await;
    for name in ["a", "b", "c"] {
        app.create_named(name).await;
        app.clock.advance(Duration::from_hours(24));
    }
    let since = app.clock.now() - jiff::SignedDuration::from_hours(36);
    assert_eq!(app.store.delete_expired_events(since).await.unwrap(), 2);
    for query in ["?after=0", "?after=1", "?after=1&wait=25"] {
        let problem = events(&app, query).await.problem(410, "events-forgotten");
        assert_eq!(problem["oldest"], 3, "{query}");
        assert!(problem["detail"].as_str().unwrap().contains("`after=2`"), "{problem}");
    }
    for query in ["?after=2", ""] {
        assert_eq!(seqs(&events(&app, query).await), [3], "{query}");
    }
    // With all events deleted, the reader still gets a cursor, and misses nothing from then on.
    app.store.delete_expired_events(app.clock.now()).await.unwrap();
    let response = events(&app, "").await;
    assert_eq!((seqs(&response), cursor(&response)), (vec![], "3".to_owned()));
    assert_eq!(events(&app, "?after=2").await.problem(410, "events-forgotten")["oldest"], 4);
    app.create_named("d").await;
    assert_eq!(seqs(&events(&app, "?after=3").await), [4]);
}

#[tokio::test]
async fn each_account_has_its_own_events() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "second-key", "second-token").await;
    app.create_named("first").await;
    let path = "/api/v1.0/222/second-key/events?after=0";
    let response = app.send(request(Method::GET, path, "second-token", "")).await;
    assert_eq!((seqs(&response), cursor(&response)), (vec![], "0".to_owned()));
}

#[tokio::test]
async fn a_wait_ends_as_soon_as_an_event_happens() {
    let app = TestApp::start().await;
    app.create_named("before").await;
    let begun = Instant::now();
    for (query, name) in [("?after=1&wait=25", "one"), ("?after=2&wait=25&limit=1", "two")] {
        let waiting = events(&app, query);
        let (response, _) = tokio::join!(waiting, app.create_named(name));
        assert_eq!(response.json()["data"][0]["data"]["name"], name);
    }
    assert!(begun.elapsed() < WAKE_TIMEOUT, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_event_between_read_and_wait_is_not_missed() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.create_named("before").await;
    let account = app.store.accounts().await.unwrap()[0].id;
    for (query, expected) in [("?after=1&wait=25", 2), ("?after=latest&wait=25", 3)] {
        // The reader has found no events, but has not received the result yet.
        faults.set("events", Fault::Held);
        let begun = Instant::now();
        let meanwhile = async {
            faults.held().await;
            let mut notifications = app.store.event_notifier().subscribe(account);
            app.create_named(&format!("the event {expected}")).await;
            // All subscribers have been notified.
            notifications.wait_for(|newest| *newest == expected).await.unwrap();
            faults.release();
        };
        let (response, ()) = tokio::join!(events(&app, query), meanwhile);
        assert_eq!(seqs(&response), [expected]);
        assert!(begun.elapsed() < WAKE_TIMEOUT, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn an_event_before_the_first_read_follows_the_latest_cursor() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.create_named("before").await;
    // An event commits after the read of the newest event and before the read of the page.
    faults.set("newest_event", Fault::Held);
    let meanwhile = async {
        faults.held().await;
        app.create_named("between").await;
        faults.release();
    };
    let (response, ()) = tokio::join!(events(&app, "?after=latest"), meanwhile);
    assert_eq!(seqs(&response), [2]);
}

#[tokio::test]
async fn events_of_other_accounts_do_not_end_a_wait() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "second-key", "second-token").await;
    app.create_named("first").await;
    let path = "/api/v1.0/222/second-key/events?after=0&wait=25";
    let waiting = app.send(request(Method::GET, path, "second-token", ""));
    let others = async {
        for number in 0..5 {
            app.create_named(&format!("t{number}")).await;
        }
        let mut document = hello("their own");
        document["language"] = json!("pt_BR");
        let path = "/api/v1.0/222/second-key/message_templates";
        app.send(request(Method::POST, path, "second-token", document.to_string())).await
    };
    let (response, created) = tokio::join!(waiting, others);
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(response.json()["data"][0]["data"]["language"], "pt_BR");
}

#[tokio::test]
async fn a_wait_ends_after_its_time() {
    for (request, wait, expected) in [(30, 25, 25), (30, 1, 1), (10, 25, 9), (10, 3, 3), (1, 25, 0)]
    {
        let request = Duration::from_secs(request);
        let app = TestApp::start_with(Limits { request, ..Limits::default() }).await;
        app.create_named("t").await;
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let response = events(&app, &format!("?after=1&wait={wait}")).await;
        assert_eq!((seqs(&response), cursor(&response)), (vec![], "1".to_owned()));
        assert_eq!(begun.elapsed().as_secs(), expected, "of {wait} s within {request:?}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn draining_ends_a_wait() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.create_named("t").await;
    let begun = Instant::now();
    faults.set("events", Fault::Held);
    let end = async {
        faults.held().await;
        faults.release();
        tokio::task::yield_now().await;
        app.app.start_draining();
    };
    let (response, ()) = tokio::join!(events(&app, "?after=1&wait=25"), end);
    assert_eq!((seqs(&response), cursor(&response)), (vec![], "1".to_owned()));
    // Later requests get a response, too, and do not wait.
    assert_eq!(seqs(&events(&app, "?after=0&wait=25").await), [1]);
    assert_eq!(seqs(&events(&app, "?after=latest&wait=25").await), [0; 0]);
    assert!(begun.elapsed() < WAKE_TIMEOUT, "{:?}", begun.elapsed());
}

/// Follows the feed of the first account until it has seen `count` events.
async fn follow(app: Arc<TestApp>, start: &str, limit: usize, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut query = format!("?limit={limit}&wait=25{start}");
    while seen.len() < count {
        let response = events(&app, &query).await;
        assert_eq!(response.status, 200, "{response:?}");
        let page = seqs(&response);
        assert!((1..=limit).contains(&page.len()), "a wait ended without events: {response:?}");
        seen.extend(page);
        query = format!("?limit={limit}&wait=25&after={}", cursor(&response));
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_readers_see_every_event_exactly_once() {
    const WRITERS: usize = 6;
    const EACH: usize = 40;
    let app = Arc::new(TestApp::start().await);
    // The account claims its phone number with the first call.
    events(&app, "").await;
    let readers = [1, 2, 3, 7, 100].map(|limit| {
        let start = if limit % 2 == 0 { "&after=0" } else { "" };
        tokio::spawn(follow(Arc::clone(&app), start, limit, WRITERS * EACH))
    });
    let writers = (0..WRITERS).map(|writer| {
        let app = Arc::clone(&app);
        tokio::spawn(async move {
            let mut document = hello("");
            for number in 0..EACH {
                document["name"] = json!(format!("{writer} {number}"));
                assert_eq!(app.create(&document).await.status, 201);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let all: Vec<u64> = (1..=(WRITERS * EACH) as u64).collect();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), all);
    }
}

#[tokio::test]
async fn the_access_log_contains_only_the_route_of_a_wait() {
    let app = TestApp::start().await;
    app.create_named("t").await;
    events(&app, "?after=0&wait=25").await;
    let log = app.into_log();
    assert!(log.contains("/api/v1.0/{phone_number_id}/{key}/events"), "{log}");
    assert!(!log.contains(PHONE) && !log.contains("wait="), "{log}");
}
