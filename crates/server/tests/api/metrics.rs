//! `/metrics`: what the page reports, and what it costs.

use std::time::Duration;

use axum::http::Method;
use galley_server::{Limits, workers::sample_statistics};
use galley_store::{StoreError, testing::Fault};
use serde_json::Value;

use super::{
    app::{TestApp, hello, request},
    failures,
};

/// The page.
async fn page(app: &TestApp) -> String {
    let page = app.send(request(Method::GET, "/metrics", "", "")).await;
    assert_eq!(page.status.as_u16(), 200);
    page.text().to_owned()
}

/// The value of a series, if the page has it.
fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn the_page_has_a_help_text_and_a_type_for_every_metric() {
    let app = TestApp::start().await;
    app.create(&hello("t")).await;
    sample_statistics(&app.app).await;
    let page = page(&app).await;
    let with = |prefix: &str| -> Vec<String> {
        let lines = page.lines().filter_map(|line| line.strip_prefix(prefix));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let (help, types) = (with("# HELP "), with("# TYPE "));
    assert_eq!(help, types);
    assert!(types.len() >= 30, "{types:?}");
    let unique: std::collections::BTreeSet<&String> = types.iter().collect();
    assert_eq!(unique.len(), types.len(), "{types:?}");
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = series.split('{').next().unwrap();
        let suffixes = ["_bucket", "_sum", "_count"];
        let family = suffixes.iter().find_map(|it| name.strip_suffix(it)).unwrap_or(name);
        assert!(types.iter().any(|it| it == family || it == name), "{line}");
    }
    for counter in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        if let Some(name) = counter.strip_suffix(" counter") {
            assert!(name.ends_with("_total"), "{name}");
        }
    }
}

#[tokio::test]
async fn a_long_poll_is_counted_and_has_no_latency() {
    let app = TestApp::start().await;
    app.create(&hello("t")).await;
    let route = r#"route="/api/v1.0/{phone_number_id}/{key}/events""#;
    let series = [
        format!(r#"galley_http_requests_total{{method="GET",{route},status="200"}}"#),
        format!("galley_http_request_duration_seconds_count{{{route}}}"),
    ];
    for (query, counted) in [("?wait=20", [1.0, 0.0]), ("", [2.0, 1.0]), ("?wait=0", [3.0, 2.0])] {
        let events = app.base(Method::GET, &format!("/events{query}"), &Value::Null).await;
        assert_eq!(events.status.as_u16(), 200);
        let page = page(&app).await;
        assert_eq!(series.each_ref().map(|it| value(&page, it)), counted.map(Some), "{query:?}");
    }
}

#[tokio::test]
async fn a_scrape_reads_nothing_from_the_database() {
    let (app, faults) = failures::start(Limits::default()).await;
    assert_eq!(value(&page(&app).await, "galley_reviews_pending"), None, "not read yet");
    sample_statistics(&app.app).await;
    let sampled = "galley_store_sample_timestamp_seconds";
    let first = value(&page(&app).await, sampled).unwrap();
    assert!((first - 1_790_000_000.0).abs() < 1.0, "{first}");
    // A database that does not respond leaves the last values.
    for method in ["statistics", "ping", "accounts"] {
        faults.set(method, Fault::Hangs);
    }
    assert_eq!(value(&page(&app).await, "galley_reviews_pending"), Some(0.0));
    faults.set("statistics", Fault::Fails(|| StoreError::Busy));
    app.clock.advance(Duration::from_mins(1));
    sample_statistics(&app.app).await;
    assert_eq!(value(&page(&app).await, sampled), Some(first));
    faults.clear();
    sample_statistics(&app.app).await;
    assert_eq!(value(&page(&app).await, sampled), Some(first + 60.0));
}

#[tokio::test]
async fn ages_are_those_of_the_last_reading_of_the_database() {
    let app = TestApp::start_reviewed().await;
    app.create(&hello("t")).await;
    sample_statistics(&app.app).await;
    let age = "galley_reviews_oldest_age_seconds";
    assert_eq!(value(&page(&app).await, age), Some(0.0));
    app.clock.advance(Duration::from_secs(90));
    assert_eq!(value(&page(&app).await, age), Some(0.0), "nothing is known after the reading");
    sample_statistics(&app.app).await;
    let later = page(&app).await;
    assert_eq!(value(&later, age), Some(90.0));
    assert_eq!(value(&later, "galley_reviews_pending"), Some(1.0));
    assert_eq!(value(&later, "galley_search_unindexed_events"), Some(1.0));
    assert_eq!(value(&later, "galley_search_lag_seconds"), Some(90.0));
}

#[tokio::test]
async fn creates_are_counted_by_batch_and_commit() {
    let app = TestApp::start().await;
    // The first request claims the phone number, which is a change, too.
    app.create(&hello("claims")).await;
    let before = page(&app).await;
    app.create(&hello("one")).await;
    app.create(&hello("two")).await;
    let after = page(&app).await;
    let grown = |series: &str| value(&after, series).unwrap() - value(&before, series).unwrap();
    assert!((grown("galley_write_batch_size_sum") - 2.0).abs() < 0.1, "{after}");
    assert!((grown("galley_write_commit_duration_seconds_count") - 2.0).abs() < 0.1, "{after}");
    assert_eq!(value(&after, "galley_write_queue_depth"), Some(0.0));
    assert!(value(&after, "galley_write_queue_capacity").unwrap() > 0.0);
    let version = concat!("galley_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
    assert_eq!(value(&after, version), Some(1.0));
}

#[tokio::test]
async fn series_exist_before_their_first_event() {
    let app = TestApp::start().await;
    let page = page(&app).await;
    for series in [
        r#"galley_http_throttled_total{limit="requests-per-second"}"#,
        r#"galley_http_connections_closed_total{reason="evicted"}"#,
        r#"galley_webhook_attempt_duration_seconds_count{outcome="gave_up"}"#,
        r#"galley_pool_waits_total{pool="searches"}"#,
        r#"galley_log_lines_dropped_total{reason="buffer_full"}"#,
    ] {
        assert_eq!(value(&page, series), Some(0.0), "{series}: {page}");
    }
}
