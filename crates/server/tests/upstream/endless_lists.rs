//! Providers whose list of templates does not end.

use std::{
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
    time::Duration,
};

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use galley_domain::upstream::SweepVerdict;
use galley_server::upstream::SyncError;
use galley_store::UpstreamConnection;
use serde_json::json;

use super::connected::Connected;

/// A connected account whose provider has two templates, and lists them without an end.
async fn endless(distance: u32, repeats_templates: bool) -> Connected {
    let connected = Connected::start().await;
    for name in ["order_1", "order_2"] {
        connected.emulator().create_named(name).await;
    }
    connected.sweep(true).await.unwrap();
    let (pages, first) = (AtomicU32::new(0), std::sync::OnceLock::new());
    connected.rewrite(move |_, body| {
        let Some(data) = body.get("data").cloned() else { return };
        let number = pages.fetch_add(1, Ordering::Relaxed);
        let first = first.get_or_init(|| data.clone());
        body["data"] = if number == 0 || repeats_templates { first.clone() } else { json!([]) };
        // The emulator refuses cursors that are not its own.
        let cursor = format!("1.{}", 4_000_000_000_u64 + u64::from(number % distance));
        let after = BASE64_URL_SAFE_NO_PAD.encode(cursor);
        body["paging"] = json!({"cursors": {"after": after}, "next": "https://provider.test/"});
    });
    connected.take_calls();
    connected
}

async fn connection(connected: &Connected) -> UpstreamConnection {
    connected.service.store.connection(connected.account).await.unwrap().unwrap()
}

#[tokio::test]
async fn pages_that_show_nothing_new_end_a_sweep() {
    for distance in [1, 2, 3, 40, u32::MAX] {
        for full in [false, true] {
            let connected = endless(distance, false).await;
            let report = connected.sweep(full).await.unwrap();
            assert_eq!(connected.take_calls(), 11, "{distance}");
            assert_eq!((report.verdict, report.seen), (SweepVerdict::Incomplete, 2));
            assert!(!report.suspicious);
            let after = connection(&connected).await;
            assert_eq!((after.sweep, after.degraded), (None, None));
            assert!(!connected.has_work().await, "the next sweep is due later");
            connected.step().await;
            assert_eq!(connected.take_calls(), 0);
        }
        let connected = endless(distance, false).await;
        let session = connected.session().await;
        let walked = session.walk(&mut |_| {}).await.unwrap();
        session.end().await.unwrap();
        assert_eq!(connected.take_calls(), 11, "{distance}");
        assert!(walked.progress.failed);
        assert_eq!(walked.verdict(&[]).0, SweepVerdict::Incomplete);
    }
}

#[tokio::test]
async fn templates_that_are_listed_again_end_a_sweep_although_the_cursors_are_new() {
    let connected = endless(u32::MAX, true).await;
    let report = connected.sweep(false).await.unwrap();
    assert_eq!((report.verdict, connected.take_calls()), (SweepVerdict::Incomplete, 2));
}

#[tokio::test]
async fn a_sweep_that_was_interrupted_recognises_what_it_has_seen() {
    let connected = endless(1_000, true).await;
    connected.set_usage(100);
    let rested = connected.sweep(false).await.unwrap_err();
    assert!(matches!(rested, SyncError::NotBefore(_)), "{rested:?}");
    assert!(connection(&connected).await.sweep.is_some());
    connected.set_usage(1);
    connected.advance(Duration::from_mins(11));
    let report = connected.sweep(false).await.unwrap();
    assert_eq!((report.verdict, connected.take_calls()), (SweepVerdict::Incomplete, 2));
    assert_eq!(connection(&connected).await.sweep, None);
}

/// Steps of the service, one in each hour, with the default budget. Returns the calls of the first sweep.
async fn calls_of_the_service(connected: &mut Connected) -> u32 {
    connected.context.settings.calls_per_hour = 200;
    connected.take_calls();
    for _ in 0..4 {
        connected.advance(Duration::from_hours(1));
        connected.try_step().await;
        if connection(connected).await.sweep.is_none() {
            return connected.take_calls();
        }
    }
    panic!("the sweep does not end: {:?}", connection(connected).await.sweep);
}

#[tokio::test]
async fn the_sweep_of_the_service_ends_although_its_share_of_the_calls_is_smaller() {
    for distance in [40, u32::MAX] {
        let mut connected = endless(distance, false).await;
        assert_eq!(calls_of_the_service(&mut connected).await, 11, "{distance}");
    }
}

#[tokio::test]
async fn a_sweep_that_began_again_recognises_a_list_that_repeats_itself() {
    const PAGES: usize = 25;
    let mut connected = endless(u32::MAX, false).await;
    let calls = AtomicUsize::new(0);
    connected.rewrite(move |path, body| {
        if !path.ends_with("/message_templates") {
            return;
        }
        let call = calls.fetch_add(1, Ordering::Relaxed);
        if call == 1 {
            *body = json!({"error": {"code": 131_059, "message": "expired"}});
            return;
        }
        let number = call.saturating_sub(2) % PAGES;
        let (name, id) = (format!("order_{}", number + 3), format!("90{number}"));
        body["data"] = json!([{
            "id": id, "name": name, "language": "en_US", "status": "APPROVED",
            "category": "UTILITY", "components": [{"type": "BODY", "text": "Hi"}],
        }]);
        let cursor = format!("1.{}", 5_000_000_000 + call);
        let after = BASE64_URL_SAFE_NO_PAD.encode(cursor);
        body["paging"] = json!({"cursors": {"after": after}, "next": "https://provider.test/"});
    });
    let calls = calls_of_the_service(&mut connected).await as usize;
    assert_eq!(calls, 2 + PAGES + 1, "up to the first page that it has seen since");
}
