//! `GET {base}/events`: the feed, and waiting for what comes next.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::Method;
use galley_server::{Clock as _, Limits};
use serde_json::{Value, json};

use super::{
    app::{Answer, PHONE, TestApp, hello, request},
    failures::{self, Fault},
};

/// Nothing that wakes somebody may take so long; those who wait would wait longer.
const AT_ONCE: Duration = Duration::from_secs(12);

async fn events(app: &TestApp, query: &str) -> Answer {
    app.base(Method::GET, &format!("/events{query}"), &Value::Null).await
}

fn seqs(answer: &Answer) -> Vec<u64> {
    let page = answer.json();
    let data = page["data"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    data.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

fn cursor(answer: &Answer) -> String {
    answer.json()["paging"]["cursors"]["after"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_fact_is_one_event_that_tells_how_the_template_was_then() {
    let app = TestApp::start_reviewed().await;
    let id = app.made("welcome").await;
    let reject = json!({"decision": "reject", "reason": "Too \"loud\""});
    app.call(Method::POST, &format!("/{id}/review"), &reject).await;
    app.call(Method::PATCH, &format!("/{id}"), &json!({"category": "UTILITY"})).await;
    app.call(Method::DELETE, &format!("/{id}"), &Value::Null).await;
    let answer = events(&app, "").await;
    assert_eq!(answer.status, 200);
    let page = answer.json();
    assert_eq!(page["paging"], json!({"cursors": {"after": "5"}}));
    let told: Vec<(&Value, &Value, &Value, &Value)> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["seq"], &it["type"], &it["version"], &it["data"]["status"]))
        .collect();
    assert_eq!(
        told,
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
    assert!(actor.as_str().unwrap().parse::<u64>().is_ok(), "{actor}");
    assert_eq!(
        rejected,
        json!({
            "seq": 2, "type": "template.rejected", "template_id": id, "version": 1, "actor": null,
            "at": app.clock.now().to_string(),
            "data": {"name": "welcome", "language": "en_US", "category": "MARKETING",
                "status": "REJECTED", "reason": "Too \"loud\""},
        })
    );
}

#[tokio::test]
async fn every_page_tells_where_to_go_on_and_a_full_one_links_there() {
    let app = TestApp::start().await;
    let nothing = json!({"data": [], "paging": {"cursors": {"after": "0"}}});
    for query in ["", "?after=0", "?after=latest", "?after=latest&wait=0"] {
        assert_eq!(events(&app, query).await.json(), nothing, "{query}");
    }
    for number in 0..5 {
        app.made(&format!("t{number}")).await;
    }
    let mut query = "?limit=2&wait=0".to_owned();
    let mut seen = Vec::new();
    for expected in [&[1, 2][..], &[3, 4], &[5]] {
        let answer = events(&app, &query).await;
        assert_eq!(seqs(&answer), expected);
        seen.extend(seqs(&answer));
        assert_eq!(cursor(&answer), expected.last().unwrap().to_string());
        if let Some(next) = answer.json()["paging"]["next"].as_str() {
            assert_eq!(next, format!("?limit=2&wait=0&after={}", cursor(&answer)));
            query = next.to_owned();
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    let end = events(&app, "?after=5").await;
    assert_eq!(end.json(), json!({"data": [], "paging": {"cursors": {"after": "5"}}}));
    assert_eq!(seqs(&events(&app, "?limit=100").await).len(), 5);
}

#[tokio::test]
async fn latest_is_from_now_on() {
    let app = TestApp::start().await;
    app.made("before").await;
    let answer = events(&app, "?after=latest").await;
    assert_eq!((seqs(&answer), cursor(&answer)), (vec![], "1".to_owned()));
    app.made("since").await;
    let answer = events(&app, &format!("?after={}", cursor(&answer))).await;
    assert_eq!((seqs(&answer), cursor(&answer)), (vec![2], "2".to_owned()));
}

#[tokio::test]
async fn a_question_that_makes_no_sense_is_told_what_would() {
    let app = TestApp::start().await;
    app.made("t").await;
    for (query, words) in [
        ("?after=-1", "`seq`"),
        ("?after=1.0", "`seq`"),
        ("?after=Latest", "`latest`"),
        ("?after=9007199254740992", "`seq`"),
        ("?wait=26", "0 to 25"),
        ("?wait=-1", "0 to 25"),
        ("?wait=0.5", "0 to 25"),
        ("?limit=0", "1 to 100"),
        ("?limit=101", "1 to 100"),
        ("?after=0&after=0", "twice"),
        ("?aftr=0", "did you mean `after`?"),
    ] {
        let problem = events(&app, query).await.problem(400, "bad-request");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{query}: {problem}");
    }
}

#[tokio::test]
async fn whoever_is_ahead_of_the_newest_event_is_told_which_that_is() {
    let app = TestApp::start().await;
    app.made("first").await;
    app.made("second").await;
    // Not even by waiting: a store that was put back from a copy looks like that.
    for query in ["?after=3", "?after=9007199254740991&wait=25"] {
        let problem = events(&app, query).await.problem(400, "bad-request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("which is 2") && detail.contains("`after=2`"), "{detail}");
    }
}

#[tokio::test]
async fn whoever_comes_too_late_is_told_what_is_left_and_how_to_go_on() {
    let app = TestApp::start().await;
    for name in ["a", "b", "c"] {
        app.made(name).await;
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
    // Nothing is left at all: a reader still learns where he is, and loses nothing from then on.
    app.store.delete_expired_events(app.clock.now()).await.unwrap();
    let answer = events(&app, "").await;
    assert_eq!((seqs(&answer), cursor(&answer)), (vec![], "3".to_owned()));
    assert_eq!(events(&app, "?after=2").await.problem(410, "events-forgotten")["oldest"], 4);
    app.made("d").await;
    assert_eq!(seqs(&events(&app, "?after=3").await), [4]);
}

#[tokio::test]
async fn another_account_has_events_of_its_own() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "second-key", "second-token").await;
    app.made("first").await;
    let path = "/api/v1.0/222/second-key/events?after=0";
    let answer = app.send(request(Method::GET, path, "second-token", "")).await;
    assert_eq!((seqs(&answer), cursor(&answer)), (vec![], "0".to_owned()));
}

#[tokio::test]
async fn whoever_waits_is_answered_as_soon_as_something_happens() {
    let app = TestApp::start().await;
    app.made("before").await;
    let begun = Instant::now();
    for (query, name) in [("?after=1&wait=25", "one"), ("?after=2&wait=25&limit=1", "two")] {
        let waiting = events(&app, query);
        let (answer, _) = tokio::join!(waiting, app.made(name));
        assert_eq!(answer.json()["data"][0]["data"]["name"], name);
    }
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_happens_between_looking_and_waiting_is_not_missed() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.made("before").await;
    let account = app.store.accounts().await.unwrap()[0].id;
    for (query, expected) in [("?after=1&wait=25", 2), ("?after=latest&wait=25", 3)] {
        // The reader has looked and found nothing, but does not know it yet.
        faults.set("events", Fault::Held);
        let begun = Instant::now();
        let meanwhile = async {
            faults.held().await;
            let mut news = app.store.event_notifier().of(account);
            app.made(&format!("the event {expected}")).await;
            // Everybody who could be told has been told.
            news.wait_for(|newest| *newest == expected).await.unwrap();
            faults.let_go();
        };
        let (answer, ()) = tokio::join!(events(&app, query), meanwhile);
        assert_eq!(seqs(&answer), [expected]);
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn what_happens_before_the_first_look_is_behind_an_empty_page() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.made("before").await;
    // An event comes in after the newest was asked for and before anything was looked for.
    faults.set("newest_event", Fault::Held);
    let meanwhile = async {
        faults.held().await;
        app.made("between").await;
        faults.let_go();
    };
    let (answer, ()) = tokio::join!(events(&app, "?after=latest"), meanwhile);
    assert_eq!(seqs(&answer), [2]);
}

#[tokio::test]
async fn events_of_others_wake_nobody() {
    let app = TestApp::start().await;
    app.account("second", &["222"], "second-key", "second-token").await;
    app.made("first").await;
    let path = "/api/v1.0/222/second-key/events?after=0&wait=25";
    let waiting = app.send(request(Method::GET, path, "second-token", ""));
    let others = async {
        for number in 0..5 {
            app.made(&format!("t{number}")).await;
        }
        let mut document = hello("their own");
        document["language"] = json!("pt_BR");
        let path = "/api/v1.0/222/second-key/message_templates";
        app.send(request(Method::POST, path, "second-token", document.to_string())).await
    };
    let (answer, created) = tokio::join!(waiting, others);
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(answer.json()["data"][0]["data"]["language"], "pt_BR");
}

#[tokio::test]
async fn the_wait_ends_when_its_time_is_up() {
    for (request, asked, waited) in [(30, 25, 25), (30, 1, 1), (10, 25, 9), (10, 3, 3), (1, 25, 0)]
    {
        let request = Duration::from_secs(request);
        let app = TestApp::start_with(Limits { request, ..Limits::default() }).await;
        app.made("t").await;
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let answer = events(&app, &format!("?after=1&wait={asked}")).await;
        assert_eq!((seqs(&answer), cursor(&answer)), (vec![], "1".to_owned()));
        assert_eq!(begun.elapsed().as_secs(), waited, "of {asked} s within {request:?}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn whoever_waits_is_answered_when_the_service_ends() {
    let (app, faults) = failures::start(Limits::default()).await;
    app.made("t").await;
    let begun = Instant::now();
    faults.set("events", Fault::Held);
    let end = async {
        faults.held().await;
        faults.let_go();
        tokio::task::yield_now().await;
        app.app.start_draining();
    };
    let (answer, ()) = tokio::join!(events(&app, "?after=1&wait=25"), end);
    assert_eq!((seqs(&answer), cursor(&answer)), (vec![], "1".to_owned()));
    // Who still comes is answered, too, and waits for nothing.
    assert_eq!(seqs(&events(&app, "?after=0&wait=25").await), [1]);
    assert_eq!(seqs(&events(&app, "?after=latest&wait=25").await), [0; 0]);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// Follows the feed of the first account until so many events have been seen.
async fn follow(app: Arc<TestApp>, start: &str, limit: usize, all: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut query = format!("?limit={limit}&wait=25{start}");
    while seen.len() < all {
        let answer = events(&app, &query).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = seqs(&answer);
        assert!((1..=limit).contains(&page.len()), "a wait that ended for nothing: {answer:?}");
        seen.extend(page);
        query = format!("?limit={limit}&wait=25&after={}", cursor(&answer));
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_miss_nothing_and_see_nothing_twice_whatever_is_written_meanwhile() {
    const WRITERS: usize = 6;
    const EACH: usize = 40;
    let app = Arc::new(TestApp::start().await);
    // The account has its phone number from its first call on.
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
async fn a_wait_is_logged_by_its_route_alone() {
    let app = TestApp::start().await;
    app.made("t").await;
    events(&app, "?after=0&wait=25").await;
    let log = app.into_log();
    assert!(log.contains("/api/v1.0/{phone_number_id}/{key}/events"), "{log}");
    assert!(!log.contains(PHONE) && !log.contains("wait="), "{log}");
}
