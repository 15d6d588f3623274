//! What the service does before a person has imported, and without the key of the secrets.

use std::time::Duration;

use galley_domain::{id::TemplateId, template::Review, upstream::SweepVerdict};
use galley_server::{
    Clock as _,
    delivery::Keyring,
    upstream::{Begun, Session, SyncError, sync_connection},
};
use galley_store::{DegradedReason, UpstreamConnection};
use galley_upstream::Method;
use serde_json::json;

use super::connected::Connected;
use crate::sandbox::emulator::order;

async fn connection(connected: &Connected) -> UpstreamConnection {
    connected.service.store.connection(connected.account).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_person_begins_a_first_sweep_that_may_end_approvals() {
    let connected = Connected::start_without_import(Review::Auto, None).await;
    let own = connected.create_with(&order("own"), Review::Auto).await;
    connected.emulator().create_named("order_1").await;
    connected.advance(Duration::from_hours(1));
    assert!(!connected.has_work().await);
    connected.step().await;
    assert_eq!((connected.take_calls(), connected.mirrored().await.len()), (0, 0));
    let live = async || {
        let store = &connected.service.store;
        store.template(connected.account, own).await.unwrap().unwrap().state.live_version()
    };
    assert_eq!(live().await, Some(1), "nothing ends the approval");

    // Submissions do not wait for it.
    connected.create(&order("new")).await;
    assert!(connected.has_work().await);
    connected.step().await;
    connected.step().await;
    assert!(connected.provided().await.contains(&"new".to_owned()));
    assert!(!connection(&connected).await.has_begun_import() && !connected.has_work().await);

    // An import that was interrupted is continued, and followed by sweeps.
    connected.begin_import().await;
    assert!(connected.has_work().await);
    let session = connected.session().await;
    assert_eq!(session.take_ended_approvals(), []);
    session.end().await.unwrap();
    connected.step().await;
    assert_eq!((connected.mirrored().await.len(), live().await), (2, None));
    assert!(!connected.has_work().await);
    connected.advance(Duration::from_mins(15));
    assert!(connected.has_work().await);
}

#[tokio::test]
async fn the_service_imports_after_an_interval_if_nothing_can_be_lost() {
    let connected = Connected::start_without_import(Review::Auto, None).await;
    connected.emulator().create_named("order_1").await;
    // The provider has what is submitted.
    connected.create(&order("new")).await;
    connected.step().await;
    connected.step().await;
    assert!(!connected.has_work().await, "an operator may look first");
    connected.advance(Duration::from_mins(15));
    assert!(connected.has_work().await);
    connected.step().await;
    assert_eq!(connected.mirrored().await.len(), 2);
    let template = connected.mirrored().await[0].template.unwrap();
    let stored = connected.service.store.template(connected.account, template).await.unwrap();
    assert_eq!(stored.unwrap().state.live_version(), Some(1));
}

#[tokio::test]
async fn a_person_learns_how_many_approvals_an_import_has_ended() {
    let connected = Connected::start_without_import(Review::Auto, None).await;
    for name in ["one", "two"] {
        connected.create_with(&order(name), Review::Auto).await;
    }
    let session = connected.session().await;
    session.sweep(true, false, &mut |_| {}).await.unwrap();
    assert_eq!(session.take_ended_approvals().len(), 2);
    session.end().await.unwrap();
}

#[tokio::test]
async fn an_import_ends_what_its_preview_has_shown_and_reads_no_page_twice() {
    let connected = Connected::start_without_import(Review::Auto, None).await;
    let (store, account) = (&connected.service.store, connected.account);
    let mut own = Vec::new();
    for name in ["same", "other", "rejected", "absent"] {
        own.push(connected.create_with(&order(name), Review::Auto).await);
    }
    for name in ["same", "other", "rejected"] {
        connected.emulator().create_named(name).await;
    }
    connected.rewrite(|_, body| {
        for template in body["data"].as_array_mut().into_iter().flatten() {
            match template["name"].as_str() {
                Some("other") => template["components"][0]["text"] = json!("Another text, {{1}}!"),
                Some("rejected") => template["status"] = json!("REJECTED"),
                _ => {}
            }
        }
    });
    let read = async |ids: &[TemplateId]| {
        let mut read = Vec::new();
        for id in ids {
            let stored = store.template(account, *id).await.unwrap().unwrap();
            read.push((*stored).clone());
        }
        read
    };
    let before = read(&own).await;
    let session = connected.session().await;
    let walked = session.walk(&mut |_| {}).await.unwrap();
    let shown = session.preview(&walked, Vec::new(), before.clone()).await.unwrap();
    let reasons: Vec<_> = shown.iter().map(|it| (&*it.name, it.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [("other", "other_content"), ("rejected", "status"), ("absent", "not_provided")]
    );
    assert_eq!(read(&own).await, before);
    assert!(!connection(&connected).await.has_begun_import(), "nothing is recorded");

    let calls = connected.take_calls();
    let report = session.import(walked).await.unwrap();
    assert_eq!((calls, connected.take_calls()), (1, 0));
    assert_eq!((report.verdict, report.seen), (SweepVerdict::Counted, 3));
    let ended = session.take_ended_approvals();
    session.end().await.unwrap();
    assert_eq!(ended, shown);
    let live = read(&own).await.iter().map(|it| it.state.live_version()).collect::<Vec<_>>();
    assert_eq!(live, [Some(1), None, None, None]);
    assert_eq!(connection(&connected).await.read_all_at, connection(&connected).await.swept_at);
}

#[tokio::test]
async fn a_preview_shows_what_ends_later_if_the_import_does_not_count() {
    let connected = Connected::start_without_import(Review::Auto, None).await;
    let (store, account) = (&connected.service.store, connected.account);
    let id = connected.create_with(&order("absent"), Review::Auto).await;
    let stored = store.template(account, id).await.unwrap().unwrap();
    connected.emulator().create_named("order_1").await;
    connected.rewrite(|_, body| {
        if let Some(total) = body["summary"]["total_count"].as_u64() {
            body["summary"]["total_count"] = json!(total + 1);
        }
    });
    let session = connected.session().await;
    let walked = session.walk(&mut |_| {}).await.unwrap();
    assert_eq!(walked.verdict(&[]).0, SweepVerdict::Incomplete);
    let shown = session.preview(&walked, Vec::new(), vec![(*stored).clone()]).await.unwrap();
    let reasons: Vec<_> = shown.iter().map(|it| (&*it.name, it.reason.as_str())).collect();
    assert_eq!(reasons, [("absent", "not_provided")]);
    session.import(walked).await.unwrap();
    assert_eq!(session.take_ended_approvals(), [], "not yet");
    session.end().await.unwrap();
    let live = async || {
        let stored = store.template(account, id).await.unwrap().unwrap();
        stored.state.live_version()
    };
    assert_eq!(live().await, Some(1));
    // The next sweep counts, and a person has accepted what it ends.
    connected.rewrite(|_, _| {});
    connected.advance(Duration::from_mins(15));
    connected.step().await;
    assert_eq!(live().await, None);
}

#[tokio::test]
async fn a_service_whose_key_does_not_open_the_token_degrades_the_connection() {
    for (key, expected) in [
        (Some("another key, only for tests"), "cannot be opened with this GALLEY_SECRET_KEY"),
        (None, "no key is set: set GALLEY_SECRET_KEY"),
    ] {
        let mut connected = Connected::start_without_import(Review::Auto, None).await;
        connected.create(&order("new")).await;
        let right = connected.context.keyring.clone();
        connected.context.keyring = Keyring::new(key).unwrap();

        // The key of a person's shell tells nothing about the service.
        let begun = Session::begin(&connected.context, connected.account).await;
        assert!(matches!(begun, Err(SyncError::Secret(_))));
        assert_eq!(connection(&connected).await.degraded, None);

        let step = sync_connection(&connected.context, connected.account).await;
        assert!(matches!(step, Err(SyncError::Secret(_))), "{step:?}");
        let degraded = connection(&connected).await.degraded.unwrap();
        assert_eq!(degraded.reason, DegradedReason::Credentials);
        let error = degraded.error.unwrap();
        assert_eq!(error.code, 0, "it is not the provider's");
        assert!(error.message.contains(expected), "{}", error.message);
        assert_eq!(connected.take_calls(), 0);
        assert!(connected.events().await.contains(&"upstream.degraded"));
        assert!(!connected.has_work().await, "it rests");
        assert_eq!(connection(&connected).await.leased_until, None, "others may try");

        connected.context.keyring = right;
        connected.advance(Duration::from_mins(15));
        assert!(connected.has_work().await);
        connected.step().await;
        assert_eq!(connection(&connected).await.degraded, None);
        assert!(connected.events().await.contains(&"upstream.recovered"));
        assert_eq!(connected.provided().await, ["new"]);
    }
}

#[tokio::test]
async fn a_check_shows_before_the_import_that_calls_succeed_again() {
    let mut connected = Connected::start_without_import(Review::Auto, None).await;
    connected.create_with(&order("own"), Review::Auto).await;
    let right = connected.context.keyring.clone();
    connected.context.keyring = Keyring::new(None).unwrap();
    connected.try_step().await;
    connected.context.keyring = right;
    assert!(connection(&connected).await.degraded.is_some());
    connected.advance(Duration::from_mins(15));
    assert!(connected.has_work().await);
    connected.step().await;
    assert!(connected.take_count(Method::Get) > 0);
    assert_eq!(connection(&connected).await.degraded, None);
    assert!(!connected.has_work().await && connected.mirrored().await.is_empty());
}

#[tokio::test]
async fn a_call_begins_with_most_of_the_lease_left() {
    let connected = Connected::start().await;
    let lease = connected.context.settings.lease;
    assert_eq!(lease, Duration::from_secs(30));
    let Begun::Session(session) =
        Session::begin(&connected.context, connected.account).await.unwrap()
    else {
        panic!("the connection is free");
    };
    let until = connection(&connected).await.leased_until.unwrap();
    connected.advance(Duration::from_secs(9));
    session.check().await.unwrap();
    assert_eq!(connection(&connected).await.leased_until, Some(until), "enough is left");
    connected.advance(Duration::from_secs(11));
    session.check().await.unwrap();
    let now = connected.service.clock.now();
    assert_eq!(connection(&connected).await.leased_until, Some(now + lease));
    session.end().await.unwrap();
}
